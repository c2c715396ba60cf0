"""How local the affinity groups are, and how local they could be at best, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import nsmallest
from threading import Lock

from extender.picture import Figures
from extender.scoring.node_table import NodeState
from extender.views.group_sums import GroupSums, MemberSum
from extender.views.readout import Gauge, single
from numakin.placement.model.topology import Machine

MOST_GROUPS = 2_000
"""Series of each gauge: groups are named by who creates pods, and by who takes an enforcer over."""


@dataclass(frozen=True, slots=True)
class NumaNodeSize:
    """Of the largest NUMA nodes with CPUs; millicores and bytes."""

    cpu_milli: int = 0
    memory: int = 0

    @classmethod
    def of(cls, machine: Machine) -> NumaNodeSize:
        nodes = [node for node in machine.numa_nodes if node.cpus]
        cpus = max((len(node.cpus) for node in nodes), default=0)
        return cls(1000 * cpus, max((node.memory for node in nodes), default=0))

    @classmethod
    def largest(cls, rooms: Iterable[NumaNodeSize]) -> NumaNodeSize:
        listed = list(rooms)
        cpu_milli = max((room.cpu_milli for room in listed), default=0)
        return cls(cpu_milli, max((room.memory for room in listed), default=0))


class GroupGauges:
    """A series for each of the largest groups of at least two members. read: the figures of now. Thread-safe."""

    def __init__(self, read: Callable[[], Figures]) -> None:
        self._read, self._lock = read, Lock()
        self._sums = GroupSums()
        self._machines: dict[str, tuple[Machine, NumaNodeSize]] = {}

    def __call__(self) -> Iterator[Gauge]:
        figures = self._read()
        with self._lock:
            sums = self._sums.read(figures.nodes, figures.groups)
            largest = self._largest(figures.nodes)
        all_groups = {group: members for group, members in sums.items() if members.count > 1}
        largest_first = nsmallest(MOST_GROUPS, all_groups, key=lambda group: (-all_groups[group].count, group))
        groups = {group: all_groups[group] for group in sorted(largest_first)}
        yield single(
            "numakin_extender_groups",
            f"Groups of at least two members; the {MOST_GROUPS:,} largest have series of their own.",
            len(all_groups),
        )
        yield (
            "numakin_extender_group_locality_ratio",
            "Share of a group's pairs of members that are on one NUMA node.",
            "group",
            {group: members.locality for group, members in groups.items()},
        )
        yield (
            "numakin_extender_group_locality_possible_ratio",
            "The share that a group's size allows, on NUMA nodes as large as the cluster's largest and empty.",
            "group",
            {group: possible(members, largest) for group, members in groups.items()},
        )

    def _largest(self, nodes: Iterable[NodeState]) -> NumaNodeSize:
        """Machines seldom change: each is looked at once."""
        before, self._machines = self._machines, {}
        for view in (state.view for state in nodes):
            seen = before.get(view.name)
            self._machines[view.name] = (
                seen if seen is not None and seen[0] is view.machine else (view.machine, NumaNodeSize.of(view.machine))
            )
        return NumaNodeSize.largest(room for _, room in self._machines.values())


def possible(members: MemberSum, largest: NumaNodeSize) -> float:
    """The members taken as alike: as many as fit on one NUMA node share it, and the rest the next ones. largest: of the
    cluster's NUMA nodes.
    """
    count = members.count
    rooms = (largest.cpu_milli, members.cpu_milli), (largest.memory, members.memory)
    fit = min([count, *(room * count // requested for room, requested in rooms if requested)])
    if fit < 1:
        return 0.0
    full, rest = divmod(count, fit)
    return (full * fit * (fit - 1) + rest * (rest - 1)) / (count * (count - 1))
