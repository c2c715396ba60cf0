"""`python -m benchmarks.groups.apart`: groups whose replicas are kept off each other's nodes or are spread over zones.

Required anti-affinity over host names, or DoNotSchedule over zones, mixed: of each group as many pieces can be together
as its workloads have replicas, or as there are zones. The best known packs these pieces all at once, the largest group
first, each on the NUMA node that holds it with least left over.

examples:
  python -m benchmarks.groups.apart
  python -m benchmarks.groups.apart --by zone
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
from benchmarks.groups.play import PENDING, Apart, Places

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


def best_known(specs: Sequence[NodeSpec], all_groups: Sequence[Instance], by: Apart) -> Places:
    free, places = best.free_room(specs), Places()
    domain = {spec.name: spec.name if by is Apart.HOST else play.zone(spec) for spec in specs}
    for group in sorted(all_groups, key=best.need, reverse=True):
        used = set[str]()
        replicas = group.app.services[0].replicas
        count = replicas if by is Apart.HOST else min(replicas, play.ZONES)
        for index in range(count):
            piece = [replica for replica in group.replicas() if replica.index % count == index]
            need = sum(replica.cpu_milli for replica in piece)
            fitting = [place for place, room in free.items() if room >= need and domain[place[0]] not in used]
            home = min(fitting, key=lambda place: free[place], default=None)
            for at, replica in enumerate(piece):
                places[replica] = (home[0], str(home[1])) if home is not None else ("nowhere", str(at))
            if home is not None:
                free[home] -= need
                used.add(domain[home[0]])
    return places


def row(nodes: int, fill: float, seed: int, by: Apart) -> list[str]:
    random = Random(seed)
    specs = population(nodes, random)
    there = groups(specs, fill, random)
    pods: list[Replica] = [replica for group in there for replica in group.replicas()]
    random.shuffle(pods)
    ours = play.placed(specs, [pods], seed, settled=True, apart=by)
    known = best_known(specs, there, by)
    mine, yardstick = (fmean(locality(group.replicas(), places) for group in there) for places in (ours, known))
    pending = sum(1 for place in ours.values() if place == PENDING)
    return [
        str(nodes), f"{fill:.0%}", str(seed), str(len(there)), f"{mine:.3f}", f"{mine / yardstick:.3f}",
        f"{yardstick:.3f}", str(pending),
    ]  # fmt: skip


def new_table(by: Apart) -> Table:
    title = f"replicas kept apart by {by}, as pods say themselves"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("nodes", "full", "seed", "groups", "numakin", "of best", "best", "pending"):
        table.add_column(column, justify="right")
    return table


def main() -> int:
    parser = quiet_parser("benchmarks.groups.apart", __doc__)
    parser.add_argument("--nodes", type=int, default=10, help="(default: 10)")
    parser.add_argument("--fill", type=float, action="append", help="share of the free CPUs (default: 0.3 and 0.6)")
    parser.add_argument("--seed", type=int, action="append", help="(default: 1, 2 and 3)")
    parser.add_argument("--by", type=Apart, choices=[*Apart], default=Apart.HOST, help="(default: host)")
    options = parser.parse_args()
    table = new_table(options.by)
    for fill in options.fill or FILLS:
        for seed in options.seed or [1, 2, 3]:
            table.add_row(*row(options.nodes, fill, seed, options.by))
    Console(width=110).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
