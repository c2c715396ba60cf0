"""From a machine, its occupancy and a request to the `Room` that the request finds."""

from __future__ import annotations

from collections.abc import Mapping

from placement import memory, own, pools
from placement.demand import Demand
from placement.kinship import peers_of, pulls
from placement.occupancy import Occupancy, Seat
from placement.request import Kin, Request
from placement.room import Room
from placement.tally import EMPTY
from placement.topology import Machine
from placement.wishes import Cpus, Pool


def survey(machine: Machine, occupancy: Occupancy, request: Request, kin: Kin) -> Room:
    """What there is for this request; its own seat counts as free."""
    load = occupancy.load(machine, but=request.seat_key)
    free = _free_cpus(machine, occupancy, request)
    barred = _barred(occupancy, request)
    cpu = {
        one: 1000 * (machine.node(one).cpus.mask & ~occupancy.reserved.mask).bit_count() - load.rows.get(one, EMPTY).cpu
        for one in machine.cpu_nodes
    }
    usable = tuple(one for one in machine.cpu_nodes if free[one] and not barred >> one & 1)
    need = _need(request)
    yet_to_take = _yet_to_take(occupancy, request)
    return Room(
        machine=machine,
        occupancy=occupancy,
        request=request,
        load=load,
        usable=usable,
        free=free,
        cpu=cpu,
        need=need,
        own=_own(machine, occupancy, request, free, cpu) if request.wants_own else None,
        memory={one: memory.capacity(machine, one) - load.rows.get(one, EMPTY).memory for one in machine.mems},
        real={one: memory.really_free(machine, occupancy, one) for one in machine.mems},
        real_need=yet_to_take.memory,
        real_pages=yet_to_take.hugepages,
        kin=pulls(machine, peers_of(occupancy, request, kin), kin),
        rest=kin.room_milli or _rest_of_group(occupancy, request),
        kept=occupancy.kept(machine, but=request.opt_in.group) if occupancy.directory.sized else {},
    )


def _free_cpus(machine: Machine, occupancy: Occupancy, request: Request) -> dict[int, int]:
    """The CPUs it could run on: of its pool, with those that it has for itself already."""
    mine = occupancy.holdings.get(request.container)
    own_mask = mine.exclusive.mask if mine else 0
    if request.pool is Pool.RESERVED and occupancy.reserved:
        return {one: machine.node(one).cpus.mask & occupancy.reserved.mask for one in machine.cpu_nodes}
    taken = (occupancy.directory.exclusive & ~own_mask) | occupancy.reserved.mask
    return {one: machine.node(one).cpus.mask & ~taken for one in machine.cpu_nodes}


def _need(request: Request) -> int:
    """Thousandths that must be free: outside the shared pool requests hold no room, own CPUs count whole."""
    if request.pool is not Pool.SHARED:
        return 0
    asked = request.seat_demand.cpu_milli
    return max(asked, 1000 * request.demand.whole_cpus) if request.wants_own else asked


def _own(
    machine: Machine, occupancy: Occupancy, request: Request, free: Mapping[int, int], cpu: Mapping[int, int]
) -> dict[int, int]:
    """How many CPUs of each NUMA node could become its own."""
    return {
        one: own.most(machine, one, mask, spare, whole_cores=request.opt_in.cpus is Cpus.EXCLUSIVE_CORES)
        for one, (mask, spare) in takeable(machine, occupancy, request, free, cpu).items()
    }


def takeable(
    machine: Machine, occupancy: Occupancy, request: Request, free: Mapping[int, int], cpu: Mapping[int, int]
) -> dict[int, tuple[int, int]]:
    """For each NUMA node the mask of its free CPUs, and how many may be taken and leave the others what they asked for.

    The own CPUs of the pod's other containers are in neither; a pool that somebody runs in keeps a CPU, and so does the
    machine.
    """
    mine = occupancy.holdings.get(request.container)
    siblings = occupancy.own_of(request.seat_key) & ~(mine.exclusive.mask if mine else 0)
    wanted = request.demand.whole_cpus
    last = (machine.cpus.mask & ~occupancy.directory.exclusive).bit_count() - wanted < 1
    found = {}
    for one, mask in free.items():
        spare = cpu[one] // 1000 - (machine.node(one).cpus.mask & siblings).bit_count()
        tight = mask.bit_count() <= wanted + 1
        if last or (tight and pools.sharers(occupancy, but=request.container) & mask):
            spare = min(spare, mask.bit_count() - 1)
        found[one] = (mask, max(0, spare))
    return found


def _barred(occupancy: Occupancy, request: Request) -> int:
    """The mask of the NUMA nodes where it may not go, for the sake of those that want to be alone."""
    if request.pool is Pool.RECLAIMED:
        return 0
    mask = 0
    if request.opt_in.alone:
        for seat in occupancy.seats.values():
            if _neighbour(seat, request):
                mask |= seat.numa_nodes.mask
        return mask
    for key in occupancy.directory.special:
        seat = occupancy.seats[key]
        if seat.alone and _neighbour(seat, request):
            mask |= seat.numa_nodes.mask
    return mask


def _neighbour(seat: Seat, request: Request) -> bool:
    return seat.pod != request.pod and seat.opted_in and seat.pool is not Pool.RECLAIMED


def _yet_to_take(occupancy: Occupancy, request: Request) -> Demand:
    """What of its demand is not in use by it yet: what runs already has taken its memory."""
    containers = occupancy.directory.by_seat.get(request.seat_key, ())
    if request.container in containers:
        return Demand()
    return request.demand if containers else request.seat_demand


def _rest_of_group(occupancy: Occupancy, request: Request) -> int:
    """Where `size.numakin.io` tells how many members will come: those that are missing, taken to be like this one."""
    missing = request.opt_in.size - 1 - len({seat.pod for seat in occupancy.members(request.opt_in.group, request.pod)})
    return max(0, missing) * request.pod_demand.cpu_milli if request.opt_in.group else 0
