"""What of a group is about to be replaced, as by a rolling update: its members of another template than their
workload's newest pod, and those that are being deleted. They are no kin that stay.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from extender.planning.coming import Pod
from extender.scoring.node_table import NodeTable
from extender.state.columns.free_room import NO_ROOM, CpuMemoryPods, NumaPlace
from extender.state.pods import PodRow
from numakin.placement.model.demand import Demand, counted
from numakin.placement.state.allocations import as_one
from numakin.placement.state.occupancy import Reservation


@dataclass(frozen=True, slots=True)
class Renewal:
    """going: how many leave each NUMA node, and freed: what they have there. again: the pods that are to come in their
    place and are not created yet. ahead: what may come before they have left their room.
    """

    going: Counter[NumaPlace] = field(default_factory=Counter)
    freed: Mapping[NumaPlace, CpuMemoryPods] = field(default_factory=dict)
    again: Sequence[Pod] = ()
    ahead: CpuMemoryPods = NO_ROOM


def renewal_of(nodes: NodeTable, group: str, rows: Mapping[str, PodRow]) -> Renewal:
    """rows: of the pods that there are, by uid."""
    going, freed = Counter[NumaPlace](), dict[NumaPlace, CpuMemoryPods]()
    former = defaultdict[str, list[tuple[PodRow, Demand]]](list)
    for node, row, there in _leaving(nodes, group, rows):
        if len(there.numa_nodes) == 1:
            place = NumaPlace(node, there.numa_nodes.lowest)
            cpu, memory, count = freed.get(place, NO_ROOM)
            freed[place] = cpu + there.demand.expected_milli, memory + there.demand.memory, count + 1
            going[place] += 1
        if row.comes_again:
            former[row.workload].append((row, there.demand))
    ahead, again = NO_ROOM, list[Pod]()
    for workload, alike in former.items():
        coming, (cpu, memory, count) = _again(nodes, group, workload, alike)
        again += coming
        ahead = ahead[0] + cpu, ahead[1] + memory, ahead[2] + count
    return Renewal(going, freed, again, ahead)


def _leaving(nodes: NodeTable, group: str, rows: Mapping[str, PodRow]) -> Iterator[tuple[str, PodRow, Reservation]]:
    """Each with its node. Those on cordoned nodes go by that alone."""
    for node in nodes.groups.nodes(group).keys() - nodes.cordoned:
        view = nodes.view(node)
        for uid in dict.fromkeys(there.pod for there in nodes.members_on((node,), group)):
            row = rows.get(uid)
            if view is not None and row is not None and (row.leaving or nodes.to_come.templates.former(row)):
                yield node, row, as_one(view.occupancy.members_of(uid))


def _again(
    nodes: NodeTable, group: str, workload: str, alike: Sequence[tuple[PodRow, Demand]]
) -> tuple[list[Pod], CpuMemoryPods]:
    """The pods that are to come in the place of these, and what of them may come ahead. As many as there are to be,
    where their controller says it.
    """
    kept = nodes.to_come.kept(group, workload)
    first, demand = alike[0]
    if first.own_terms or first.devices or (kept is not None and (kept.devices or not kept.anywhere)):
        return [], NO_ROOM
    count, ahead, terms = len(alike), 0, first.terms
    if kept is not None:
        demand, terms, ahead = counted(kept.demand, nodes.known.uses.get(workload, 0)), kept.terms, kept.ahead
        count -= max(0, nodes.to_come.counts.total(workload) - kept.count)
    cpu, memory = demand.expected_milli, demand.memory
    where, pages = nodes.admission.where(terms), tuple(sorted(demand.hugepages.items()))
    pods = [
        Pod(f"{row.uid} again", workload, (cpu, memory, 1), where, pages, overhead=row.beside)
        for row, _ in alike[: max(0, count)]
    ]
    return pods, (ahead * cpu, ahead * memory, ahead)
