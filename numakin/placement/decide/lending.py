"""Whose exclusive CPUs are more than was asked for, when another's request needs the rest.

Exclusive CPUs are whole: 1500m takes two, and whole cores take their siblings. kube-scheduler counts what was asked
for, and may so send a node more pods than numakin has CPUs left for. Then those that were rounded up most share from
then on, as few as it takes, so that all have what they asked for. A request of whole CPUs is never touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numakin.placement.decide.room import Room
from numakin.placement.state.occupancy import Allocation, Occupancy

MOST_LENDERS = 16
"""Reservations that share from then on for one newcomer."""

MOST_TRIED = 3
"""NUMA nodes for which it is decided anew: each is a decision's work, for a container that else had no home."""


def lenders(room: Room) -> list[tuple[str, ...]]:
    """The containers that may give up being alone: for each NUMA node on which that makes room for the request, those
    where it takes the fewest first, and for all together.
    """
    occupancy, nodes = room.occupancy, [*room.machine.cpu_nodes]
    if not occupancy.directory.exclusive:
        return []
    excess = _excess(room)
    single = sorted(filter(None, (_enough(room, [numa_node], excess) for numa_node in nodes)), key=len)
    found = [*single[:MOST_TRIED], _enough(room, nodes, excess)]
    return [tuple(container for key in keys for container in _rounded_up(occupancy, key)) for keys in found if keys]


def _rounded_up(occupancy: Occupancy, key: str) -> list[str]:
    """Of a reservation those that were; where none was by itself all: their pod's budget was."""
    held = [occupancy.allocations[container] for container in occupancy.directory.by_reservation[key]]
    by_itself = [allocation.container for allocation in held if allocation.rounded_up]
    return by_itself or [allocation.container for allocation in held if allocation.exclusive]


def without_their_own(occupancy: Occupancy, containers: tuple[str, ...]) -> Occupancy:
    """These containers are not alone on their CPUs any more; their cpusets are still to be set anew."""
    shared: dict[str, Allocation | None] = {
        container: occupancy.allocations[container].sharing() for container in containers
    }
    return occupancy.changed(allocations=shared, checked=False)


def _excess(room: Room) -> dict[str, int]:
    """Millicores by reservation, the most first."""
    occupancy, excess = room.occupancy, dict[str, int]()
    for key, reservation in occupancy.reservations.items():
        if key == room.request.reservation_key:
            continue
        whole = 1000 * occupancy.own_of(key).bit_count() - reservation.demand.cpu_milli
        more = max(whole, occupancy.rounded_up(key))
        if more > 0:
            excess[key] = more
    return dict(sorted(excess.items(), key=lambda entry: (-entry[1], entry[0])))


def _enough(room: Room, nodes: Sequence[int], excess: Mapping[str, int]) -> tuple[str, ...]:
    """Whose excess on these NUMA nodes is the CPU that the request lacks there; none where it lacks none."""
    mask, lacking = sum(1 << numa_node for numa_node in nodes), -room.left(nodes)
    keys: list[str] = []
    for key, more in excess.items() if lacking > 0 else ():
        if not room.occupancy.reservations[key].numa_nodes.mask & ~mask and len(keys) < MOST_LENDERS:
            keys.append(key)
            lacking -= more
            if lacking <= 0:
                return tuple(keys)
    return ()
