"""The pools of a machine and who runs in which: reserved, exclusive, shared, and what the shared one leaves over.

    exclusive   CPUs that one container has for itself
    open        all but the exclusive ones: where members run that have no home
    shared      a NUMA node's CPUs that are neither exclusive nor reserved: where opted-in members run
    stable      the last half of a NUMA node's cores, of which a member that asks for it has a cpuset that stays: while
                such a member runs, none of its CPUs becomes exclusive
    reclaimed   those of the shared pool that its members' requests do not need: it is the first to shrink
    reserved    the operator's `--reserved-cpus`
    isolated    CPUs that the kernel keeps its own work off: in no pool, left to those that ask for them by name
    the rest    containers that have not opted in are not touched, or, by the rule `everyone`, kept off exclusive CPUs

A pool is never stored: it follows from the occupancy, so it shrinks and grows by itself, and `due` lists whose CPUs
have to be set anew after any change. Members that are kept within a cache domain have the part of the pool that lies
there, while their requests fit into it; else they have all of it, so that a narrower cpuset never takes away what was
requested. Those that are let out have the pools of the NUMA nodes which they are let out to.
"""

from __future__ import annotations

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Pool
from numakin.placement.state.load_index import EMPTY
from numakin.placement.state.occupancy import Occupancy, Reservation


def shared(machine: Machine, occupancy: Occupancy, numa_nodes: NumaSet) -> CpuSet:
    """The shared pool of these NUMA nodes."""
    taken = occupancy.directory.exclusive | occupancy.reserved.mask
    return CpuSet(machine.cpus_of(numa_nodes).mask & ~taken)


