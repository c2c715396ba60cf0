"""The node's rows: CreateContainer as a runtime waits for it, decisions, plans, memory, probes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.bench.row import Row
from benchmarks.decide.__main__ import measured as decided
from benchmarks.decide.plan import seconds as planned
from benchmarks.runtime import trial
from benchmarks.runtime.__main__ import FLOOR, TMPFS, quantiles
from benchmarks.runtime.trial import Result, Settings

LEAST = "x least Python"
OPTED, PLAIN = ("numakin", "opted"), ("numakin", "plain")


class NotHere(Exception):
    """What this machine lacks for a row, by name."""


def create_container(*, quick: bool) -> list[Row]:
    """200 containers, several runs; then one with 500, and one with eight at once beside a process that computes."""
    count, runs = (150, 1) if quick else (500, 5)
    with tempfile.TemporaryDirectory(prefix="numakin-", dir=TMPFS if TMPFS.is_dir() else None) as name:
        folder = Path(name)
        try:
            trial.build(folder)
        except trial.Unavailable as lack:
            raise NotHere(str(lack)) from lack
        results = [_run(folder, Settings(count=count)) for _ in range(runs)]
        rows = _latencies(results) + _process("200 containers", results)
        if quick:
            return rows
        crowded = _run(folder, Settings(count=count, running=500))
        busy = _run(folder, Settings(count=count, parallel=8, hog=True))
    growth = _at(crowded, OPTED, 0) / _at(results[-1], OPTED, 0)
    tail = _at(busy, OPTED, 1) / _at(results[-1], OPTED, 1)
    return [
        *rows,
        Row("CreateContainer, opted in, p50 with 500 containers", "x with 200", 1.3, [growth]),
        Row("CreateContainer, 8 at once and a CPU hog, p99", "x the quiet one", 2.0, [tail]),
        *_process("500 containers", [crowded]),
    ]


def _run(folder: Path, settings: Settings) -> Result:
    with tempfile.TemporaryDirectory(dir=folder) as run:
        return trial.run(settings, folder, Path(run))


def _at(result: Result, key: tuple[str, str], quantile: int) -> float:
    return quantiles(result.micros[key])[quantile]


def _latencies(results: list[Result]) -> list[Row]:
    def ratios(key: tuple[str, str], quantile: int) -> list[float]:
        return [_at(result, key, quantile) / _at(result, FLOOR, quantile) for result in results]

    tails = [_at(result, OPTED, 1) / _at(result, OPTED, 0) for result in results]
    return [
        Row("CreateContainer, not opted in, p50", LEAST, 1.5, ratios(PLAIN, 0)),
        Row("CreateContainer, not opted in, p99", LEAST, 2.0, ratios(PLAIN, 1)),
        Row("CreateContainer, opted in, p50", LEAST, 3.0, ratios(OPTED, 0)),
        Row("CreateContainer, opted in, p50", "ms", 0.5, [_at(result, OPTED, 0) / 1000 for result in results]),
        Row("CreateContainer, opted in, p99", "x its p50", 3.0, tails),
        Row("CreateContainer, opted in, p99.9", "ms", 5.0, [_at(result, OPTED, 2) / 1000 for result in results]),
    ]


def _process(what: str, results: list[Result]) -> list[Row]:
    pss = [sum(result.memory["numakin"][-1].values()) for result in results]
    started = [1000 * result.registered_s["numakin"] for result in results]
    return [
        Row(f"supervisor, hook and observer (PSS), {what}", "MiB", 60.0, pss),
        Row(f"start to registered, {what}", "ms", 300.0, started),
    ]


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


def probes(*, quick: bool) -> list[Row]:
    """CPU per request with probes over without, on wrk -> nginx; the error belongs to the figure."""
    if os.geteuid() != 0:
        raise NotHere("root")
    pairs = 3 if quick else 20
    command = [sys.executable, "-m", "benchmarks.observe", "--json", "--pairs", str(pairs), "--load", "wrk-nginx"]
    command += ["--variant", "everything, a tenth of the time", "--variant", "cgroup_skb"]
    begin = time.monotonic()
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise NotHere(f"{run.stderr.strip().splitlines()[-1:]} after {time.monotonic() - begin:.0f} s")
    ratios = json.loads(run.stdout)["ratios"]
    limits = {"everything, a tenth of the time": 1.01, "cgroup_skb": 1.04}
    rows = []
    for variant, most in limits.items():
        found = ratios[variant]["wrk-nginx"]
        values = [found["median"] - found["error"], found["median"], found["median"] + found["error"]]
        rows.append(Row(f"probes ({variant}), wrk -> nginx", "x the CPU without", most, values))
    return rows
