"""How local the affinity groups are, and how local they could be at best, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from extender.picture import Picture
from extender.state.groups import Member, locality
from extender.views.readout import Gauge, members
from placement.model.topology import Machine


def group_gauges(picture: Picture) -> Iterator[Gauge]:
    """A series for each group of at least two members."""
    groups = {group: group_members for group, group_members in members(picture).items() if len(group_members) > 1}
    machines = {state.view.machine for state in picture.nodes}
    yield (
        "numakin_extender_group_locality_ratio",
        "Share of a group's pairs of members that are on one NUMA node.",
        "group",
        {group: locality(group_members) or 0.0 for group, group_members in groups.items()},
    )
    yield (
        "numakin_extender_group_locality_possible_ratio",
        "The share that a group's size allows, on NUMA nodes as large as the cluster's largest and empty.",
        "group",
        {group: possible(group_members, machines) for group, group_members in groups.items()},
    )


def possible(group: Sequence[Member], machines: Iterable[Machine]) -> float:
    """The members taken as alike: as many as fit on one NUMA node share it, and the rest the next ones."""
    nodes = [node for machine in machines for node in machine.numa_nodes if node.cpus]
    demands = [member.reservation.demand for member in group]
    rooms = (
        (1000 * max((len(node.cpus) for node in nodes), default=0), sum(demand.cpu_milli for demand in demands)),
        (max((node.memory for node in nodes), default=0), sum(demand.memory for demand in demands)),
    )
    count = len(group)
    fit = min([count, *(room * count // requested for room, requested in rooms if requested)])
    if fit < 1:
        return 0.0
    full, rest = divmod(count, fit)
    return (full * fit * (fit - 1) + rest * (rest - 1)) / (count * (count - 1))
