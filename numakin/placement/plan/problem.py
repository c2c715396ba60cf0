"""What is known of a machine and of its workloads, put as a problem of partition.

Bins are the NUMA nodes with CPUs. A member on one of them is either free to go elsewhere or pinned; one over several
has its share of each taken away from what they can hold, and is no member's near peer. What runs there without being a
member takes its room likewise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from numakin.placement.decide.memory import capacity
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.topology import Machine
from numakin.placement.plan.partition import PartitionProblem
from numakin.placement.state.load_index import EMPTY
from numakin.placement.state.occupancy import Occupancy

REMOTE_SHARE = 0.1
"""What traffic to a neighbour at the local distance would count, against 1 at home; falls with the SLIT distance.
Small, so that distances settle where the parts of a split group go, and never split one.
"""

Weights = Mapping[tuple[str, str], float]
"""What each pair of workloads exchanges in all (`Graph.weights`), taken as spread evenly over their replicas."""

CpuAndMemory = tuple[int, int]
"""CPU in millicores, memory in bytes."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What is expected on the machine.

    replicas: in all, those that run there already included. demand: of one replica.
    """

    name: str
    demand: Demand
    replicas: int


@dataclass(frozen=True, slots=True)
class PlacedMembers:
    """Members on one NUMA node each. keys: their reservations, by (workload, NUMA node's id). wide: how many others
    there are of each workload: over several NUMA nodes, or with their containers placed one by one.
    """

    keys: Mapping[tuple[str, int], tuple[str, ...]]
    wide: Mapping[str, int]

    def counts(self, machine: Machine, workloads: Sequence[Workload]) -> list[list[int]]:
        """Workloads x NUMA nodes with CPUs."""
        return [[len(self.keys.get((workload.name, node), ())) for node in machine.cpu_nodes] for workload in workloads]


def placed_members(occupancy: Occupancy, members: Mapping[str, str]) -> PlacedMembers:
    """members: the workload of each reservation key."""
    keys: dict[tuple[str, int], tuple[str, ...]] = {}
    wide: Counter[str] = Counter()
    for key, name in members.items():
        reservation = occupancy.reservations.get(key)
        if reservation is None:
            continue
        containers = occupancy.members_of(reservation.pod)
        if len(containers) > 1:
            wide[name] += reservation is containers[0]
        elif len(reservation.numa_nodes) == 1:
            place = name, reservation.numa_nodes.lowest
            keys[place] = (*keys.get(place, ()), key)
        else:
            wide[name] += 1
    return PlacedMembers(keys, wide)


def problem_of(
    machine: Machine,
    occupancy: Occupancy,
    members: Mapping[str, str],
    workloads: Sequence[Workload],
    weights: Weights,
    *,
    movable: Collection[str] = (),
) -> PartitionProblem:
    """members: the workload of each reservation key. movable: reservation keys of those that may go elsewhere; the
    others stay.
    """
    there = placed_members(occupancy, members)
    counts = there.counts(machine, workloads)
    names = {workload.name for workload in workloads}
    freed = {key for (name, _), keys in there.keys.items() if name in names for key in keys}
    stay = {place: tuple(key for key in keys if key not in movable) for place, keys in there.keys.items()}
    room = free_room(machine, _without(machine, occupancy, freed))
    nodes = list(machine.cpu_nodes)
    return PartitionProblem(
        sizes=[(workload.demand.expected_milli, workload.demand.memory) for workload in workloads],
        counts=[
            max(workload.replicas - there.wide.get(workload.name, 0), sum(row))
            for workload, row in zip(workloads, counts, strict=True)
        ],
        pulls=pulls_of({workload.name: workload.replicas for workload in workloads}, weights),
        capacity=[room[node] for node in nodes],
        nearness=[[nearness(machine, a, b) for b in nodes] for a in nodes],
        pinned=PlacedMembers(stay, {}).counts(machine, workloads),
    )


def nearness(machine: Machine, numa_node: int, other: int) -> float:
    """What traffic between two NUMA nodes counts."""
    return 1.0 if numa_node == other else REMOTE_SHARE * machine.closeness(numa_node, other)


def free_room(machine: Machine, occupancy: Occupancy) -> dict[int, CpuAndMemory]:
    """What no pod has asked for or is expected to use, by NUMA node with CPUs."""
    return {cpu_node: room_on(machine, occupancy, cpu_node) for cpu_node in machine.cpu_nodes}


def room_on(machine: Machine, occupancy: Occupancy, numa_node: int) -> CpuAndMemory:
    """What no pod has asked for or is expected to use on one NUMA node with CPUs, with the memory that is nearest to
    it.
    """
    rows = occupancy.load(machine).rows
    cpus = (machine.node(numa_node).cpus.mask & ~occupancy.reserved.mask).bit_count()
    mems = machine.nearest_mems(NumaSet(1 << numa_node))
    free = sum(capacity(machine, mem) - rows.get(mem, EMPTY).memory for mem in mems)
    return 1000 * cpus - rows.get(numa_node, EMPTY).expected, free


def fits(demand: Demand, room: CpuAndMemory) -> bool:
    return demand.expected_milli <= room[0] and demand.memory <= room[1]


def _without(machine: Machine, occupancy: Occupancy, keys: Collection[str]) -> Occupancy:
    return replace(
        occupancy,
        reservations={key: reservation for key, reservation in occupancy.reservations.items() if key not in keys},
        allocations={
            key: allocation for key, allocation in occupancy.allocations.items() if allocation.reservation not in keys
        },
    ).on(machine)


def pulls_of(replicas: Mapping[str, int], weights: Weights) -> list[dict[int, float]]:
    """Weight of each pair of replicas: the weight of the two names over the number of pairs. replicas: by name, in the
    order of the kinds.
    """
    index = {name: kind for kind, name in enumerate(replicas)}
    pulls: list[dict[int, float]] = [{} for _ in replicas]
    for (a, b), weight in weights.items():
        if a not in index or b not in index or weight <= 0:
            continue
        first, other = index[a], index[b]
        mine, theirs = max(1, replicas[a]), max(1, replicas[b])
        pairs = mine * theirs if first != other else max(1, mine * (mine - 1) // 2)
        for here, there in {(first, other), (other, first)}:
            pulls[here][there] = pulls[here].get(there, 0.0) + weight / pairs
    return pulls