def reclaimed(machine: Machine, occupancy: Occupancy, numa_nodes: NumaSet) -> CpuSet:
    """What the shared pool's requests leave over, its last CPUs; at least one while the shared pool has any."""
    rows = occupancy.load(machine).rows
    pool = shared(machine, occupancy, numa_nodes).mask
    left = 0
    for numa_node in numa_nodes:
        cpus = machine.node(numa_node).cpus.mask
        requested = rows.get(numa_node, EMPTY).cpu - 1000 * (cpus & occupancy.directory.exclusive).bit_count()
        left |= _without_first(pool & cpus, -(-max(0, requested) // 1000))
    return CpuSet(left or 1 << pool.bit_length() - 1 if pool else 0)


def reserved(machine: Machine, occupancy: Occupancy, numa_nodes: NumaSet) -> CpuSet:
    """The reserved CPUs of these NUMA nodes, else all reserved ones, else the shared pool. Without those that a member
    has for itself still, from before they were reserved.
    """
    left = occupancy.reserved - occupancy.exclusive
    return left & machine.cpus_of(numa_nodes) or left or shared(machine, occupancy, numa_nodes)


_POOLS = {Pool.SHARED: shared, Pool.RECLAIMED: reclaimed, Pool.RESERVED: reserved}


def pool_of(machine: Machine, occupancy: Occupancy, pool: Pool, numa_nodes: NumaSet) -> CpuSet:
    """The CPUs on which a container of that pool and home runs now; empty when the pool is."""
    return _POOLS[pool](machine, occupancy, numa_nodes & machine.cpu_nodes)


def kept_within(pool: CpuSet, domain: CpuSet, requested: int) -> CpuSet:
    """The CPUs of the pool for those that are kept within the domain, if any. requested: millicores, by all of them."""
    inside = pool & domain
    return inside if inside and requested <= 1000 * len(inside) else pool


def is_hot(occupancy: Occupancy, domain: int) -> bool:
    """Whether the cache domain, or the NUMA nodes, with this mask of CPUs are too busy for any newcomer."""
    hot = occupancy.live.hot
    return bool(hot) and hot.get(domain, False)


def due(machine: Machine, occupancy: Occupancy) -> tuple[tuple[str, CpuSet], ...]:
    """Whose CPUs are not those of their pool any more, with what they should be: after a container came or went.

    Never an empty set: a container whose pool has vanished keeps what it has. Who is kept within another owner's CPUs
    gets none beyond them.
    """
    changed = []
    pools: dict[tuple[Pool, int, int], CpuSet] = {}
    others, directory = rest(machine, occupancy), occupancy.directory
    for allocation in occupancy.allocations.values():
        if allocation.exclusive.mask or allocation.externally_managed or allocation.stable:
            continue
        reservation = occupancy.reservations.get(allocation.reservation)
        if reservation is None or not reservation.opted_in:
            target = others
        elif allocation.open:
            target = left_open(machine, occupancy) if allocation.cpus.mask or directory.exclusive else CpuSet()
        elif allocation.cpus.mask:
            where = reservation.let_out or reservation.numa_nodes
            key = reservation.pool, where.mask, 0 if reservation.let_out else reservation.cache_domain.mask
            if key not in pools:
                pools[key] = members_cpus(machine, occupancy, reservation)
            target = pools[key]
        else:
            continue
        if allocation.within.mask:
            target &= allocation.within
        if target.mask and target.mask != (allocation.cpus.mask or machine.cpus.mask):
            changed.append((allocation.container, target))
    return tuple(changed)


def stable_part(machine: Machine, occupancy: Occupancy, numa_nodes: NumaSet) -> CpuSet:
    """The CPUs of these NUMA nodes' shared pool for members whose cpuset stays what it is: of the last half of the
    cores.
    """
    half = 0
    for numa_node in numa_nodes & machine.cpu_nodes:
        cores = machine.cores_by_node[numa_node]
        for core in cores[len(cores) // 2 :]:
            half |= core
    return CpuSet(shared(machine, occupancy, numa_nodes).mask & half)


def left_open(machine: Machine, occupancy: Occupancy, but: CpuSet = CpuSet()) -> CpuSet:
    """The CPUs of a member that has no home: all that no container has for itself. but: exclusive ones that count as
    free.
    """
    return CpuSet(machine.cpus.mask & ~(occupancy.directory.exclusive & ~but.mask))


def rest(machine: Machine, occupancy: Occupancy) -> CpuSet:
    """The CPUs of those that have not opted in, by the rule `everyone`; empty without it: they are not touched."""
    return machine.cpus - occupancy.exclusive if occupancy.rules.everyone else CpuSet()


def members_cpus(machine: Machine, occupancy: Occupancy, reservation: Reservation) -> CpuSet:
    """The CPUs on which a reservation's containers run that have none for themselves."""
    pool = pool_of(machine, occupancy, reservation.pool, reservation.let_out or reservation.numa_nodes)
    domain = reservation.cache_domain
    if not domain or reservation.let_out:
        return pool
    return kept_within(pool, domain, occupancy.directory.within[domain.mask])


def depend_on(occupancy: Occupancy, container: str) -> bool:
    """Whether some pool may be another one once this container has ended: it has CPUs for itself, or some members run
    on what a pool leaves over or are kept within a cache.
    """
    allocation, directory = occupancy.allocations.get(container), occupancy.directory
    return bool(directory.special or directory.within) or (allocation is not None and bool(allocation.exclusive))


def claimed(machine: Machine, occupancy: Occupancy) -> int:
    """The mask of the CPUs within which another owner keeps a container, where they are less than half of each NUMA
    node that they are of: they may be meant to be that container's alone. More is another owner's shared pool.
    """
    mask = 0
    for allocation in occupancy.allocations.values():
        unmanaged = allocation.reservation == allocation.container and not occupancy.rules.everyone
        if not (allocation.externally_managed or unmanaged) or not allocation.cpus.mask:
            continue
        nodes = (machine.node(cpu_node).cpus for cpu_node in machine.cpu_nodes)
        if all(2 * len(node & allocation.cpus) < len(node) for node in nodes):
            mask |= allocation.cpus.mask
    return mask


def sharers(occupancy: Occupancy, but: str = "") -> int:
    """The mask of all CPUs that some container of a pool, other than `but`, runs on; who has no home needs none of any
    pool.
    """
    mask = 0
    for allocation in occupancy.allocations.values():
        if not allocation.exclusive and not allocation.open and allocation.container != but:
            mask |= allocation.cpus.mask
    return mask


def _without_first(mask: int, count: int) -> int:
    while mask and count > 0:
        mask &= mask - 1
        count -= 1
    return mask
