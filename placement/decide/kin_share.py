"""Where a pod's peers are: for each NUMA node the share of its kin weight that would be local there."""

from __future__ import annotations

from collections.abc import Mapping

from placement.decide.request import Kin, Request
from placement.decide.scoring import kin_share
from placement.model.cpuset import NumaSet
from placement.model.topology import Machine
from placement.state.occupancy import Occupancy, Reservation

PLANNED_WEIGHT = 1.0
"""What a planned slot weighs, as a share of all peers together (one peer's weight where there is none yet)."""


def peers_of(occupancy: Occupancy, request: Request, kin: Kin) -> list[tuple[Reservation, float]]:
    """The peers that have a reservation here, with their weights; in container scope a pod's other containers are peers
    where they are named.
    """
    own, group = request.reservation_key, request.opt_in.group
    directory, reservations = occupancy.directory, occupancy.reservations
    if kin.weights:
        return [
            (reservation, weight)
            for pod, weight in kin.weights.items()
            for key in directory.by_pod.get(pod, ())
            if key != own and weight > 0 and (reservation := reservations[key]).opted_in
        ]
    members = directory.by_group.get(group, ()) if group else ()
    return [(reservation, 1.0) for key in members if key != own and (reservation := reservations[key]).opted_in]


def weight_by_home(occupancy: Occupancy, request: Request, kin: Kin) -> dict[int, float]:
    """The peers' weights by the mask of their NUMA nodes. A group's members weigh alike, and are counted already."""
    together: dict[int, float] = {}
    if kin.weights:
        for reservation, weight in peers_of(occupancy, request, kin):
            mask = reservation.numa_nodes.mask
            together[mask] = together.get(mask, 0.0) + weight
        return together
    group = request.opt_in.group
    if not group:
        return together
    own = occupancy.reservations.get(request.reservation_key)
    mine = own.numa_nodes.mask if own is not None and own.group == group else None
    grouped = occupancy.directory.grouped.items()
    counts = {mask: groups[group] - (mask == mine) for mask, groups in grouped if group in groups}
    return {mask: float(count) for mask, count in counts.items() if count}


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
    """As `pulls` has them, of all peers and strangers that the request finds there."""
    peers = weight_by_home(occupancy, request, kin)
    return pulls(machine, peers, kin, strangers(occupancy, request, kin))


def homes(machine: Machine, numa_nodes: NumaSet) -> Mapping[int, float]:
    """The NUMA nodes with CPUs among these, each with its share of their CPUs."""
    sizes = machine.cpu_counts
    counts = {numa_node: sizes[numa_node] for numa_node in numa_nodes if sizes.get(numa_node)}
    if len(counts) == 1:
        return dict.fromkeys(counts, 1.0)
    total = sum(counts.values())
    return {numa_node: size / total for numa_node, size in counts.items()}
