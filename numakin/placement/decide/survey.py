"""From a machine, its occupancy and a request to the `Room` that the request finds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

from numakin.placement.decide import memory
from numakin.placement.decide.asked.pod_budget import Share, share_of
from numakin.placement.decide.cpus import exclusive
from numakin.placement.decide.headroom import GroupOutlook, Headroom, StillNeeded
from numakin.placement.decide.kin_share import pulls_of
from numakin.placement.decide.request import Kin, Request
from numakin.placement.decide.room import Room
from numakin.placement.model.demand import Demand
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Cpus, Pool
from numakin.placement.state import pools
from numakin.placement.state.load_index import EMPTY
from numakin.placement.state.occupancy import Occupancy, Reservation

NOTHING = Share(0)


def survey(machine: Machine, occupancy: Occupancy, request: Request, kin: Kin) -> Room:
    """What there is for this request; its own reservation counts as free."""
    load = occupancy.load(machine, but=request.reservation_key)
    free = _free_cpus(machine, occupancy, request)
    barred = _barred(occupancy, request)
    cpu, unused = {}, {}
    for cpu_node in machine.cpu_nodes:
        milli = 1000 * (machine.node(cpu_node).cpus.mask & ~occupancy.reserved.mask).bit_count()
        row = load.rows.get(cpu_node, EMPTY)
        cpu[cpu_node], unused[cpu_node] = milli - row.cpu, milli - row.expected
    share = share_of(occupancy, request) if request.wants_exclusive else NOTHING
    there = machine.nodes_of(share.common).mask if share.common else 0  # its pod's, which it may share
    usable = tuple(
        cpu_node
        for cpu_node in machine.cpu_nodes
        if (free[cpu_node] or there >> cpu_node & 1) and not barred >> cpu_node & 1
    )
    yet_to_take, own = _yet_to_take(occupancy, request), share.anew
    return Room(
        machine=machine,
        occupancy=occupancy,
        request=request,
        load=load,
        usable=usable,
        headroom=Headroom(
            free=free,
            cpu=cpu,
            unused=unused,
            own=_own(machine, occupancy, request, free, cpu, wanted=own) if request.wants_exclusive else None,
            memory={mem: memory.capacity(machine, mem) - load.rows.get(mem, EMPTY).memory for mem in machine.mems},
            real={mem: memory.really_free(machine, occupancy, mem) for mem in machine.mems},
        ),
        needed=StillNeeded(*_need(machine, occupancy, request, own), yet_to_take.memory, yet_to_take.hugepages, own),
        group=GroupOutlook(
            kin=pulls_of(machine, occupancy, request, kin),
            rest=kin.room_milli or _rest_of_group(occupancy, request),
            reserved=occupancy.kept(machine, but=request.opt_in.group) if occupancy.directory.sized else {},
        ),
    )


def _free_cpus(machine: Machine, occupancy: Occupancy, request: Request) -> dict[int, int]:
    """The CPUs it could run on: of its pool, with those that it has for itself already."""
    own_mask = occupancy.alone_of(request.container).mask
    if request.pool is Pool.RESERVED and occupancy.reserved:
        return {cpu_node: machine.node(cpu_node).cpus.mask & occupancy.reserved.mask for cpu_node in machine.cpu_nodes}
    taken = (occupancy.directory.exclusive & ~own_mask) | occupancy.reserved.mask
    if request.wants_exclusive:
        taken |= _stable_of_others(occupancy, request)
    return {cpu_node: machine.node(cpu_node).cpus.mask & ~taken for cpu_node in machine.cpu_nodes}


def _need(machine: Machine, occupancy: Occupancy, request: Request, own: int) -> tuple[int, int]:
    """Millicores that must be free, and those that it is expected to take: outside the shared pool requests hold no
    room, exclusive CPUs count whole, and what its pod's other containers ask for beside them.
    """
    if request.pool is not Pool.SHARED:
        return 0, 0
    demand, cpu = request.reservation_demand, request.reservation_demand.cpu_milli
    if request.wants_exclusive:
        takes = exclusive.least(machine, own, whole_cores=request.opt_in.cpus is Cpus.EXCLUSIVE_CORES)
        more = request.rounded_up(takes) + occupancy.rounded_up(request.reservation_key, but=request.container)
        cpu = max(cpu + more, 1000 * own)
    return cpu, max(cpu, demand.expected_milli)


def _own(
    machine: Machine,
    occupancy: Occupancy,
    request: Request,
    free: Mapping[int, int],
    cpu: Mapping[int, int],
    *,
    wanted: int,
) -> dict[int, int]:
    """How many CPUs of each NUMA node could become its own."""
    return {
        numa_node: exclusive.most(
            machine, numa_node, mask, spare, whole_cores=request.opt_in.cpus is Cpus.EXCLUSIVE_CORES
        )
        for numa_node, (mask, spare) in takeable(machine, occupancy, request, free, cpu, wanted=wanted).items()
    }


def takeable(
    machine: Machine,
    occupancy: Occupancy,
    request: Request,
    free: Mapping[int, int],
    cpu: Mapping[int, int],
    *,
    wanted: int,
) -> dict[int, tuple[int, int]]:
    """For each NUMA node the mask of its free CPUs, and how many may be taken and leave the others what they asked for.
    wanted: how many it takes.

    The exclusive CPUs of the pod's other containers are in neither; a pool in which a container runs keeps a CPU, and
    so does the machine. CPUs in another's stable cpuset are not free, and enough for a pool to keep. Who takes none
    beside those that it has leaves all others what they have.
    """
    mine = occupancy.allocations.get(request.container)
    siblings = occupancy.own_of(request.reservation_key) & ~(mine.exclusive.mask if mine else 0)
    taken = exclusive.taken(machine, wanted, whole_cores=request.opt_in.cpus is Cpus.EXCLUSIVE_CORES)
    own = occupancy.alone_of(request.container).mask
    last = (machine.cpus.mask & ~occupancy.directory.exclusive).bit_count() <= taken - own.bit_count() > 0
    stable = _stable_of_others(occupancy, request) & ~occupancy.reserved.mask
    by_node = {}
    for numa_node, mask in free.items():
        spare = cpu[numa_node] // 1000 - (machine.node(numa_node).cpus.mask & siblings).bit_count()
        has = (mask & own).bit_count()
        tight = not machine.node(numa_node).cpus.mask & stable and has < taken >= mask.bit_count()
        if last or (tight and pools.sharers(occupancy, but=request.container) & mask):
            spare = min(spare, mask.bit_count() - 1)
        by_node[numa_node] = (mask, max(0, spare))
    return by_node


def _stable_of_others(occupancy: Occupancy, request: Request) -> int:
    """The mask of the CPUs in stable cpusets; what the container itself has may become its own."""
    if not occupancy.directory.stable:
        return 0
    held = occupancy.allocations.get(request.container)
    if held is None or not held.stable:
        return occupancy.directory.stable
    others = (a.cpus.mask for a in occupancy.allocations.values() if a.stable and a.container != request.container)
    return reduce(or_, others, 0)


def _barred(occupancy: Occupancy, request: Request) -> int:
    """The mask of the NUMA nodes where it may not go, for the sake of those that want to be alone."""
    if request.pool is Pool.RECLAIMED:
        return 0
    mask = 0
    if request.opt_in.alone:
        for reservation in occupancy.reservations.values():
            if _neighbour(reservation, request):
                mask |= reservation.numa_nodes.mask
        return mask
    for key in occupancy.directory.special:
        reservation = occupancy.reservations[key]
        if reservation.alone and _neighbour(reservation, request):
            mask |= reservation.numa_nodes.mask
    return mask


def _neighbour(reservation: Reservation, request: Request) -> bool:
    return reservation.pod != request.pod and reservation.opted_in and reservation.pool is not Pool.RECLAIMED


def _yet_to_take(occupancy: Occupancy, request: Request) -> Demand:
    """What of its demand is not in use by it yet: what runs already has taken its memory."""
    containers = occupancy.directory.by_reservation.get(request.reservation_key, ())
    if request.container in containers:
        return Demand()
    return request.demand if containers else request.reservation_demand


def _rest_of_group(occupancy: Occupancy, request: Request) -> int:
    """Where `size.numakin.io` gives how many members will come: those that are missing, taken to be like this one."""
    size, group = request.opt_in.size, request.opt_in.group
    if not size or not group:
        return 0
    present = {reservation.pod for reservation in occupancy.members(group, request.pod)}
    return max(0, size - 1 - len(present)) * request.pod_demand.expected_milli
