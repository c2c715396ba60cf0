"""`python -m benchmarks.groups.apart`: groups whose replicas may not be on one node with others of their workload.

Required anti-affinity over host names, mixed: of each group as many pieces can be together as its workloads have
replicas. The best known packs these pieces all at once, the largest first, each on the NUMA node that holds it with
least left over.

examples:
  python -m benchmarks.groups.apart
  python -m benchmarks.groups.apart --nodes 20 --fill 0.8 --seed 4
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from random import Random
from statistics import fmean

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.cluster.load import Instance, Replica, locality
from benchmarks.cluster.nodes.population import NodeSpec, population
from benchmarks.graphs.app import app
from benchmarks.groups import best, drawn, play
from benchmarks.groups.command import quiet_parser
from benchmarks.groups.play import PENDING, Places

REPLICAS = (2, 4)

SERVICES = (2, 8)

FILLS = [0.3, 0.6]


def groups(specs: Sequence[NodeSpec], fill: float, random: Random) -> list[Instance]:
    """As `drawn.groups`; all workloads of a group have as many replicas."""
    left = fill * sum(spec.allocatable_milli for spec in specs)
    found: list[Instance] = []
    while left > 0:
        replicas = random.randint(*REPLICAS)
        services = [(f"s{at:02}", drawn.milli(random), replicas) for at in range(random.randint(*SERVICES))]
        found.append(Instance(f"team-{len(found):03}", app("apart", services, drawn.calls(len(services), random))))
        left -= best.need(found[-1])
    return found


def best_known(specs: Sequence[NodeSpec], all_groups: Sequence[Instance]) -> Places:
    free, places = best.free_room(specs), Places()
    for group in sorted(all_groups, key=best.need, reverse=True):
        used = set[str]()
        for index in range(group.app.services[0].replicas):
            piece = [replica for replica in group.replicas() if replica.index == index]
            need = sum(replica.cpu_milli for replica in piece)
            fitting = [place for place, room in free.items() if room >= need and place[0] not in used]
            home = min(fitting, key=lambda place: free[place], default=None)
            for at, replica in enumerate(piece):
                places[replica] = (home[0], str(home[1])) if home is not None else ("nowhere", str(at))
            if home is not None:
                free[home] -= need
                used.add(home[0])
    return places


def row(nodes: int, fill: float, seed: int) -> list[str]:
    random = Random(seed)
    specs = population(nodes, random)
    there = groups(specs, fill, random)
    pods: list[Replica] = [replica for group in there for replica in group.replicas()]
    random.shuffle(pods)
    ours = play.placed(specs, [pods], seed, settled=True, apart=True)
    known = best_known(specs, there)
    mine, yardstick = (fmean(locality(group.replicas(), places) for group in there) for places in (ours, known))
    pending = sum(1 for place in ours.values() if place == PENDING)
    return [
        str(nodes), f"{fill:.0%}", str(seed), str(len(there)), f"{mine:.3f}", f"{mine / yardstick:.3f}",
        f"{yardstick:.3f}", str(pending),
    ]  # fmt: skip


def new_table() -> Table:
    title = "each replica on a node of its own, as pods say themselves"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("nodes", "full", "seed", "groups", "numakin", "of best", "best", "pending"):
        table.add_column(column, justify="right")
    return table


def main() -> int:
    parser = quiet_parser("benchmarks.groups.apart", __doc__)
    parser.add_argument("--nodes", type=int, default=10, help="(default: 10)")
    parser.add_argument("--fill", type=float, action="append", help="share of the free CPUs (default: 0.3 and 0.6)")
    parser.add_argument("--seed", type=int, action="append", help="(default: 1, 2 and 3)")
    options = parser.parse_args()
    table = new_table()
    for fill in options.fill or FILLS:
        for seed in options.seed or [1, 2, 3]:
            table.add_row(*row(options.nodes, fill, seed))
    Console(width=110).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
