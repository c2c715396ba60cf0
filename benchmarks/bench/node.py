"""The node's other rows: decisions, plans, probes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from benchmarks.bench.row import NotHere, Row
from benchmarks.decide.__main__ import measured as decided
from benchmarks.decide.plan import seconds as planned
from benchmarks.observe import loads


def decisions(*, quick: bool) -> list[Row]:
    """The worst kind: memory that fits on no NUMA node."""
    repeats, runs = (50, 1) if quick else (300, 5)
    rows = []
    for numa_nodes, most in ((16, 2.0), (64, 10.0)):
        times = [decided("memory fits nowhere", numa_nodes, 200, repeats)["decide"] for _ in range(runs)]
        values = [float(row["median"]) / 1000 for row in times]  # type: ignore[index]  # a dict of figures
        rows.append(Row(f"decide(), {numa_nodes} NUMA nodes, memory fits nowhere", "ms", most, values))
    return rows


def plans(*, quick: bool) -> list[Row]:
    runs = 1 if quick else 5
    return [Row("first plan, 64 NUMA nodes, 500 members", "s", 2.0, [planned(number) for number in range(runs)])]


PROBES_COST = {"everything, a tenth of the time": 1.01, "cgroup_skb": 1.04}
"""At most, of a request's CPU time without, by what is on."""


def probes_on_web(*, quick: bool) -> list[Row]:
    return _probes("wrk-nginx", "wrk -> nginx", quick=quick)


def probes_on_redis(*, quick: bool) -> list[Row]:
    return _probes("redis", "redis-benchmark -> redis", quick=quick)


def _probes(load: str, shown: str, *, quick: bool) -> list[Row]:
    """CPU per request with probes over without; the error belongs to the figure."""
    if os.geteuid() != 0:
        raise NotHere("root")
    if lacking := loads.lacking(load):
        raise NotHere(", ".join(lacking))
    pairs = 3 if quick else 20
    command = [sys.executable, "-m", "benchmarks.observe", "--json", "--pairs", str(pairs), "--load", load]
    command += [word for variant in PROBES_COST for word in ("--variant", variant)]
    begin = time.monotonic()
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise NotHere(f"{run.stderr.strip().splitlines()[-1:]} after {time.monotonic() - begin:.0f} s")
    ratios = json.loads(run.stdout)["ratios"]
    rows = []
    for variant, most in PROBES_COST.items():
        found = ratios[variant][load]
        values = [found["median"] - found["error"], found["median"], found["median"] + found["error"]]
        rows.append(Row(f"probes ({variant}), {shown}", "x the CPU without", most, values))
    return rows
