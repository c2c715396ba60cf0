"""Where a pod's peers are: for each NUMA node the share of its kin weight that would be local there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
    own = request.reservation_key
    weighted: Iterable[tuple[str, float]]
    directory = occupancy.directory
    if kin.weights:
        weighted = ((key, weight) for pod, weight in kin.weights.items() for key in directory.by_pod.get(pod, ()))
    else:
        group = request.opt_in.group
        weighted = ((key, 1.0) for key in directory.by_group.get(group, ())) if group else ()
    reservations = ((occupancy.reservations[key], weight) for key, weight in weighted if key != own)
    return [(reservation, weight) for reservation, weight in reservations if reservation.opted_in and weight > 0]


def strangers(occupancy: Occupancy, request: Request, kin: Kin) -> int:
    """The mask of the NUMA nodes where other groups live, as far as nothing shows which pods the newcomer talks with:
    else each group that outgrows its NUMA node would take its neighbour's, which then outgrows what is left of it.
    """
    if kin.weights or not request.opt_in.group:
        return 0
    group, mask = request.opt_in.group, 0
    for numa_node, groups in occupancy.directory.grouped.items():
        if len(groups) > (group in groups):
            mask |= 1 << numa_node
    return mask


def pulls(machine: Machine, peers: list[tuple[Reservation, float]], kin: Kin, strange: int = 0) -> dict[int, float]:
    """For each NUMA node with CPUs its kin share. A peer on several NUMA nodes is a part of it on each, by their
    CPUs. strange: as `strangers` has it; those count as far from every peer that is not there.
    """
    together: dict[int, float] = {}
    for reservation, weight in peers:
        mask = reservation.numa_nodes.mask
        together[mask] = together.get(mask, 0.0) + weight
    at_home: dict[int, float] = {}
    for mask, weight in together.items():
        for numa_node, share in homes(machine, NumaSet(mask)).items():
            at_home[numa_node] = at_home.get(numa_node, 0.0) + weight * share
    total = sum(weight for _, weight in peers) + kin.elsewhere
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


def homes(machine: Machine, numa_nodes: NumaSet) -> Mapping[int, float]:
    """The NUMA nodes with CPUs among these, each with its share of their CPUs."""
    sizes = machine.cpu_counts
    counts = {numa_node: sizes[numa_node] for numa_node in numa_nodes if sizes.get(numa_node)}
    if len(counts) == 1:
        return dict.fromkeys(counts, 1.0)
    total = sum(counts.values())
    return {numa_node: size / total for numa_node, size in counts.items()}
