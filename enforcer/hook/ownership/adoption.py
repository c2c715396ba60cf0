"""Whose work the cpuset of a running container is: our own from before, another owner's, or none's yet. Pure.

The checkpoint of an earlier process (`checkpoint.Past`) says what a container was given, and its cgroup what it has.
They may differ without another owner: an exclusive neighbour came or went, a move was not written down any more, or an
update not carried out. So a container that has opted in and was given something is ours whatever its cgroup has: it
keeps what it has where that is something that we give, else it gets what was written down, else it is placed anew. A
container that is not written down may carry our mark from its creation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from enforcer.hook.facts import pods
from enforcer.hook.ownership.checkpoint import Grant, Past
from numakin.placement.decide.asked.quota import has_room, taken_by
from numakin.placement.decide.cpus.cache_domain import keeps_to_cache
from numakin.placement.decide.decide import Request
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Policy, Scope
from numakin.placement.state import pools
from numakin.placement.state.occupancy import Allocation, Occupancy, Part
from numakin.wire import nri_pb2 as nri

Now = tuple[CpuSet, NumaSet]
"""What a container's cgroup has, or else what the runtime's message has, of what is online: version 2 goes on naming
what is not.
"""


class Running(NamedTuple):
    """A container that the runtime lists, with what its cgroup has. offline: the CPUs that it names besides; gone: the
    memory.
    """

    pod: nri.PodSandbox
    container: nri.Container
    now: Now
    offline: CpuSet = CpuSet()
    gone: NumaSet = NumaSet()

    @property
    def named_mems(self) -> NumaSet:
        """All that its cgroup names: what is gone it has again once that is back."""
        return self.now[1] | self.gone


@dataclass(frozen=True, slots=True)
class Pinned:
    """As it is ours: its home, the cache domain that it is kept within, how its demand lies there, and what it holds,
    which may be another cpuset than its cgroup has. let_out: as `Reservation` has it.
    """

    homes: NumaSet
    cache_domain: CpuSet
    parts: tuple[Part, ...]
    allocation: Allocation
    let_out: NumaSet = NumaSet()

    def differs(self, cpus: CpuSet) -> bool:
        """Whether these are other CPUs than those for itself."""
        return self.allocation.exclusive not in (CpuSet(), cpus)


def known_of(live: Iterable[Running], past: Past) -> Past:
    """What is written down, and what the marks say of those that are not, or as containers of another pod."""
    known, by_mark = dict(past.grants), set[str]()
    for pod, container, *_ in live:
        written = known.get(container.id)
        if written is None or written.pod != pod.uid:
            known.pop(container.id, None)
            mark = pods.marked(pod, container)
            if mark is not None:
                known[container.id] = mark
                by_mark.add(container.id)
    return replace(past, grants=known, marked=frozenset(by_mark))


def exclusive_cpus_first(live: Iterable[Running], known: Past) -> list[Running]:
    """The order of adoption: shared pools are known only when it is known which CPUs are exclusive, and who is on its
    own comes before those who were given them at another time. Who is not written down comes after who is: while its
    creation was not known of, others may have been given what it was.
    """

    def order(entry: Running) -> tuple[bool, bool, bool, int, str]:
        container, given = entry.container, known.grants.get(entry.container.id)
        shares = given is None or not given.exclusive
        elsewhere = given is not None and given.cpus != entry.now[0]
        return shares, container.id in known.marked, elsewhere, container.created_at, container.id

    return sorted(live, key=order)


def key_of(container: str, scope: Scope, given: Grant, known: Past) -> str:
    """The key of its reservation. One that was written down by an older enforcer, or marked, does not say it: its pod
    was placed as one by its scope, or where all of it is on one NUMA node. container: its name. scope: by its
    annotations, whatever its namespace may ask for by now.
    """
    homes = known.homes.get(given.pod, frozenset())
    together = scope is Scope.POD or (len(homes) <= 1 and all(len(home) == 1 for home in homes))
    return given.reservation or (given.pod if together else f"{given.pod}/{container}")


def owner_of(
    machine: Machine, occupancy: Occupancy, request: Request, now: Now, known: Past
) -> Pinned | pods.Claim | None:
    """None: it is still to be placed. known: as `known_of` has it."""
    cpus, mems = now
    given = known.grants.get(request.container)
    if given is not None and given.externally_managed:
        return pods.Claim(str(cpus), str(mems))
    if not cpus or (machine.cpus <= cpus and not _has_all(machine, given)):
        return None
    if given is None:
        return _guessed(machine, occupancy, request, now)
    if given.open or (_stays_as_it_is(given) and not given.cpus <= machine.all_cpus):
        return None  # there may be room by now; or some of its CPUs went offline
    if given.stable and not given.cpus.isdisjoint(occupancy.exclusive):
        return None  # while its creation was not known of, another one was given some for itself
    if given.exclusive or (not given.homes and request.wants_exclusive):
        return _on_its_own(machine, occupancy, request, now, known)
    return _sharing(machine, occupancy, request, now, known)


def _stays_as_it_is(given: Grant) -> bool:
    """Whether it was given CPUs that no neighbour's coming or going changes; else what is left of them is its pool."""
    return bool(given.exclusive) or given.stable


