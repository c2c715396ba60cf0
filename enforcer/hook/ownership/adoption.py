"""Whose work the cpuset of a running container is: our own from before, another owner's, or nobody's yet. Pure.

The checkpoint of an earlier process (`checkpoint.Past`) says what a container was given, and its cgroup what it has.
They may differ without another owner: an exclusive neighbour came or went, and the update of the shared pool was not
written down any more, or not carried out. A container that is not written down may carry our mark from its creation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from enforcer.hook.facts import pods
from enforcer.hook.ownership.checkpoint import Grant, Past
from placement.decide.cpus.cache_domain import keeps_to_cache
from placement.decide.decide import Request
from placement.model.cpuset import CpuSet, NumaSet
from placement.model.topology import Machine
from placement.optin.options import Pool
from placement.state import pools
from placement.state.occupancy import Allocation, Occupancy
from proto import nri_pb2 as nri

MOST_LEFT_OUT = 0.5
"""Of its pool, a recorded member's cpuset lacks less than this without a known cause, and is ours all the same; another
owner's choice is narrower (`placement.state.pools` takes as much for a pool).
"""

Now = tuple[CpuSet, NumaSet]
"""What a container's cgroup has, or else what the runtime's message has."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """As we left it: its home, the cache domain that it is kept within, and what it holds."""

    homes: NumaSet
    cache_domain: CpuSet
    allocation: Allocation


def known_of(live: Iterable[tuple[nri.PodSandbox, nri.Container]], past: Past) -> Past:
    """What is written down, and what the marks say of those that are not, or as containers of another pod."""
    known = dict(past.grants)
    for pod, container in live:
        written = known.get(container.id)
        if written is None or written.pod != pod.uid:
            known.pop(container.id, None)
            mark = pods.marked(pod, container)
            if mark is not None:
                known[container.id] = mark
    return replace(past, grants=known)


def exclusive_cpus_first(
    live: Iterable[tuple[nri.PodSandbox, nri.Container]], known: Past
) -> list[tuple[nri.PodSandbox, nri.Container]]:
    """The order of adoption: shared pools are known only when it is known which CPUs are exclusive."""

    def order(entry: tuple[nri.PodSandbox, nri.Container]) -> tuple[bool, int, str]:
        container = entry[1]
        given = known.grants.get(container.id)
        return given is None or not given.exclusive, container.created_at, container.id

    return sorted(live, key=order)


def owner_of(
    machine: Machine, occupancy: Occupancy, request: Request, now: Now, known: Past
) -> Pinned | pods.Claim | None:
    """None: it is still to be placed. known: as `known_of` has it."""
    cpus, mems = now
    given = known.grants.get(request.container)
    if given is not None and given.externally_managed:
        return pods.Claim(str(cpus), str(mems))
    if not cpus or not cpus <= machine.all_cpus or (machine.cpus <= cpus and not _whole(machine, given)):
        return None
    if given is not None and not given.cpus <= machine.all_cpus and cpus == given.cpus & machine.all_cpus:
        return None  # the kernel took the CPUs that went out of it
    if given is not None and given.open:  # to be placed, if there is room by now
        ours = cpus == given.cpus or machine.cpus - cpus <= occupancy.exclusive | known.exclusive
        return None if ours else pods.Claim(str(cpus), str(mems))
    homes = _homes(machine, occupancy, request, now, known)
    if homes is None:
        return pods.Claim(str(cpus), str(mems))
    exclusive = cpus if request.wants_exclusive else CpuSet()
    if not exclusive.isdisjoint(occupancy.exclusive):
        return None
    everywhere = mems in (machine.mems, machine.all_mems) and len(homes) < len(machine.cpu_nodes)
    unbound = everywhere or (given is not None and bool(given.cpus) and not given.mems)
    bound = NumaSet() if unbound else mems
    return Pinned(
        homes,
        _cache_domain(machine, occupancy, request, homes, cpus),
        Allocation(
            request.container,
            request.name,
            request.pod,
            request.reservation_key,
            cpus,
            bound,
            exclusive,
            stable=request.wants_stable and given is not None and given.stable and cpus == given.cpus,
        ),
    )


def claim_on_stranger(
    machine: Machine, occupancy: Occupancy, container: nri.Container, freed: CpuSet = CpuSet()
) -> pods.Claim | None:
    """Another owner's, of a container that has not opted in, where the rule is to move it off exclusive CPUs: what
    somebody keeps to fewer CPUs would be widened. freed: CPUs that were exclusive, which it may lack by our own work.
    """
    cpus = pods.runtime_cpuset(container)[0]
    if not occupancy.rules.everyone or not cpus or machine.cpus - cpus <= occupancy.exclusive | freed:
        return None
    return pods.claim_of(container)


def _whole(machine: Machine, given: Grant | None) -> bool:
    """Whether every CPU of the machine is what it was given."""
    return given is not None and (given.cpus == machine.cpus or len(machine.cpu_nodes) == 1)


def _homes(machine: Machine, occupancy: Occupancy, request: Request, now: Now, known: Past) -> NumaSet | None:
    """The NUMA nodes of its reservation; None where the cpuset is not our work.

    With neither a record nor a mark (the file was lost) it is ours when it is exactly a pool. The mark of an older
    enforcer, which does not name the home, counts, whatever became of the pool since.
    """
    cpus, mems = now
    given = known.grants.get(request.container)
    around = machine.nodes_of(cpus)
    domain = _cache_domain(machine, occupancy, request, around, cpus)
    if given is None:
        pool = pools.shared(machine, occupancy, around)
        return around if cpus in (pool, pool & domain) else None
    homes = given.homes if given.homes and given.homes <= (machine.cpu_nodes | machine.mems) else around
    allowed = (given.mems or mems, machine.mems, machine.all_mems)  # a binding may have been given up since
    if cpus == given.cpus and mems in allowed:
        return homes
    if not given.homes:
        return around
    within = cpus <= machine.cpus_of(homes)
    stayed = within and homes == given.homes
    homes = homes if within else around
    pool = machine.cpus_of(homes & machine.cpu_nodes) - occupancy.reserved
    exclusive = occupancy.exclusive | known.exclusive
    # A pool at some time since: without CPUs that are exclusive, or were. Of some of its home's it may not be known: a
    # container that came and went around a kill. The reclaimed one may have any of the rest.
    whole = pool & domain or pool
    left_out = whole - cpus
    is_pool = cpus <= pool and (
        request.pool is Pool.RECLAIMED
        or left_out <= exclusive
        or (stayed and len(left_out) < MOST_LEFT_OUT * len(whole))
    )
    ours = is_pool and mems in (*allowed, homes)
    return homes if ours and not given.exclusive else None


def _cache_domain(machine: Machine, occupancy: Occupancy, request: Request, homes: NumaSet, cpus: CpuSet) -> CpuSet:
    """The one that it is kept within; empty where it is not, or was not at the moment: the domain was full or hot."""
    reservation = occupancy.reservations.get(request.reservation_key)
    if reservation is not None and reservation.numa_nodes == homes and reservation.cache_domain:
        return reservation.cache_domain
    if len(homes) != 1 or not keeps_to_cache(request, occupancy.rules):
        return CpuSet()
    domains = map(CpuSet, machine.cache_domains.get(homes.lowest, ()))
    return next((domain for domain in domains if cpus <= domain), CpuSet())
