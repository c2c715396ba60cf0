"""`python -m benchmarks.harm`: what each pod has with numakin over what it has without, on this machine's two CPUs.

    python -m benchmarks.harm                          six pairs of each situation: 85 minutes; root, mmdebstrap
    python -m benchmarks.harm --quick                  one pair, without intervals: seven minutes
    python -m benchmarks.harm --only "a batch pod" --pairs 3
    python -m benchmarks.harm --played                 500 pods by decide(), and with the hook's relief: minutes
    python -m benchmarks.harm --queues                 what any pinning costs by itself, by the size of NUMA nodes

Below 0.98 a pod is flagged, whether it has opted in or not. Each run starts its pods anew; a pair is one with numakin
and one without, in turn, so that whatever else the machine does is in both. The load average is above the table.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from statistics import median

from benchmarks.harm import queues
from benchmarks.harm.measured import LEAST, PodRatios, interval, pairs, ratios, verdict
from benchmarks.harm.node import Times, load_average, node
from benchmarks.harm.played import LOADS, PODS, PlayedMachine, kinds, played
from benchmarks.harm.relieved import RelievedMachine
from benchmarks.harm.situations import SITUATIONS

FULL, QUICK = Times(38.0, 38.0, 30), Times(36.0, 3.0, 4)
"""Fifteen seconds for what is hot to be relieved, and again for what those who are let out make hot. Thirty are
measured: in eight, six of the 600 pieces of work of a pod at 15 % are its p99, and pairs differed by half.
Without numakin as long: at 90 % load the pods that come and go meanwhile overload the machine, and what waits by then
is served late in either.
"""

PAIRS = 6

SEEDS = 20
"""Of the lives that are played."""

PLAYED = (
    (False, PlayedMachine, "requests"),
    (True, PlayedMachine, "requests, use"),
    (False, RelievedMachine, "requests; relief"),
    (True, RelievedMachine, "both; relief"),
)
"""Whether use is known, on which machines, and that in words."""


def measured(names: list[str], times: Times, count: int) -> list[PodRatios]:
    found = []
    with node() as machine:
        for name in names:
            pods = SITUATIONS[name]
            runs = pairs(machine, pods, times, count, lambda done, name=name: print(f"{name}: {done}", file=sys.stderr))
            found += ratios(name, pods, runs)
    return found


HEAD = f"{'situation, pod':34}{'opted in':>9}{'CPUs':>6}{'throughput':>12}{'':18}{'1 / p99':>9}"


def table(found: list[PodRatios]) -> str:
    lines, before = [HEAD], ""
    for row in found:
        if row.situation != before:
            lines.append(row.situation)
            before = row.situation
        cells = "".join(_cell(values) for values in row.figures.values())
        lines.append(f"  {row.pod.name:32}{'yes' if row.pod.group else 'no':>9}{row.cpus:>6}{cells}".rstrip())
    return "\n".join(lines)


def _cell(values) -> str:
    found = interval(values)
    spread = f" ({found.low:.2f}-{found.high:.2f})" if found.pairs > 1 else ""
    return f"{found.value:>8.2f}{spread:13}{verdict(values):17}"


def played_table(seeds: int) -> str:
    lines = [f"{PODS} played pods, CPU over what each would have unpinned, {seeds} seeds"]
    lines.append(
        f"{'load':>6}    {'placed by':18}{'opted in':14}{'pods':>7}{f'under {LEAST}':>12}{'worst':>8}{'median':>8}"
    )
    for load in LOADS:
        for known, machine, by in PLAYED:
            lives = [kinds(played(load, seed, use_known=known, machine=machine)) for seed in range(seeds)]
            for kind in lives[0]:
                ratios = [ratio for life in lives for ratio in life[kind]]
                worse = sum(ratio < LEAST for ratio in ratios) / len(ratios)
                cells = f"{len(ratios):>7}{worse:>12.2%}{min(ratios):>8.2f}{median(ratios):>8.2f}"
                lines.append(f"{load:>6.0%}    {by:18}{kind:14}{cells}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.harm", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one pair of each situation")
    parser.add_argument("--pairs", type=int, help=f"of runs; {PAIRS} or more for intervals of 95 %%")
    parser.add_argument("--only", action="append", choices=SITUATIONS, help="only this situation (repeatable)")
    parser.add_argument("--played", action="store_true", help="500 pods, and no runtime")
    parser.add_argument("--queues", action="store_true", help="played queues before CPUs, and no runtime")
    parser.add_argument("--json", type=Path, help="write every pair's ratios there")
    options = parser.parse_args()
    if options.queues:
        print(queues.table())
        return 0
    if options.played:
        print(played_table(3 if options.quick else SEEDS))
        return 0
    count, load = options.pairs or (1 if options.quick else PAIRS), load_average()
    found = measured(options.only or [*SITUATIONS], QUICK if options.quick else FULL, count)
    print(f"{count} pairs, load average {load:.1f} at the begin and {load_average():.1f} at the end\n")
    print(table(found))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in found], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