def claim_on_stranger(machine: Machine, occupancy: Occupancy, now: Now, freed: CpuSet = CpuSet()) -> pods.Claim | None:
    """Another owner's, of a container that has not opted in, where the rule is to move it off exclusive CPUs: what
    its owner keeps to fewer CPUs would be widened. freed: CPUs that were exclusive, which it may lack by our own work.
    """
    cpus, mems = now
    if not occupancy.rules.everyone or not cpus or machine.cpus - cpus <= occupancy.exclusive | freed:
        return None
    return pods.Claim(str(cpus), str(mems))


def _has_all(machine: Machine, given: Grant | None) -> bool:
    """Whether it was given the shared pool of the whole machine; else one that has all CPUs is not pinned yet."""
    return given is not None and not given.exclusive and machine.cpu_nodes <= given.reach


def _guessed(machine: Machine, occupancy: Occupancy, request: Request, now: Now) -> Pinned | pods.Claim | None:
    """With neither a record nor a mark (the file was lost) it is ours when it has exactly a pool, but by the policy
    `none`, which gives none; for itself when that is just what it may have, and leaves a CPU to the others there.
    """
    cpus, mems = now
    if request.opt_in.policy is Policy.NONE:
        return None if cpus == pools.left_open(machine, occupancy) else pods.Claim(str(cpus), str(mems))
    homes = machine.nodes_of(cpus)
    pool, domain = pools.shared(machine, occupancy, homes), _domain_around(machine, occupancy, request, homes, cpus)
    if cpus not in (pool, pool & domain):
        return pods.Claim(str(cpus), str(mems))
    others = pools.sharers(occupancy, but=request.container) & cpus.mask
    alone = not others and bool(machine.cpus - occupancy.exclusive - cpus)
    own = cpus if alone and _may_own(machine, occupancy, request, cpus) else CpuSet()
    bound = NumaSet() if _is_everything(machine, homes, mems) else mems
    return _pinned(machine, request, homes, Grant(request.pod, homes, cpus, bound, own, cache_domain=domain), mems)


def _on_its_own(machine: Machine, occupancy: Occupancy, request: Request, now: Now, known: Past) -> Pinned | None:
    """What it has, where that is what it was given before or after a move, or as many other CPUs: the move was not
    written down. Else what it was given, or had before. None where another has those by now.
    """
    cpus, mems = now
    given = known.grants[request.container]
    choices = [grant for grant in (given, given.before) if grant is not None and grant.exclusive == cpus]
    may_be_moved = len(cpus) == len(given.exclusive) or _may_own(machine, occupancy, request, cpus)
    if not choices and cpus <= machine.all_cpus - known.stable and may_be_moved:
        there = replace(given, homes=machine.nodes_of(cpus), cpus=cpus, exclusive=cpus, cache_domain=CpuSet())
        choices.append(replace(there, mems=mems if given.mems else NumaSet()))
    choices += [grant for grant in (given, given.before) if grant is not None and grant.exclusive]
    free = machine.cpus - occupancy.exclusive - CpuSet(occupancy.directory.stable)
    mine = (choice for choice in choices if choice.exclusive <= free or _is_its_pods(occupancy, request, choice, known))
    grant = next(mine, None)
    if grant is None:
        return None
    homes = _homes_of(machine, grant)
    return _pinned(machine, request, homes, grant, mems)


def _is_its_pods(occupancy: Occupancy, request: Request, choice: Grant, known: Past) -> bool:
    """Whether another container of its pod has the same CPUs, and both were given the same: those have that share their
    pod's budget. Else the two have changed places in a move.
    """
    siblings = occupancy.directory.by_reservation.get(request.reservation_key, ())
    given = known.grants[request.container].exclusive
    return any(
        occupancy.allocations[key].exclusive == choice.exclusive and known.grants[key].exclusive == given
        for key in siblings
        if key != request.container and key in known.grants
    )


