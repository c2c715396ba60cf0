"""What is known of a machine and of its workloads, put as a problem of partition.

Bins are the NUMA nodes with CPUs. A member on one of them is either free to go elsewhere or pinned; one over several
has its share of each taken away from what they can hold, and is nobody's near peer. What runs there without being a
member takes its room likewise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from placement.cpuset import NumaSet
from placement.demand import Demand
from placement.memory import capacity
from placement.occupancy import Occupancy
from placement.partition import Problem
from placement.tally import EMPTY
from placement.topology import Machine

REMOTE_SHARE = 0.1
"""What traffic to a neighbour at the local distance would count, against 1 at home; falls with the SLIT distance.
Small, so that distances settle where the parts of a split group go, and never split one.
"""

Weights = Mapping[tuple[str, str], float]
"""What each pair of workloads exchanges in all (`Graph.weights`), taken as spread evenly over their replicas."""

Room = tuple[int, int]
"""CPU in thousandths, memory in bytes."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What is expected on the machine.

    replicas: in all, those that run there already included. demand: of one replica.
    """

    name: str
    demand: Demand
    replicas: int


@dataclass(frozen=True, slots=True)
class Sitting:
    """Members on one NUMA node each. keys: their seats, by (workload, NUMA node's id)."""

    keys: Mapping[tuple[str, int], tuple[str, ...]]
    wide: Mapping[str, int]

    def counts(self, machine: Machine, workloads: Sequence[Workload]) -> list[list[int]]:
        """Workloads x NUMA nodes with CPUs."""
        return [[len(self.keys.get((one.name, node), ())) for node in machine.cpu_nodes] for one in workloads]


def sitting(occupancy: Occupancy, members: Mapping[str, str]) -> Sitting:
    """members: the workload of each seat key."""
    keys: dict[tuple[str, int], tuple[str, ...]] = {}
    wide: Counter[str] = Counter()
    for key, name in members.items():
        seat = occupancy.seats.get(key)
        if seat is None:
            continue
        if len(seat.numa_nodes) == 1:
            place = name, seat.numa_nodes.lowest
            keys[place] = (*keys.get(place, ()), key)
        else:
            wide[name] += 1
    return Sitting(keys, wide)


def problem_of(
    machine: Machine,
    occupancy: Occupancy,
    members: Mapping[str, str],
    workloads: Sequence[Workload],
    weights: Weights,
    *,
    movable: Collection[str] = (),
) -> Problem:
    """members: the workload of each seat key. movable: seat keys of those that may go elsewhere; the others stay."""
    there = sitting(occupancy, members)
    counts = there.counts(machine, workloads)
    names = {one.name for one in workloads}
    freed = {key for (name, _), keys in there.keys.items() if name in names for key in keys}
    stay = {place: tuple(key for key in keys if key not in movable) for place, keys in there.keys.items()}
    room = free_room(machine, _without(occupancy, freed))
    nodes = list(machine.cpu_nodes)
    return Problem(
        sizes=[(one.demand.cpu_milli, one.demand.memory) for one in workloads],
        counts=[
            max(one.replicas - there.wide.get(one.name, 0), sum(row))
            for one, row in zip(workloads, counts, strict=True)
        ],
        pulls=_pulls(workloads, weights),
        capacity=[room[one] for one in nodes],
        nearness=[[1.0 if a == b else REMOTE_SHARE * machine.closeness(a, b) for b in nodes] for a in nodes],
        pinned=Sitting(stay, {}).counts(machine, workloads),
    )


def free_room(machine: Machine, occupancy: Occupancy) -> dict[int, Room]:
    """What nobody has asked for, by NUMA node with CPUs."""
    return {one: room_on(machine, occupancy, one) for one in machine.cpu_nodes}


def room_on(machine: Machine, occupancy: Occupancy, numa_node: int) -> Room:
    """What nobody has asked for on one NUMA node with CPUs, with the memory that is nearest to it."""
    rows = occupancy.load(machine).rows
    cpus = (machine.node(numa_node).cpus.mask & ~occupancy.reserved.mask).bit_count()
    mems = machine.nearest_mems(NumaSet(1 << numa_node))
    free = sum(capacity(machine, mem) - rows.get(mem, EMPTY).memory for mem in mems)
    return 1000 * cpus - rows.get(numa_node, EMPTY).cpu, free


def fits(demand: Demand, room: Room) -> bool:
    return demand.cpu_milli <= room[0] and demand.memory <= room[1]


def _without(occupancy: Occupancy, keys: Collection[str]) -> Occupancy:
    return replace(
        occupancy,
        seats={key: one for key, one in occupancy.seats.items() if key not in keys},
        holdings={key: one for key, one in occupancy.holdings.items() if one.seat not in keys},
    )


def _pulls(workloads: Sequence[Workload], weights: Weights) -> list[dict[int, float]]:
    """Weight of each pair of replicas: the workloads' weight over the number of pairs."""
    index = {one.name: kind for kind, one in enumerate(workloads)}
    pulls: list[dict[int, float]] = [{} for _ in workloads]
    for (a, b), weight in weights.items():
        if a not in index or b not in index or weight <= 0:
            continue
        one, other = index[a], index[b]
        mine, theirs = max(1, workloads[one].replicas), max(1, workloads[other].replicas)
        pairs = mine * theirs if one != other else max(1, mine * (mine - 1) // 2)
        for here, there in {(one, other), (other, one)}:
            pulls[here][there] = pulls[here].get(there, 0.0) + weight / pairs
    return pulls
