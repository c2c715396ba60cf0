"""`python -m benchmarks.quality`: locality reached online, as a share of the best known.

Members arrive one by one, and each stays where it is put. Nothing is written by hand but the opt-in: what numakin knows
is the graph that `numakin.placement.traffic.graph` learned from an earlier life of the same services (see `earlier`),
and how many replicas they had. Its placements are those of the real decide(), on the real occupancy, with the real
plan. A pair is local only when both its members lie wholly inside one same NUMA node. The same seed gives the same
figures.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from os import cpu_count
from pathlib import Path
from time import perf_counter

from benchmarks.quality import plot, rows, table
from benchmarks.quality.run import Result, run
from benchmarks.quality.scenario import FILLS, GRAPHS, NUMA_NODES

QUICK_GRAPHS, QUICK_NUMA_NODES, QUICK_FILLS = ("online-boutique", "star", "power-law"), (2, 4), (0.7,)

Scenes = list[tuple[str, int, float]]


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    if chosen.rows == []:
        chosen.rows = [*rows.ROWS]
    started = perf_counter()
    if chosen.quick:
        scenes = [(g, n, f) for n in QUICK_NUMA_NODES for g in QUICK_GRAPHS for f in QUICK_FILLS]
    else:
        scenes = [(g, n, f) for n in reversed(chosen.numa_nodes) for g in chosen.graphs for f in chosen.fills]
    if chosen.rows:
        which = {"rows": tuple(chosen.rows), "containers": chosen.containers}
        ends = _reached(scenes, partial(rows.reached, seed=chosen.seed, **which), chosen.jobs)
        print(rows.text(ends, worst=chosen.worst))
        print(f"\n{len(ends)} lives in {perf_counter() - started:.0f} s, seed {chosen.seed}")
        if chosen.json:
            chosen.json.write_text(json.dumps([asdict(end) for end in ends], indent=1) + "\n")
        return 0
    results = _all(scenes, chosen.seed, chosen.jobs)
    print(table.text(results))
    print(f"\n{len(results)} runs in {perf_counter() - started:.0f} s, seed {chosen.seed}")
    if chosen.json:
        chosen.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")
    if chosen.plot:
        aimed = [result for result in results if result.case.fill == table.GOAL_FILL] or results
        chosen.plot.write_text(plot.svg(aimed, f"share of the best known locality, {len(aimed)} runs at 70 % fill"))
    return 0


def _all(scenes: Scenes, seed: int, jobs: int) -> list[Result]:
    if jobs == 1:
        return [result for scene in scenes for result in run(*scene, seed=seed)]
    with ProcessPoolExecutor(jobs) as pool:
        waiting = [pool.submit(partial(run, *scene, seed=seed)) for scene in scenes]
        return [result for done in waiting for result in done.result()]


def _reached(scenes: Scenes, reached: Callable[..., list[rows.Reached]], jobs: int) -> list[rows.Reached]:
    if jobs == 1:
        return [end for scene in scenes for end in reached(*scene)]
    with ProcessPoolExecutor(jobs) as pool:
        waiting = [pool.submit(reached, *scene) for scene in scenes]
        return [end for done in waiting for end in done.result()]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality",
        description="Locality reached online, as a share of the best known.",
        epilog="example: python -m benchmarks.quality --numa-nodes 4 --fills 0.7 --plot quality.svg",
    )
    parser.add_argument("--quick", action="store_true", help="a few small cases, under 20 s")
    parser.add_argument(
        "--rows", nargs="*", metavar="ROW", choices=rows.ROWS, help=f"lives instead of placers (all): {rows.ROWS}"
    )
    parser.add_argument("--worst", type=int, default=0, help="with --rows: so many of the worst lives are named")
    parser.add_argument("--graphs", nargs="+", choices=list(GRAPHS), default=list(GRAPHS))
    parser.add_argument("--numa-nodes", nargs="+", type=int, choices=NUMA_NODES, default=list(NUMA_NODES))
    parser.add_argument("--fills", nargs="+", type=float, default=list(FILLS), help="shares of the CPUs requested")
    parser.add_argument(
        "--containers", type=int, default=1, help="with --rows: of each pod; several are placed one by one"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=cpu_count() or 1, help="processes (default: one for each CPU)")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    parser.add_argument("--plot", type=Path, help="draw an SVG into this file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
