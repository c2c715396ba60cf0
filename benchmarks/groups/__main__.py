"""`python -m benchmarks.groups`: how whole groups of unlike sizes become, beside rules by hand and the best known.

examples:
  python -m benchmarks.groups                                    10 and 100 nodes, a third full, seeds 1 to 3
  python -m benchmarks.groups --nodes 100 --fill 0.6 --seed 4 --order mixed
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Iterable, Sequence
from random import Random
from statistics import fmean

import structlog
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.cluster.load import Instance, locality
from benchmarks.cluster.nodes.population import population
from benchmarks.groups import best, by_hand, drawn, play
from benchmarks.groups.play import Places


def main() -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    options = _options()
    console = Console(width=110)
    for nodes in options.nodes or [10, 100]:
        for fill in options.fill or [0.3]:
            table = _table(f"{nodes} nodes, {fill:.0%} of what is free asked for")
            for seed in options.seed or [1, 2, 3]:
                for row in rows(nodes, fill, seed, options.order or list(drawn.ORDERS), options.milp):
                    table.add_row(*row)
            console.print(table)
    return 0


def rows(nodes: int, fill: float, seed: int, orders: Sequence[str], milp_s: float) -> Iterable[list[str]]:
    random = Random(seed)
    specs = population(nodes, random)
    groups = drawn.groups(specs, fill, random)
    known = best.best(specs, groups, milp_s)
    yardstick = fmean(known.values())
    for order in orders:
        waves = drawn.ORDERS[order](groups, Random(seed))
        begin = time.process_time()
        ours = play.placed(specs, waves, seed, settled=order != "trickled")
        took = 1e3 * (time.process_time() - begin) / len(ours)
        reached, cut = _reached(groups, ours)
        could = sum(1 for group in groups if known[group] == 1.0 and reached[group] < 1.0)
        pods = [replica for wave in waves for replica in wave]
        rules = {}
        for required in (True, False):
            played = [by_hand.placed(specs, pods, policy, seed, required=required) for policy in by_hand.POLICIES]
            rules[required] = max(fmean(_reached(groups, places)[0].values()) for places in played)
        mine = fmean(reached.values())
        yield [
            order, str(seed), str(len(groups)), f"{mine:.3f}", f"{mine / yardstick:.3f}", str(cut), str(could),
            f"{rules[True]:.3f}", f"{rules[False]:.3f}", f"{yardstick:.3f}",
            str(sum(1 for value in known.values() if value < 1.0)), f"{took:.2f}",
        ]  # fmt: skip


def _reached(groups: Sequence[Instance], places: Places) -> tuple[dict[Instance, float], int]:
    """Each group's locality, and how many are on several nodes."""
    reached, cut = {}, 0
    for group in groups:
        members = group.replicas()
        reached[group] = locality(members, places)
        cut += len({places[member][0] for member in members}) > 1
    return reached, cut


def _table(title: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    columns = (
        "order",
        "seed",
        "groups",
        "numakin",
        "of best",
        "cut",
        "could be whole",
        "required",
        "preferred",
        "best",
        "cut there",
        "ms/pod",
    )
    for column in columns:
        table.add_column(column, justify="left" if column == "order" else "right")
    return table


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.groups", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, action="append", help="may be given several times (default: 10 and 100)")
    parser.add_argument("--fill", type=float, action="append", help="share of the free CPUs asked for (default: 0.3)")
    parser.add_argument("--seed", type=int, action="append", help="(default: 1, 2 and 3)")
    parser.add_argument("--order", action="append", choices=list(drawn.ORDERS), help="(default: all)")
    parser.add_argument("--milp", type=float, default=best.MILP_S, help="seconds of the exact search (default: 20)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