def _may_own(machine: Machine, occupancy: Occupancy, request: Request, cpus: CpuSet) -> bool:
    """Whether it asks for just as many CPUs for itself, and its namespace may have them."""
    as_many = len(cpus) == taken_by(machine, occupancy, request)
    return request.wants_exclusive and as_many and has_room(machine, occupancy, request)


def _sharing(machine: Machine, occupancy: Occupancy, request: Request, now: Now, known: Past) -> Pinned | None:
    """Where it was, or where its cgroup has a pool: its move was not written down. What it has of that pool is set
    with all others'. None where nothing of it is left.
    """
    cpus, mems = now
    given = known.grants[request.container]
    around = machine.nodes_of(cpus)
    homes = _homes_of(machine, given) if given.homes else around
    held = occupancy.reservations.get(request.reservation_key)
    comes_home = held is not None and held.numa_nodes == homes and homes <= around and given.cpus <= cpus
    if not (around <= homes | given.reach or comes_home) and _is_pool(machine, occupancy, cpus, known):
        bound = NumaSet() if _is_everything(machine, around, mems) else mems
        elsewhere = replace(given, mems=bound, parts=(), cache_domain=CpuSet(), let_out=NumaSet())
        given = given.before if given.before is not None and given.before.homes == around else elsewhere
        homes = around
    if homes.isdisjoint(machine.cpu_nodes):
        return None
    domain = given.cache_domain
    written_down = given.reservation and not domain and homes == given.homes
    if not written_down and domain.mask not in machine.cache_domains.get(homes.lowest, ()):
        domain = _domain_around(machine, occupancy, request, homes, cpus)
    if not pools.pool_of(machine, occupancy, request.pool, homes):
        return None
    unknown = not (given.cpus and given.homes) and not _is_everything(machine, homes, mems)  # an older enforcer's mark
    return _pinned(
        machine,
        request,
        homes,
        replace(
            given,
            cpus=cpus,
            mems=mems if unknown else given.mems,
            exclusive=CpuSet(),
            cache_domain=domain,
            stable=given.stable and cpus == given.cpus,
        ),
        mems,
    )


def _is_pool(machine: Machine, occupancy: Occupancy, cpus: CpuSet, known: Past) -> bool:
    """Whether it is the pool of its NUMA nodes, now or at some time since: without CPUs that are or were exclusive."""
    around = machine.nodes_of(cpus)
    everything = machine.cpus_of(around) - occupancy.reserved
    return bool(cpus) and cpus <= everything and everything - cpus <= occupancy.exclusive | known.exclusive


def _homes_of(machine: Machine, given: Grant) -> NumaSet:
    """An older enforcer's mark does not name them."""
    there = machine.cpu_nodes | machine.mems
    return given.homes if given.homes and given.homes <= there else machine.nodes_of(given.cpus)


def _pinned(machine: Machine, request: Request, homes: NumaSet, grant: Grant, mems: NumaSet) -> Pinned:
    """Memory that was opened since stays so; a binding to less than was given is set anew, as it could kill."""
    opened = (grant.cpus and not grant.mems) or (mems != grant.mems and _is_everything(machine, homes, mems))
    covers = grant.mems <= mems
    bound = NumaSet() if opened else mems if covers else grant.mems
    return Pinned(
        homes,
        grant.cache_domain,
        grant.parts,
        Allocation(
            request.container,
            request.name,
            request.pod,
            request.reservation_key,
            grant.cpus,
            bound,
            grant.exclusive,
            stable=grant.stable,
            within=request.within,
            rounded_up=request.rounded_up(len(grant.exclusive)),
        ),
        grant.let_out & machine.cpu_nodes,
    )


def _is_everything(machine: Machine, homes: NumaSet, mems: NumaSet) -> bool:
    """Whether a cgroup that names this memory is by itself no binding to these homes."""
    return mems in (machine.mems, machine.all_mems) and len(homes) < len(machine.cpu_nodes)


def _domain_around(machine: Machine, occupancy: Occupancy, request: Request, homes: NumaSet, cpus: CpuSet) -> CpuSet:
    """The cache domain that it is kept within, by its cpuset; empty where it is not, or was not at the moment: the
    domain was full or hot.
    """
    reservation = occupancy.reservations.get(request.reservation_key)
    if reservation is not None and reservation.numa_nodes == homes and reservation.cache_domain:
        return reservation.cache_domain
    if len(homes) != 1 or not keeps_to_cache(request, occupancy.rules):
        return CpuSet()
    domains = map(CpuSet, machine.cache_domains.get(homes.lowest, ()))
    return next((domain for domain in domains if cpus <= domain), CpuSet())
