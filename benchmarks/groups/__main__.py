"""`python -m benchmarks.groups`: how whole groups of unlike sizes become, beside rules by hand and the best known.

examples:
  python -m benchmarks.groups                                    10 and 100 nodes, a third full, seeds 1 to 3
  python -m benchmarks.groups --nodes 100 --fill 0.6 --seed 4 --order mixed
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random
from statistics import fmean

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.cluster.load import Instance, Replica, locality
from benchmarks.cluster.nodes.population import NodeSpec, population
from benchmarks.groups import apart, best, by_hand, drawn, play, regroup
from benchmarks.groups.command import quiet_parser
from benchmarks.groups.play import Places

SEEDS = [1, 2, 3]


def main() -> int:
    options = _options()
    console = Console(width=130)
    for nodes in options.nodes or [10, 100]:
        for fill in options.fill or [0.3]:
            table = _table(f"{nodes} nodes, {fill:.0%} of what is free asked for")
            for seed in options.seed or SEEDS:
                for row in rows(nodes, fill, seed, options.order or list(drawn.ORDERS), options.milp):
                    table.add_row(*row)
            console.print(table)
    if not any((options.nodes, options.fill, options.seed, options.order)):
        again = regroup.new_table("brought together again: nearly full, then 40 % of the groups end")
        for seed in SEEDS:
            again.add_row(*regroup.row_of(10, seed, regroup.told(10, 0.95, 0.4, seed, options.milp)))
        console.print(again)
        for by in play.Apart:
            kept_apart = apart.new_table(by)
            for fill in apart.FILLS:
                for seed in SEEDS:
                    kept_apart.add_row(*apart.row(10, fill, seed, by))
            console.print(kept_apart)
    return 0


def rows(nodes: int, fill: float, seed: int, orders: Sequence[str], milp_s: float) -> Iterable[list[str]]:
    random = Random(seed)
    specs = population(nodes, random)
    groups = drawn.groups(specs, fill, random)
    known = best.best(specs, groups, milp_s)
    for order in orders:
        waves = drawn.ORDERS[order](groups, Random(seed))
        online = fmean(best.in_waves(specs, _groups(waves), milp_s).values())
        begin = time.process_time()
        ours = play.placed(specs, waves, seed, settled=order != "trickled")
        took = 1e3 * (time.process_time() - begin) / len(ours)
        reached, cut = _reached(groups, ours)
        pods = [replica for wave in waves for replica in wave]
        rules = {}
        for required in (True, False):
            played = [by_hand.placed(specs, pods, policy, seed, required=required) for policy in by_hand.POLICIES]
            rules[required] = max(fmean(_reached(groups, places)[0].values()) for places in played)
        mine, yardstick = fmean(reached.values()), fmean(known.values())
        whole, possible = ([*values].count(1.0) for values in (reached.values(), known.values()))
        yield [
            order, str(seed), str(len(groups)), f"{mine:.3f}", f"{mine / yardstick:.3f}", f"{mine / online:.3f}",
            f"{rules[True]:.3f}", f"{rules[False]:.3f}", f"{yardstick:.3f}", f"{whole} / {possible}",
            str(len(_had_room(specs, groups, ours))), str(cut), f"{took:.2f}",
        ]  # fmt: skip


def _groups(waves: Sequence[Sequence[Replica]]) -> list[list[Instance]]:
    """Those that each wave begins."""
    seen = dict[Instance, int]()
    for at, wave in enumerate(waves):
        for replica in wave:
            seen.setdefault(replica.instance, at)
    return [[group for group, first in seen.items() if first == at] for at in sorted({*seen.values()})]


def _reached(groups: Sequence[Instance], places: Places) -> tuple[dict[Instance, float], int]:
    """Each group's locality, and how many are on several nodes."""
    reached, cut = {}, 0
    for group in groups:
        members = group.replicas()
        reached[group] = locality(members, places)
        cut += len({places[member][0] for member in members}) > 1
    return reached, cut


def _had_room(specs: Sequence[NodeSpec], groups: Sequence[Instance], places: Places) -> list[Instance]:
    """The groups over several NUMA nodes that one would hold, with all others where they are."""
    free = {(node, str(numa_node)): room for (node, numa_node), room in best.free_room(specs).items()}
    for replica, place in places.items():
        if place in free:
            free[place] -= replica.cpu_milli
    cut = []
    for group in groups:
        here = Counter[tuple[str, str]]()
        for replica in group.replicas():
            here[places[replica]] += replica.cpu_milli
        if len(here) > 1 and any(room + here[place] >= best.need(group) for place, room in free.items()):
            cut.append(group)
    return cut


def _table(title: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    columns = (
        "order",
        "seed",
        "groups",
        "numakin",
        "of best",
        "in turn",
        "required",
        "preferred",
        "best",
        "whole / best",
        "had room",
        "cut",
        "ms/pod",
    )
    for column in columns:
        table.add_column(column, justify="left" if column == "order" else "right", no_wrap=True)
    return table


def _options() -> argparse.Namespace:
    parser = quiet_parser("benchmarks.groups", __doc__)
    parser.add_argument("--nodes", type=int, action="append", help="may be given several times (default: 10 and 100)")
    parser.add_argument("--fill", type=float, action="append", help="share of the free CPUs asked for (default: 0.3)")
    parser.add_argument("--seed", type=int, action="append", help="(default: 1, 2 and 3)")
    parser.add_argument("--order", action="append", choices=list(drawn.ORDERS), help="(default: all)")
    parser.add_argument("--milp", type=float, default=best.MILP_S, help="seconds of the exact search (default: 20)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
