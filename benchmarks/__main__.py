"""Every target's figure in one table.

    make bench                      about 100 minutes
    make bench-quick                about seven: fewer repetitions and smaller clusters
    python -m benchmarks --only decisions --only plans

What was measured is kept in build/bench.json (build/bench-quick.json), so that a run that was ended goes on where it
was; --fresh begins anew, as does another commit. Quiet machines only: beside other work the ratios hold, tails do not.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from benchmarks.bench import create, extender, harm, node
from benchmarks.bench.row import Row, table

ROOT = Path(__file__).parents[1]

MEASURES: Mapping[str, Callable[..., list[Row]]] = {
    "decisions": node.decisions,
    "plans": node.plans,
    "scheduler-calls": extender.scheduler_calls,
    "create-container": create.create_container,
    "many-creates": create.many_creates,
    "reports-at-rest": extender.reports_at_rest,
    "listed-pods": extender.listed_pods,
    "probes-web": node.probes_on_web,
    "probes-redis": node.probes_on_redis,
    "harm": harm.pods_beside_each_other,
    "harm-played": harm.played_pods,
}


class Run(msgspec.Struct):
    """What was measured of one commit on one machine. lacking: by measure, why it has no rows."""

    commit: str
    machine: str
    rows: dict[str, list[Row]] = {}
    lacking: dict[str, str] = {}


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    model = next(models, platform.machine())
    return f"{os.cpu_count()} x {model}, Linux {platform.release()}, Python {platform.python_version()}"


def commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False).stdout.strip()


def resumed(file: Path, *, fresh: bool) -> Run:
    run = Run(commit(), machine())
    if fresh or not file.exists():
        return run
    try:
        before = msgspec.json.decode(file.read_bytes(), type=Run)
    except msgspec.DecodeError:
        return run
    return before if (before.commit, before.machine) == (run.commit, run.machine) else run


def measure(run: Run, name: str, *, quick: bool) -> None:
    begin = time.monotonic()
    print(f"{name} ...", file=sys.stderr, flush=True)
    run.lacking.pop(name, None)
    try:
        run.rows[name] = MEASURES[name](quick=quick)
    except Exception as failed:  # noqa: BLE001 - the other rows are measured all the same
        run.lacking[name] = f"{type(failed).__name__}: {failed}"
    print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


def shown(run: Run) -> str:
    load = Path("/proc/loadavg").read_text().split()[0]
    rows = [row for name in MEASURES for row in run.rows.get(name, ())]
    lines = [f"{run.machine}; {run.commit}; load average at the end {load}", "", table(rows)]
    return "\n".join([*lines, *(f"not measured: {name}: {why}" for name, why in run.lacking.items())])


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="seven minutes")
    parser.add_argument("--fresh", action="store_true", help="measure all again")
    parser.add_argument("--only", action="append", choices=MEASURES, help="only this (repeatable)")
    options = parser.parse_args()
    file = ROOT / "build" / ("bench-quick.json" if options.quick else "bench.json")
    file.parent.mkdir(exist_ok=True)
    run = resumed(file, fresh=options.fresh)
    for name in options.only or MEASURES:
        if name not in run.rows or options.only:
            measure(run, name, quick=options.quick)
            file.write_bytes(msgspec.json.encode(run))
    print(shown(run))
    return 0


if __name__ == "__main__":
    sys.exit(main())
