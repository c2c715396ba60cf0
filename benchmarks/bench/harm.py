"""The rows of harm: of each situation the pod that is worst off with numakin, by what it has without it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from statistics import median

from benchmarks.bench.row import NotHere, Row
from benchmarks.harm.__main__ import FULL, PAIRS, QUICK, SEEDS, measured
from benchmarks.harm.measured import LEAST
from benchmarks.harm.played import LOADS, PODS, kinds, played
from benchmarks.harm.situations import SITUATIONS

WITHOUT = "x without numakin"


def pods_beside_each_other(*, quick: bool) -> list[Row]:
    if os.geteuid() != 0:
        raise NotHere("root")
    found = measured([*SITUATIONS], QUICK if quick else FULL, 1 if quick else PAIRS)
    rows = []
    for situation in SITUATIONS:
        pods = [row.figures | {"name": row.pod.name} for row in found if row.situation == situation]
        for figure, said in (("throughput", "throughput"), ("p99", "1 / p99")):
            worst = min(pods, key=lambda pod: median(pod[figure]))
            rows.append(Row(f"{situation}: {said} of the worst-off pod", WITHOUT, None, worst[figure], LEAST))
    return rows


def played_pods(*, quick: bool) -> list[Row]:
    return [row for load in LOADS for row in _of_load(load, 3 if quick else SEEDS)]


def _of_load(load: float, seeds: int) -> Iterator[Row]:
    lives = [kinds(played(load, seed)) for seed in range(seeds)]
    for kind in ("opted in", "not opted in"):
        worst = [min(life[kind]) for life in lives]
        yield Row(f"{PODS} played pods, {load:.0%} load: CPU of the worst-off one, {kind}", WITHOUT, None, worst, LEAST)
