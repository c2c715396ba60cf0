"""Where a pod's peers are: for each NUMA node the share of its kin weight that would be local there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from numakin.placement.decide.request import Kin, Request
from numakin.placement.decide.scoring import kin_share
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Scope
from numakin.placement.state.occupancy import Occupancy, Reservation

PLANNED_WEIGHT = 1.0
"""What a planned slot weighs, as a share of all peers together (one peer's weight where there is none yet)."""


SIBLINGS_WEIGHT = 2.0
"""What the other containers of a pod weigh together, as a share of all its peers together (or of one peer, likewise):
they come before whatever else draws it.
"""


def peers_of(occupancy: Occupancy, request: Request, kin: Kin) -> list[tuple[Reservation, float]]:
    """The peers that have a reservation here, with their weights; with them the pod's other containers, where those are
    placed one by one. A peer whose own containers are, weighs as much as another, in all.
    """
    reservations, directory, group = occupancy.reservations, occupancy.directory, request.opt_in.group
    weights: Mapping[str, float] = kin.weights
    if not weights and group:
        members = directory.by_group.get(group, ())
        weights = {reservations[key].pod: 1.0 for key in members}
    peers = []
    for pod, weight in weights.items():
        if pod == request.pod or weight <= 0:
            continue
        if directory.by_pod.get(pod) == (pod,):  # as nearly all are: one reservation, of the whole pod
            peers.append((reservations[pod], weight))
        else:
            there = occupancy.members_of(pod)
            peers += [(reservation, weight / len(there)) for reservation in there]
    return [*peers, *_siblings(occupancy, request, kin.elsewhere + sum(weight for _, weight in peers))]


def weight_by_home(occupancy: Occupancy, request: Request, kin: Kin) -> dict[int, float]:
    """The peers' weights by the mask of their NUMA nodes. A group's members weigh alike, and are counted already."""
    group, home = request.opt_in.group, 0
    if kin.weights or not group:
        return _by_home(peers_of(occupancy, request, kin))
    for reservation in occupancy.members_of(request.pod):
        home |= reservation.numa_nodes.mask if reservation.group == group else 0
    grouped = occupancy.directory.grouped.items()
    counts = {mask: groups[group] - (mask == home) for mask, groups in grouped if group in groups}
    by_home = {mask: float(count) for mask, count in counts.items() if count}
    for mask, weight in _by_home(_siblings(occupancy, request, kin.elsewhere + sum(by_home.values()))).items():
        by_home[mask] = by_home.get(mask, 0.0) + weight
    return by_home


def _by_home(peers: Iterable[tuple[Reservation, float]]) -> dict[int, float]:
    by_home: dict[int, float] = {}
    for reservation, weight in peers:
        mask = reservation.numa_nodes.mask
        by_home[mask] = by_home.get(mask, 0.0) + weight
    return by_home


def _siblings(occupancy: Occupancy, request: Request, others: float) -> list[tuple[Reservation, float]]:
    """The pod's other containers with their weights. others: what all its peers weigh."""
    if request.opt_in.scope is Scope.POD:
        return []
    there = occupancy.members_of(request.pod, but=request.reservation_key)
    return [(reservation, SIBLINGS_WEIGHT * (others or 1.0) / len(there)) for reservation in there]


def strangers(occupancy: Occupancy, request: Request, kin: Kin) -> int:
    """The mask of the NUMA nodes where other groups live, as far as nothing shows which pods the newcomer talks with:
    else each group that outgrows its NUMA node would take its neighbour's, which then outgrows what is left of it.
    """
    return 0 if kin.weights else homes_of_others(occupancy, request.opt_in.group)


def homes_of_others(occupancy: Occupancy, group: str) -> int:
    """The mask of the NUMA nodes where other groups live; none for who names no group."""
    mask = 0
    for home, groups in occupancy.directory.grouped.items() if group else ():
        if home.bit_count() == 1 and len(groups) > (group in groups):
            mask |= home
    return mask


def pulls(machine: Machine, peers: Mapping[int, float], kin: Kin, strange: int = 0) -> dict[int, float]:
    """For each NUMA node with CPUs its kin share. peers: as `weight_by_home` has them; one on several NUMA nodes is a
    part of it on each, by their CPUs. strange: as `strangers` has it; those count as far from every peer that is not
    there.
    """
    total = kin.elsewhere + sum(peers.values())
    at_home: dict[int, float] = {}
    for mask, weight in peers.items():
        for numa_node, share in homes(machine, NumaSet(mask)).items():
            at_home[numa_node] = at_home.get(numa_node, 0.0) + weight * share
    planned = homes(machine, kin.planned)
    if planned:
        weight = PLANNED_WEIGHT * total or 1.0
        total += weight
        for numa_node, share in planned.items():
            at_home[numa_node] = at_home.get(numa_node, 0.0) + weight * share
    if not at_home:
        return dict.fromkeys(machine.cpu_nodes, 0.0)
    near = machine.closenesses
    shares = {
        cpu_node: kin_share(sum(weight * near[cpu_node][home] for home, weight in at_home.items()), total)
        for cpu_node in machine.cpu_nodes
    }
    if strange:
        away = min(near[a][b] for a in at_home for b in machine.cpu_nodes)
        for cpu_node in NumaSet(strange) & machine.cpu_nodes:
            local = at_home.get(cpu_node, 0.0)
            shares[cpu_node] = kin_share(local + away * (sum(at_home.values()) - local), total)
    return shares


def pulls_of(machine: Machine, occupancy: Occupancy, request: Request, kin: Kin) -> dict[int, float]:
    """Each NUMA node's share of the kin, of all peers and strangers that the request finds there."""
    peers = weight_by_home(occupancy, request, kin)
    return pulls(machine, peers, kin, strangers(occupancy, request, kin))


def homes(machine: Machine, numa_nodes: NumaSet) -> Mapping[int, float]:
    """The NUMA nodes with CPUs among these, each with its share of their CPUs."""
    sizes = machine.cpu_counts
    if len(numa_nodes) == 1:
        return {numa_nodes.lowest: 1.0} if sizes.get(numa_nodes.lowest) else {}
    counts = {numa_node: sizes[numa_node] for numa_node in numa_nodes if sizes.get(numa_node)}
    if len(counts) == 1:
        return dict.fromkeys(counts, 1.0)
    total = sum(counts.values())
    return {numa_node: size / total for numa_node, size in counts.items()}
