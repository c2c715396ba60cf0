"""`python -m benchmarks.yardstick`: how near the search comes to what is possible.

First where the optimum can be proven (mixed-integer programming, HiGHS), then on the scenarios of `benchmarks.quality`,
with the best known locality and a bound that is proven but seldom tight. `--store` searches all of these scenarios for
longer, and keeps what it finds for `benchmarks.quality` to measure against.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from os import cpu_count
from time import perf_counter

from benchmarks.quality.arrivals import events, remaining
from benchmarks.quality.scenario import FILLS, GRAPHS, NUMA_NODES, Scenario, scenario
from benchmarks.yardstick.best_known import STORED, BestKnown, best_known
from benchmarks.yardstick.exact import optimum
from benchmarks.yardstick.sample import sample
from numakin.placement.plan.search import solve

SMALL = ((10, 2), (16, 2), (12, 4), (16, 4), (20, 4), (16, 8))
"""Members and NUMA nodes of the problems that are solved exactly."""

SAMPLE_FILL = 0.8
GREEDY = 0
"""The search's effort that leaves climbing from greedy starts."""


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    if chosen.store:
        return _store(chosen.jobs)
    print("members  NUMA nodes  optimum  bound   proven     s   search      s   climbing alone")
    for members, bins in SMALL:
        for seed in range(chosen.seeds):
            print(_compared(members, bins, seed, chosen.time_limit))
    print("\nscenario, 70 % fill                     members  best known  no more than")
    for nodes in NUMA_NODES[:2]:
        for graph in GRAPHS:
            sample = scenario(graph, nodes, 0.7)
            best = best_known(sample)
            members = sum(service.replicas for service in sample.services)
            print(f"{sample.name:40}{members:7d}{best.locality:12.4f}{best.bound:14.4f}")
    return 0


def _compared(members: int, bins: int, seed: int, time_limit: float) -> str:
    problem = sample(members, bins, SAMPLE_FILL, seed)
    started = perf_counter()
    exact = optimum(problem, time_limit)
    proved = perf_counter()
    locality = solve(problem).locality()
    searched = perf_counter()
    return (
        f"{members:7d}{bins:12d}{exact.locality:9.4f}{exact.bound:7.4f}{exact.proven!s:>9}{proved - started:6.1f}"
        f"{locality:9.4f}{searched - proved:7.2f}{solve(problem, effort=GREEDY).locality():17.4f}"
    )


def _store(jobs: int) -> int:
    scenes = list(_scenes())
    with ProcessPoolExecutor(jobs) as pool:
        searched = dict(pool.map(_searched, scenes))
    kept: dict[str, list[float]] = json.loads(STORED.read_text()) if STORED.exists() else {}
    for digest, best in searched.items():
        before = kept.get(digest, [0.0, 1.0])
        kept[digest] = [max(before[0], round(best.locality, 6)), min(before[1], round(best.bound, 6))]
    now = {digest: kept[digest] for digest in sorted(searched)}
    lines = ",\n".join(f'"{digest}": {json.dumps(best)}' for digest, best in now.items())
    STORED.write_text("{\n" + lines + "\n}\n")
    print(f"{len(now)} scenarios stored in {STORED.name}")
    return 0


def _scenes() -> Iterator[Scenario]:
    """All that `benchmarks.quality` ends with: everybody there, and who is left after leaves and joins."""
    for nodes in reversed(NUMA_NODES):
        for graph in GRAPHS:
            for fill in FILLS:
                sample = scenario(graph, nodes, fill)
                for order in ("random", "churn"):
                    yield sample.with_replicas(remaining(sample, events(sample, order)))


def _searched(scenario: Scenario) -> tuple[str, BestKnown]:
    return scenario.digest, best_known(scenario)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.yardstick", description="How near the search comes to what is possible."
    )
    parser.add_argument("--time-limit", type=float, default=30.0, help="seconds for each proof")
    parser.add_argument("--seeds", type=int, default=1, help="problems of each size")
    parser.add_argument("--store", action="store_true", help="search the scenarios of benchmarks.quality, and keep it")
    parser.add_argument("--jobs", type=int, default=cpu_count() or 1, help="processes (default: one for each CPU)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
