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
