"""Takes over what runs at the runtime's Synchronize, and gives everything back when an operator releases the node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from enforcer.hook.decision_records import as_told, names
from enforcer.hook.facts import pods
from enforcer.hook.ledger import Ledger
from enforcer.hook.ownership.adoption import (
    Pinned,
    Running,
    claim_on_stranger,
    exclusive_cpus_first,
    key_of,
    known_of,
    owner_of,
)
from enforcer.hook.ownership.checkpoint import Grant, KnownBeside, Past
from numakin.placement.decide import memory
from numakin.placement.decide.asked.pod_budget import has_its_share
from numakin.placement.decide.asked.quota import has_room
from numakin.placement.decide.decide import Request
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.optin.parsing import opted_in, parse
from numakin.process.log import Log
from numakin.wire import nri_pb2 as nri

log = Log("hook.agent")

LIVE = (nri.CONTAINER_CREATED, nri.CONTAINER_RUNNING, nri.CONTAINER_PAUSED)


class Takeover:
    """Works on the agent's ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.resized: list[str] = []
        """Pods that ask for something else than when they were placed: resized while the runtime had no plugin."""
        self.bindings_to_check: list[str] = []
        """Containers whose memory is bound, while it is not known what they asked for when it was, or to less than they
        may use: some has gone since.
        """

    def synchronize(
        self, sandboxes: Sequence[nri.PodSandbox], containers: Sequence[nri.Container]
    ) -> list[nri.ContainerUpdate]:
        """Takes what runs as it is; answers with updates for members that are not pinned yet, or have another cpuset
        than is theirs.
        """
        ledger, by_id = self._ledger, {pod.id: pod for pod in sandboxes}
        self.resized.clear()
        self.bindings_to_check.clear()
        ledger.sandboxes.listed(sandboxes)
        past = self._start_over({pod.uid for pod in sandboxes})
        ledger.refresh_memory()
        live = [
            self._running(by_id[container.pod_sandbox_id], container)
            for container in containers
            if container.state in LIVE and container.pod_sandbox_id in by_id
        ]
        ledger.records.keep({running.container.id for running in live})
        known, adopted = known_of(live, past), _Adopted()
        for running in exclusive_cpus_first(live, known):
            self._adopted(running, known, adopted)
        waiting = adopted.waiting
        if ledger.released:
            updates = pods.merged([*adopted.updates, *self._leave_all_open(waiting, known)])
        else:
            updates = self._place(adopted)
        ledger.sandboxes.note_cgroups()
        counts = {"pods": len(sandboxes), "containers": len(live), "waiting": len(waiting)}
        log.info("synchronized", **counts, known=len(known.grants), updates=len(updates))
        return updates

    def missed(self, pod: nri.PodSandbox, container: nri.Container) -> list[nri.ContainerUpdate]:
        """Takes over a container whose creation was under way at Synchronize: the runtime does not list it there, and
        asked no plugin that we were. Its start is the first that comes of it.
        """
        ledger = self._ledger
        ledger.refresh_memory()
        running, adopted = self._running(pod, container), _Adopted(late=True)
        known = known_of([running], ledger.past)
        self._adopted(running, known, adopted)
        if ledger.released:
            for waiting in adopted.waiting:
                self._leave_open(waiting, self._after_release(waiting, known))
            self._open_members()
            return self.given_back(pod, container)
        return self._place(adopted)

    def given_back(self, pod: nri.PodSandbox, container: nri.Container) -> list[nri.ContainerUpdate]:
        """While the node is released: the whole machine for a container that starts with the cpuset that we gave it,
        since it was being created when the others were released.
        """
        ledger, machine = self._ledger, self._ledger.machine
        running = self._running(pod, container)
        given, cpus = known_of([running], ledger.past).grants.get(container.id), running.now[0]
        widest = ledger.widest(container.id)
        if given is None or given.externally_managed:
            return []
        has_all_cpus = not (cpus or running.offline) or widest <= cpus
        if has_all_cpus and ledger.is_open(container.linux.cgroups_path, running.named_mems):
            return []
        log.warning("container started after the release with what it was given before", **names(pod, container))
        ledger.past = replace(ledger.past, grants={**ledger.past.grants, container.id: given})
        return [pods.update(container.id, widest, machine.all_mems)]

    def release(self) -> list[nri.ContainerUpdate]:
        """Gives every pinned container the whole machine back, and pins no more: what comes before an uninstall.

        An empty set would mean "as it is" to the runtime, so the full one is named. They stay in the checkpoint until
        the runtime reports what became of it.
        """
        ledger, machine = self._ledger, self._ledger.machine
        ledger.released = True
        self._open_members()
        pinned = [key for key, grant in ledger.past.grants.items() if not grant.externally_managed]
        log.warning("released: nothing is pinned any more, and what runs is given back", containers=len(pinned))
        given_back = (pods.update(key, ledger.widest(key), machine.all_mems) for key in pinned)
        return pods.merged([*given_back, *ledger.settle()])

    def _open_members(self) -> None:
        """What was given goes into the record of the past, and every member takes room by its requests alone."""
        ledger = self._ledger
        within = ledger.within
        ledger.past = ledger.past.with_those_of(
            ledger.occupancy, lambda of: KnownBeside(within=within.get(of.container, CpuSet()))
        )
        residents = ledger.residents.now()
        for container in ledger.disown_members():
            if container in residents:
                ledger.records.released(*as_told(residents[container]))

    def resume(self) -> None:
        """Pins again what starts from now on; what runs, at the next Synchronize."""
        self._ledger.released = False
        log.warning("resumed: containers are pinned again")

    def remember(self, past: Past) -> None:
        """What an earlier process gave; used at the runtime's Synchronize."""
        self._ledger.past, self._ledger.released = past, past.released
        self._ledger.demands.quotas = past.quotas

    def _start_over(self, uids: set[str]) -> Past:
        """Forgets containers, and keeps the reservations of members that are still there; what was given so far."""
        ledger, before = self._ledger, self._ledger.occupancy
        past = ledger.past.with_those_of(before, ledger.beside)
        ledger.residents.clear()
        ledger.requests.clear()
        ledger.within.clear()
        ledger.left.clear()
        ledger.narrowed.clear()
        ledger.demands.clear()
        kept = {
            key: reservation
            for key, reservation in before.reservations.items()
            if reservation.pod in uids and reservation.opted_in
        }
        ledger.occupancy = replace(before, reservations=kept, allocations={}, generation=before.generation + 1)
        ledger.past = past.listed()
        return past

    def _leave_all_open(self, waiting: Iterable[Running], known: Past) -> list[nri.ContainerUpdate]:
        """Those of them that were given something are given the whole machine back, as all that were taken over."""
        ledger = self._ledger
        ours = dict(ledger.past.grants)
        for running in waiting:
            container = running.container.id
            if container in known.grants:
                ours[container] = known.grants[container]
            self._leave_open(running, self._after_release(running, known))
        ledger.past = replace(ledger.past, grants=ours)
        return self.release()

    def _after_release(self, running: Running, known: Past) -> CpuSet | None:
        """What it will have, where it was given something: all CPUs; else None."""
        return self._ledger.machine.all_cpus if running.container.id in known.grants else None

    def _leave_open(self, running: Running, now: CpuSet | None) -> None:
        """now: as `note_unmanaged` has it."""
        self._ledger.note_unmanaged(running.pod, running.container, now=now)
        self._ledger.records.released(running.pod, running.container)

    def _running(self, pod: nri.PodSandbox, container: nri.Container) -> Running:
        """The cgroup is read where it may be set."""
        node, now, machine = self._ledger.node, None, self._ledger.machine
        if node.rules.everyone or opted_in(pod.annotations):
            now = node.cpuset_now(container.linux.cgroups_path)
        cpus, mems = now or pods.runtime_cpuset(container)
        there = cpus & machine.all_cpus, mems & machine.all_mems
        return Running(pod, container, there, cpus - machine.all_cpus, mems - machine.all_mems)

    def _place(self, adopted: _Adopted) -> list[nri.ContainerUpdate]:
        """Pins what runs unpinned, and sets the pools of all others anew."""
        ledger = self._ledger
        updates = [*adopted.updates, *ledger.settle()]
        for running in adopted.waiting:
            updates += self._placed(running)
        return pods.merged([*updates, *ledger.settle()])

    def _placed(self, running: Running) -> list[nri.ContainerUpdate]:
        """One that fits nowhere has all CPUs, whatever it had before."""
        ledger, machine, (pod, container, now, offline, _) = self._ledger, self._ledger.machine, running
        request = ledger.request(pod, container)  # anew: now it is known which of its pod's others are there
        if request is None:
            return []
        limit = ledger.within.get(container.id)
        decision = (
            ledger.commit(pod, container, request, "synchronize")
            if limit is None
            else ledger.place_within(pod, container, request, pods.Claim(str(limit), ""))
        )
        if decision is None:
            named_mems = running.named_mems
            bound = NumaSet() if ledger.is_open(container.linux.cgroups_path, named_mems) else named_mems
            narrowed = now[0] | offline
            ledger.left[container.id] = Grant(pod.uid, cpus=narrowed, mems=bound, within=limit or CpuSet())
            ledger.yield_to(pod, container, pods.Claim(str(limit), ""))
            return [] if narrowed == limit and not bound else ledger.undone(container.id, (narrowed, named_mems))
        updates = ledger.updates(decision.updates)
        named = now[0] | offline  # which it has once those are back
        everything = not named or machine.cpus <= now[0]
        cpus_right = decision.cpus == named if decision.cpus else everything
        if not cpus_right or ledger.mems_due(container.id, container.linux.cgroups_path, running.named_mems):
            set_anew = decision.cpus or machine.all_cpus, decision.mems or machine.all_mems
            updates.append(pods.update(container.id, *set_anew))
        return updates

    def _claim(self, running: Running, known: Past) -> pods.Claim | None:
        """Another owner's on a container that has not opted in: by the record, else by what it has."""
        given, container = known.grants.get(running.container.id), running.container
        if given is not None and given.externally_managed:
            return pods.Claim(*map(str, running.now))
        if container.id in known.kept_off:
            return None
        cpus, mems = running.now
        named = cpus | running.offline, mems
        return claim_on_stranger(self._ledger.machine, self._ledger.occupancy, named, known.exclusive)

    def _unmanaged(self, running: Running, known: Past) -> list[nri.ContainerUpdate]:
        """Takes one that has not opted in as it is, or gives it all CPUs."""
        ledger, (pod, container, now, *_) = self._ledger, running
        claim = self._claim(running, known)
        widened = claim is None and container.id in known.kept_off and self._is_widened(running, known)
        ledger.note_unmanaged(pod, container, claim, CpuSet() if widened else now[0])
        return [pods.update(container.id, ledger.machine.all_cpus, NumaSet())] if widened else []

    def _is_widened(self, running: Running, known: Past) -> bool:
        """Whether one that was kept off exclusive CPUs is to name all CPUs from here on: it has them for want of its
        own, which would be its only ones once they are back; or the operator has taken that rule back.
        """
        machine, cpus = self._ledger.machine, running.now[0]
        if not cpus:
            return bool(running.offline)
        lacks = machine.cpus - cpus
        return not self._ledger.occupancy.rules.everyone and bool(lacks) and lacks <= known.exclusive

    def _may_have(self, request: Request, own: CpuSet, *, late: bool) -> bool:
        """Whether it may have these CPUs for itself, or none, though others were placed while it was not known. late:
        it has to have as many as it asks for; else that is looked at once all are known, but for its pod's budget.
        """
        machine, occupancy = self._ledger.machine, self._ledger.occupancy
        if own and (late or request.budget is not None):
            as_asked = request.wants_exclusive and has_its_share(machine, occupancy, request, own)
            return as_asked and has_room(machine, occupancy, request)
        return not own or has_room(machine, occupancy, request)

    def _is_parted(self, request: Request, owner: Pinned) -> bool:
        """Whether its pod's other containers, which are known already, are on other NUMA nodes by now."""
        occupancy, key = self._ledger.occupancy, request.reservation_key
        return (
            bool(occupancy.directory.by_reservation.get(key)) and occupancy.reservations[key].numa_nodes != owner.homes
        )

    def _adopted(self, running: Running, known: Past, adopted: _Adopted) -> None:
        """Takes a running container as it is; one over which that raises is left alone, and costs no other its
        place.
        """
        try:
            self._adopt(running, known, adopted)
        except Exception:
            log.exception("a running container could not be taken over", **names(running.pod, running.container))
            self._ledger.records.counts["failed"] += 1

    def _adopt(self, running: Running, known: Past, adopted: _Adopted) -> None:
        """Takes a running container as it is, with an update where it has not what is its own, or lets it wait for its
        place.
        """
        ledger, (pod, container, now, offline, _) = self._ledger, running
        ledger.sandboxes.appeared(pod, container.linux.cgroups_path)
        ledger.residents.met(pod, container)
        ledger.records.check(pod, container)
        if ledger.node.in_vm(pod.runtime_handler):
            ledger.leave_vm(pod, container)
            return
        given = known.grants.get(container.id)
        if given is not None and given.within:
            ledger.within[container.id] = given.within
        request = ledger.request(pod, container, _key(running, given, known))
        if request is None:
            adopted.updates += self._unmanaged(running, known)
            return
        has = now if running.named_mems else (now[0], ledger.machine.all_mems)  # by version 2, where none is named
        owner = owner_of(ledger.machine, ledger.occupancy, request, has, known)
        if isinstance(owner, Pinned) and ledger.released and container.id not in known.grants:
            owner = pods.Claim(*map(str, now))  # since the release nothing is our work, however much it looks like it
        if isinstance(owner, pods.Claim) and ledger.within.get(container.id) == now[0]:
            owner = None  # to be narrowed within it, which no answer could bring yet
        if isinstance(owner, pods.Claim):
            ledger.yield_to(pod, container, owner)
            if given is not None and given.externally_managed and given.before is not None:
                ledger.left[container.id] = given.before
                adopted.updates += ledger.undone(container.id, (now[0] | offline, running.named_mems))
            return
        unheard = adopted.late or container.id in known.marked
        if owner is None or (unheard and not self._may_have(request, owner.allocation.exclusive, late=adopted.late)):
            adopted.waiting.append(running)
            return
        if adopted.late and not owner.allocation.mems <= ledger.machine.all_mems:  # else with all others, once known
            adopted.waiting.append(running)
            return
        if (adopted.late or owner.allocation.stable) and self._is_parted(request, owner):
            adopted.waiting.append(running)
            return
        allocation = owner.allocation
        # Unchecked: a neighbour's exclusive CPUs may have come without the update that takes them from this one.
        reservation = request.reservation(
            owner.homes, owner.parts, cache_domain=owner.cache_domain, let_out=owner.let_out
        )
        ledger.occupancy = ledger.occupancy.changed(
            reservations={reservation.key: reservation}, allocations={container.id: allocation}, checked=False
        )
        enough = memory.holds(ledger.machine, request, allocation.mems & ledger.machine.all_mems)
        if allocation.mems and (given is None or not given.asked or not enough):
            self.bindings_to_check.append(container.id)
        if given is not None:
            asked = given.asked in ((), ledger.demands.shown(pod.uid, container.id))
            if not asked or allocation.exclusive != given.exclusive:  # what it had before may be of another size
                self.resized.append(pod.uid)
        mems = ledger.mems_due(container.id, container.linux.cgroups_path, running.named_mems)
        where = {"numa_nodes": owner.homes, "cpus": allocation.cpus, "mems": mems or allocation.mems}
        names_more = bool(offline) and bool(allocation.exclusive or allocation.stable)
        if not (owner.differs(now[0]) or names_more or mems):
            log.info("container found pinned", **names(pod, container), **where)
            return
        log.warning(
            "container found with another cpuset: set anew",
            **names(pod, container),
            found=now[0],
            found_mems=now[1],
            **where,
        )
        adopted.updates.append(pods.update(container.id, allocation.cpus, mems))


def _key(running: Running, given: Grant | None, known: Past) -> str:
    """Of the reservation that it was placed by; empty: none is known."""
    pod, container = running.pod, running.container
    asked = parse(pod.namespace, pod.annotations, container.name) if given is not None else None
    return key_of(container.name, asked.scope, given, known) if given is not None and asked is not None else ""


@dataclass(slots=True)
class _Adopted:
    """What becomes of running containers: those that are still to be placed, and updates for those that have another
    cpuset than is theirs. late: whether others of their pods may have been placed since.
    """

    late: bool = False
    waiting: list[Running] = field(default_factory=list)
    updates: list[nri.ContainerUpdate] = field(default_factory=list)
