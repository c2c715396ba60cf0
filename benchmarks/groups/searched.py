"""`python -m benchmarks.groups.searched`: what one search for groups to bring together costs on large clusters.

Each group's pods lie on three NUMA nodes, as many as there is room for; the extender knows the cluster as after
reports. CPU is the searching thread's own, without the rests that the extender's thread takes; memory is what the
process has at its highest beyond what it had before.

examples:
  python -m benchmarks.groups.searched
  python -m benchmarks.groups.searched --nodes 500 --fill 0.6
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from random import Random

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.cluster.nodes.population import population
from benchmarks.groups import best, drawn
from benchmarks.groups.command import quiet_parser
from benchmarks.groups.play import Played, row
from extender.state.pods import Changes
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.state.occupancy import Reservation

PIECES = 3

FROM_NOW = "5"
"""What makes the kernel count the most resident memory anew (proc(5), clear_refs)."""


@dataclass(frozen=True)
class Searched:
    """cut: groups over several nodes. piece_ms: the longest piece of work between two rests. mebibytes: at most beyond
    what there was.
    """

    cut: int
    pods: int
    plans: int
    restarts: int
    cpu_s: float
    piece_ms: float
    mebibytes: float


def cut_cluster(nodes: int, fill: float, seed: int) -> tuple[Played, int]:
    """And its pods."""
    random = Random(seed)
    specs = population(nodes, random)
    free = best.free_room(specs)
    played, rows = Played(specs, held=False), []
    there: dict[str, list[Reservation]] = {}
    for group in drawn.groups(specs, fill, random):
        places = random.sample([*free], PIECES)
        for replica in group.replicas():
            place = max(places, key=lambda place: free[place])
            if free[place] < replica.cpu_milli:
                continue
            free[place] -= replica.cpu_milli
            pod = replace(row(replica), node=place[0], phase="Running")
            rows.append(pod)
            demand = Demand(replica.cpu_milli, replica.memory)
            group_name = f"{replica.namespace}/{group.app.name}"
            entry = Reservation(pod.uid, pod.uid, group_name, NumaSet.of((place[1],)), demand)
            there.setdefault(place[0], []).append(entry)
    played.cluster.apply_pods(Changes(rows=tuple(rows), whole=True))
    for node, entries in there.items():
        played.reported[node] = played.reported[node].changed({entry.key: entry for entry in entries})
        played.report(node)
    return played, len(rows)


def searched(nodes: int, fill: float, seed: int) -> Searched:
    played, pods = cut_cluster(nodes, fill, seed)
    Path("/proc/self/clear_refs").write_text(FROM_NOW)
    before, pieces = _most_resident(), [0.0]
    began = last = time.thread_time()

    def pause() -> None:
        nonlocal last
        now = time.thread_time()
        pieces.append(now - last)
        last = now

    played.cluster.regroup(pause)
    took = time.thread_time() - began
    found = played.cluster.regroupings
    cut = len(found.plans) + len(found.apart)
    restarts = sum(plan.restarts for plan in found.plans.values())
    return Searched(
        cut, pods, len(found.plans), restarts, took, 1e3 * max(pieces), (_most_resident() - before) / (1 << 20)
    )


def _most_resident() -> int:
    """Bytes, since it was last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def main() -> int:
    parser = quiet_parser("benchmarks.groups.searched", __doc__)
    parser.add_argument("--nodes", type=int, action="append", help="may be given several times (default: 500 and 5000)")
    parser.add_argument("--fill", type=float, default=0.3, help="share of the free CPUs asked for (default: 0.3)")
    parser.add_argument("--seed", type=int, default=1, help="(default: 1)")
    options = parser.parse_args()
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("nodes", "pods", "groups cut", "plans", "evictions", "CPU s", "longest piece, ms", "MiB"):
        table.add_column(column, justify="right")
    for nodes in options.nodes or [500, 5000]:
        with get_context("fork").Pool(1) as pool:  # what one size leaves in memory is not the other's
            found = pool.apply(searched, (nodes, options.fill, options.seed))
        table.add_row(
            str(nodes), str(found.pods), str(found.cut), str(found.plans), str(found.restarts), f"{found.cpu_s:.2f}",
            f"{found.piece_ms:.0f}", f"{found.mebibytes:.0f}",
        )  # fmt: skip
    Console(width=110).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
