"""What observing costs on this machine.

    python -m benchmarks.observe                      all loads and variants, about nine minutes
    python -m benchmarks.observe --pairs 4 --json     quickly, for a program

Root, and a kernel that allows the hooks; nginx and wrk, redis-server and redis-benchmark for the loads of those names.
Ratios are CPU time of both ends for each unit of work, with probes over without; `nothing` shows what the machine's own
unrest makes of 1.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from benchmarks.observe import loads, probes
from benchmarks.observe.pairs import Ratio, paired
from enforcer.observe.collectors.probes import Probes

DEFAULT_SHARE = 0.1

VARIANTS: dict[str, tuple[Callable[[], list[Probes]], float]] = {
    "nothing": (list, 1),
    "cgroup_skb": (probes.edges, 1),
    "everything": (probes.everything, 1),
    "everything, a tenth of the time": (probes.everything, DEFAULT_SHARE),
    "socket_tracepoints": (probes.sockets, 1),
}
"""Collectors and the share of time that they are on."""

GOALS = (
    ("wrk-nginx", "everything, a tenth of the time", 1.01),
    ("redis", "everything, a tenth of the time", 1.01),
    ("ping-pong", "cgroup_skb", 1.06),
)
RSS_GOAL = 60 << 20


def ratio(load: str, variant: str, pairs: int, seconds: float) -> Ratio:
    make, share = VARIANTS[variant]
    collectors = make()

    def on() -> float:
        # One period to a sample, so that each sample has the same share of probes, their attaching and detaching.
        with probes.watching(collectors, share, seconds):
            return loads.run(load, seconds)

    try:
        return paired(on, partial(loads.run, load, seconds), pairs)
    finally:
        for collector in collectors:
            collector.close()


def events(names: Sequence[str], seconds: float) -> dict[str, dict[str, tuple[float, int]]]:
    """Nanoseconds by load and program."""
    measured = {}
    for load in names:
        collectors = [*probes.everything(), *probes.sockets()]
        measured[load] = probes.nanoseconds_per_event(collectors, partial(loads.run, load, seconds))
        for collector in collectors:
            collector.close()
    return measured


def resident() -> dict[str, int]:
    done = subprocess.run([sys.executable, "-m", "benchmarks.observe.holder"], stdout=subprocess.PIPE, check=True)
    memory: dict[str, int] = json.loads(done.stdout)
    return memory


def show(results: dict[str, Any]) -> None:
    print("CPU time with probes / without, median and standard error")
    print(f"{'':33}" + "".join(f"{load:>18}" for load in loads.LOADS))
    for variant, by_load in results["ratios"].items():
        print(f"{variant:33}" + "".join(f"{by_load.get(load, '')!s:>18}" for load in loads.LOADS))
    print("\nnanoseconds of an event (runs)")
    for load, by_program in results["events"].items():
        for program, (mean, runs) in by_program.items():
            print(f"{load:12} {program:20} {mean:7.0f} ({runs})")
    print("\nresident memory of a process with all collectors: ", end="")
    print(", ".join(f"{name} {size / (1 << 20):.1f} MiB" for name, size in results["memory"].items()))
    for goal in results["goals"]:
        print(goal)


def goals(ratios: dict[str, dict[str, Ratio]], memory: dict[str, int]) -> list[str]:
    lines = []
    for load, variant, limit in GOALS:
        measured = ratios.get(variant, {}).get(load)
        if measured:
            lines.append(f"goal {variant} on {load} <= {limit}: {verdict(measured, limit)} ({measured})")
    return [*lines, f"goal RSS <= {RSS_GOAL >> 20} MiB: {'met' if memory['VmRSS'] <= RSS_GOAL else 'missed'}"]


def verdict(measured: Ratio, limit: float) -> str:
    """A limit within one standard error of the median is neither met nor missed."""
    if abs(measured.median - limit) < measured.error:
        return "undecided by this run"
    return "met" if measured.median <= limit else "missed"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.observe", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=10, help="measurements of each ratio")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one measurement")
    parser.add_argument("--load", action="append", choices=loads.LOADS, help="only this load (repeatable)")
    parser.add_argument("--variant", action="append", choices=VARIANTS, help="only this variant (repeatable)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with loads.cgroups():
        results = measure(options)
    if options.json:
        print(json.dumps(results, default=lambda ratio: {"median": ratio.median, "error": ratio.error}))
    else:
        show(results)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    names = options.load or list(loads.LOADS)
    for name in names:
        if lacking := loads.lacking(name):
            print(f"without {name}: this machine has no {', no '.join(lacking)}", file=sys.stderr)
    there = [name for name in names if not loads.lacking(name)]
    ratios = {
        variant: {load: ratio(load, variant, options.pairs, options.seconds) for load in there}
        for variant in options.variant or VARIANTS
    }
    memory = resident()
    return {
        "ratios": ratios,
        "events": events(there, options.seconds),
        "memory": memory,
        "goals": goals(ratios, memory),
    }


if __name__ == "__main__":
    main()
