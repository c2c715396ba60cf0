"""Answers the runtime's events and takes the observer's messages: the one owner of a node's ledger.

It is called by the hook's loop, one event at a time, and never waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from enforcer.hook.cache_domains import CacheDomains
from enforcer.hook.creations import Attempt, Creations, Shown
from enforcer.hook.decision_records import names
from enforcer.hook.facts import pods
from enforcer.hook.facts.demands import unmanaged_resized
from enforcer.hook.facts.node_facts import NodeFacts
from enforcer.hook.facts.nominations import Nominations
from enforcer.hook.hardware.rehoming import Rehoming
from enforcer.hook.ledger import Ledger
from enforcer.hook.moves import MoveExecutor
from enforcer.hook.ownership.adoption import claim_on_stranger
from enforcer.hook.read_back import ReadBack
from enforcer.hook.relief import Relief
from enforcer.hook.takeover import Takeover
from enforcer.hook.unbinding import unbound
from numakin.placement.decide.asked.pod_budget import has_its_share
from numakin.placement.decide.decide import Decision, Reason, Request
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.optin.parsing import opted_in
from numakin.placement.optin.quotas import Quota
from numakin.placement.state import pools
from numakin.placement.state.occupancy import Allocation, Occupancy
from numakin.placement.traffic.cpu_use import MOST_WORKLOADS
from numakin.process.log import Log
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb

log = Log("hook.agent")


class Agent:
    """What the runtime's plugin, or bypass mode, calls. Its `ledger` is the state; `takeover`, `moves`,
    `rehoming`, `cache_domains` and `relief` work on the same one.
    """

    def __init__(self, node: NodeFacts, nominations: Nominations) -> None:
        self.ledger = ledger = Ledger(node, nominations)
        self.takeover = Takeover(ledger)
        self.moves = MoveExecutor(ledger)
        self.rehoming = Rehoming(ledger)
        self.cache_domains = CacheDomains(ledger)
        self.relief = Relief(ledger, lambda: self.moves.unsent)
        self.read_back = ReadBack(ledger, self.moves.waits)
        self.creations = Creations()
        self._unclaimed: set[str] = set()
        self.records, self.residents = ledger.records, ledger.residents
        self.release, self.resume = self.takeover.release, self.takeover.resume
        self.memory_policies = False
        """Whether the runtime can set a memory policy (NRI 0.12 and later)."""

    @property
    def occupancy(self) -> Occupancy:
        """As it is now: an immutable value."""
        return self.ledger.occupancy

    # The runtime's events

    def synchronize(
        self, sandboxes: Sequence[nri.PodSandbox], containers: Sequence[nri.Container]
    ) -> list[nri.ContainerUpdate]:
        """Takes over what runs; the updates are for members that are not pinned yet, or could be better off by now."""
        self.creations.clear()
        self._unclaimed.clear()
        updates = [*self.takeover.synchronize(sandboxes, containers), *self.rehoming.off_reserved()]
        for pod in dict.fromkeys(self.takeover.resized):
            updates += self._resized(pod)
        requests = self.ledger.requests
        updates += self._opened(requests[key] for key in self.takeover.bindings_to_check if key in requests)
        return pods.merged([*updates, *self.moves.second_best.improve()])

    def run_pod_sandbox(self, pod: nri.PodSandbox) -> None:
        """The pod's containers come soon."""
        self.ledger.sandboxes.appeared(pod)
        if opted_in(pod.annotations) and not self.ledger.node.in_vm(pod.runtime_handler):
            self.ledger.prepared.expect(pod)

    def create_container(
        self, pod: nri.PodSandbox, container: nri.Container
    ) -> tuple[nri.ContainerAdjustment | None, list[nri.ContainerUpdate]]:
        """The new container's cpuset, and what it changes for others; (None, []) for a container that has not opted
        in, unless the operator's rule keeps everyone off exclusive CPUs.
        """
        ledger, workload = self.ledger, self.ledger.demands.workload(pod)
        before = self.creations.again(pod.uid, container.name)
        if before is not None:
            ledger.records.never_created(pod, container, opened=before.opened)
        conflict = before is not None and not before.opened
        conflict = conflict or (self._concerns(pod) and self.creations.conflicts(workload, container.name))
        freed = self._end_former(pod, container)
        ledger.sandboxes.appeared(pod, container.linux.cgroups_path)
        ledger.residents.met(pod, container)
        ledger.records.check(pod, container)
        adjust, updates = self._answer(pod, container, freed, conflict=conflict)
        if adjust is not None or conflict:
            attempt = Attempt(container.id, workload, opened=conflict)
            self.creations.answered(pod.uid, container.name, attempt)
        return adjust, updates

    def _concerns(self, pod: nri.PodSandbox) -> bool:
        """Whether a container of the pod may get a cpuset of us; of others it is not told that they were created."""
        occupancy = self.ledger.occupancy
        return opted_in(pod.annotations) or (occupancy.rules.everyone and bool(occupancy.exclusive))

    def _answer(
        self, pod: nri.PodSandbox, container: nri.Container, freed: list[nri.ContainerUpdate], *, conflict: bool
    ) -> tuple[nri.ContainerAdjustment | None, list[nri.ContainerUpdate]]:
        """freed: what the end of the container before it changes for others. conflict: another plugin claims the
        container's cpuset after us.
        """
        ledger = self.ledger
        if ledger.node.in_vm(pod.runtime_handler):
            ledger.leave_vm(pod, container)
            return None, freed
        request = ledger.request(pod, container)
        claim = pods.claim_of(container)
        if request is None or ledger.released:
            # What does not run yet can't have its cpuset from us, as what bypass mode finds may.
            new = ledger.occupancy.rules.everyone and not container.pid
            named = new and claim is not None and not ledger.machine.cpus <= claim.cpuset
            unmanaged = claim if request is not None or named else self._claim(container)
            ledger.note_unmanaged(pod, container, pods.UNKNOWN if conflict else unmanaged)
            if request is not None:
                ledger.records.released(pod, container)
            if ledger.released:
                freed = pods.merged([*freed, *self.moves.unsent_updates()])
            return ledger.kept_off(container), freed
        if claim is not None and ledger.place_within(pod, container, request, claim) is not None:
            return pods.within_mark(claim), self._with_pod(request, freed)
        if claim is not None:
            ledger.yield_to(pod, container, claim)
            return None, self._with_pod(request, freed)
        if conflict:
            ledger.leave_to_plugin(pod, container)
            return None, self._with_pod(request, freed)
        if not ledger.prepared.covers(pod.uid):
            ledger.refresh_memory()
        decision = ledger.commit(pod, container, request, "create")
        updates = self._with_pod(request, [*freed, *ledger.updates(decision.updates)])
        updates = self.moves.with_create(updates, container.id, request.reservation_key)
        if not decision.cpus and not decision.mems:
            return None, updates
        cpus = ledger.cpus_after(decision, container.id)
        kind = f"scope={request.opt_in.scope} {_kind(decision)}"
        adjust = pods.adjustment(cpus, decision.mems, decision.exclusive, decision.numa_nodes, kind)
        if decision.memory_policy is not None and self.memory_policies and ledger.node.memory_policies:
            pods.set_memory_policy(adjust, decision.memory_policy)
            self.read_back.asked(container.id, decision.memory_policy)
        return adjust, updates

    def _with_pod(self, request: Request, updates: list[nri.ContainerUpdate]) -> list[nri.ContainerUpdate]:
        """With those for the other containers of a pod with a budget, which may have been placed by themselves until
        now.
        """
        return updates if request.budget is None else [*updates, *self.ledger.settle()]

    def _end_former(self, pod: nri.PodSandbox, container: nri.Container) -> list[nri.ContainerUpdate]:
        """A pod has one container of a name: another one has ended by now, in whichever of its sandboxes, though its
        start failed, of which the runtime says nothing. The updates name the CPUs of all whose pool it was in: what it
        changed for them may not have been carried out either.
        """
        ledger, updates = self.ledger, list[nri.ContainerUpdate]()
        for key in ledger.former(pod, container):
            log.info("container comes again: the former is taken for ended", **names(pod, container), former=key[:12])
            updates += self._ended(pod, key)
        return pods.merged(updates)

    def post_create_container(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """No other plugin's claim has failed its creation; one that was left open for such a claim shows whether there
        is any, since the runtime shows what all plugins have made of it.
        """
        claim, held = pods.claim_of(container), self.ledger.occupancy.allocations.get(container.id)
        shown = self.creations.created(pod.uid, container.name, container.id, claimed=claim is not None)
        if claim is not None and held is not None and held.externally_managed and not held.cpus:
            self.ledger.note_unmanaged(pod, container, claim)  # whose it is was known, and not what
        if shown is Shown.CONFLICT:
            self.ledger.records.conflict_proven(pod, container)
        elif shown is Shown.NEEDLESS:
            self._unclaimed.add(container.id)

    def update_container(
        self, pod: nri.PodSandbox, container: nri.Container, resources: nri.LinuxResources
    ) -> list[nri.ContainerUpdate]:
        """An in-place resize is taken over; another owner's cpuset makes us yield for that container."""
        return self.moves.with_update(self._updated(pod, container, resources))

    def _updated(
        self, pod: nri.PodSandbox, container: nri.Container, resources: nri.LinuxResources
    ) -> list[nri.ContainerUpdate]:
        ledger = self.ledger
        allocation = ledger.occupancy.allocations.get(container.id)
        if allocation is None:
            return []
        resized = nri.Container()
        resized.CopyFrom(container)
        resized.linux.resources.MergeFrom(resources)
        claimed = pods.cpuset_of(resources.cpu.cpus, resources.cpu.mems)
        renamed = bool(resources.cpu.cpus) and (claimed is None or claimed[0] != allocation.cpus)
        claim = pods.Claim(resources.cpu.cpus, resources.cpu.mems)
        if allocation.reservation == container.id:
            if renamed:
                ledger.note_word(container.id, claim)
                ledger.note_unmanaged(pod, resized, claim if allocation.externally_managed else self._claim(resized))
            ledger.occupancy = unmanaged_resized(ledger.machine, ledger.occupancy, resized)
            return []
        if renamed:
            return self.taken_over(pod, resized, claim)
        before = ledger.requests.get(container.id) or ledger.narrowed.get(container.id)
        request = ledger.request(pod, resized)
        if request is None or not (ledger.renew(pod.uid) or request != before):
            return []
        ledger.residents.met(pod, resized)
        log.info("container resized", **names(pod, container), cpu_milli=request.demand.cpu_milli)
        ledger.records.counts["resized"] += 1
        return self._resized(pod.uid)

    def update_pod_sandbox(self, pod: nri.PodSandbox, resources: nri.LinuxResources) -> None:
        """The pod was resized in place: its own resources, or the sums of its containers'. The answer has no updates:
        they are sent by themselves, or wait for the next that may.
        """
        ledger = self.ledger
        if not ledger.demands.resize_pod(pod.uid, resources) or not ledger.renew(pod.uid):
            return
        log.info("pod resized", pod=f"{pod.namespace}/{pod.name}")
        ledger.records.counts["resized"] += 1
        self.moves.take_along(self._resized(pod.uid))

    def _resized(self, pod: str) -> list[nri.ContainerUpdate]:
        """Updates after a pod asks for something else: its demand may be more than its cache holds, or fit again."""
        ledger = self.ledger
        of_pod = [request for request in ledger.requests.values() if request.pod == pod]
        narrowed = [request for request in ledger.narrowed.values() if request.pod == pod]
        updates = self._opened([*of_pod, *narrowed])
        updates += self._own_cpus_as_asked(of_pod)
        return pods.merged([*updates, *ledger.settle()])

    def _opened(self, requests: Iterable[Request], *, only_full: bool = False) -> list[nri.ContainerUpdate]:
        """Updates for those of them whose bound memory is less than they may use."""
        ledger = self.ledger
        ledger.occupancy, updates = unbound(ledger.machine, ledger.occupancy, requests, only_full=only_full)
        ledger.records.counts["memory opened"] += len(updates)
        return updates

    def _open_where_full(self) -> None:
        """Where others have filled the NUMA nodes of members that are bound there."""
        asking = (*self.ledger.requests.values(), *self.ledger.narrowed.values())
        if updates := self._opened(asking, only_full=True):
            log.warning("memory runs short: members are no longer bound there", containers=len(updates))
            self.moves.take_along(updates)

    def _own_cpus_as_asked(self, requests: Iterable[Request]) -> list[nri.ContainerUpdate]:
        """For containers that have more or fewer CPUs of their own than they ask for now."""
        ledger, before = self.ledger, self.ledger.occupancy
        for request in requests:
            held = ledger.occupancy.allocations.get(request.container)
            if held is None or held.externally_managed or not (held.exclusive or request.wants_exclusive):
                continue
            if request.wants_exclusive and has_its_share(ledger.machine, ledger.occupancy, request, held.exclusive):
                continue
            _, decision = ledger.place(request)
            resident = ledger.residents.now().get(request.container)
            if resident is not None:
                why = Reason("resized", f"{request.demand.cpu_milli / 1000:g} CPUs", f"it had CPUs {held.cpus}")
                ledger.records.again(resident, decision, why, event="update", at=ledger.occupancy.generation)
        return ledger.updates_since(before)

    def start_container(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """The container's process is known from here on."""
        self.ledger.residents.met(pod, container)
        self.post_create_container(pod, container)

    def post_start_container(self, pod: nri.PodSandbox, container: nri.Container) -> list[nri.ContainerUpdate]:
        """Updates for a container that started with another cpuset than it was given: the runtime takes one for a
        container whose start is under way, as Synchronize may give, and then starts it with the cpuset it had before.
        And for one that was never heard of.
        """
        self.read_back.started(container)
        self.post_create_container(pod, container)
        if container.id in self._unclaimed:
            self._unclaimed.discard(container.id)
            self.ledger.take_back(container.id)
        allocation = self.ledger.occupancy.allocations.get(container.id)
        if allocation is None:
            return self.takeover.missed(pod, container)
        if self.ledger.released and (updates := self.takeover.given_back(pod, container)):
            return updates
        cpus = self._meant_for(container, allocation)
        if not cpus:
            return []
        now = self.ledger.node.cpuset_now(container.linux.cgroups_path)
        if now is None:
            return []
        mems = self.ledger.mems_due(container.id, container.linux.cgroups_path, now[1])
        if self._has(now[0], cpus, allocation) and not mems:
            return []
        fields = {**names(pod, container), "cpus": now[0], "given": cpus}
        if container.id in self.ledger.within:
            log.info("container is narrowed within another owner's cpuset", **fields)
        else:
            log.warning("container started with another cpuset", **fields)
        return [pods.update(container.id, cpus, mems)]

    def _meant_for(self, container: nri.Container, allocation: Allocation) -> CpuSet:
        """The CPUs that the container is meant to have; empty where that is not ours to say, as of what has not opted
        in, unless it was kept off exclusive CPUs.
        """
        machine, occupancy = self.ledger.machine, self.ledger.occupancy
        if allocation.externally_managed:
            return CpuSet()
        if allocation.reservation == container.id:
            kept_off = bool(container.linux.resources.cpu.cpus or allocation.cpus)  # or was to be, during its creation
            rest = pools.rest(machine, occupancy) if kept_off else CpuSet()
            return machine.all_cpus if rest == machine.cpus else rest
        return allocation.cpus or (machine.all_cpus if allocation.open else CpuSet())

    def _has(self, named: CpuSet, meant: CpuSet, allocation: Allocation) -> bool:
        """Whether a cgroup that names these CPUs has those that are meant: of version 2, one that names none has all
        that containers are given.
        """
        everything = self.ledger.machine.cpus
        if not allocation.placed and everything <= meant:
            return not named or everything <= named
        return named == meant

    def _claim(self, container: nri.Container) -> pods.Claim | None:
        """Another owner's on a container that has not opted in."""
        ledger = self.ledger
        now = pods.runtime_cpuset(container)
        return claim_on_stranger(ledger.machine, ledger.occupancy, now, ledger.past.exclusive)

    def taken_over(self, pod: nri.PodSandbox, container: nri.Container, claim: pods.Claim) -> list[nri.ContainerUpdate]:
        """Another owner has written the cpuset that the container has now: we yield for it. It gets all memory back,
        unless that owner says which: nobody would open it then.
        """
        bound = NumaSet() if claim.mems else self.ledger.bound_memory(container)
        opened = [pods.update(container.id, CpuSet(), self.ledger.machine.all_mems)] if bound else []
        self.ledger.yield_to(pod, container, claim)
        return [*opened, *self.ledger.settle()]

    def refused(self, pod: nri.PodSandbox, container: nri.Container, why: str) -> list[nri.ContainerUpdate]:
        """The kernel did not take the container's cpuset: it is left alone."""
        now = self.ledger.node.cpuset_now(container.linux.cgroups_path) or (CpuSet(), NumaSet())
        self.ledger.let_go(pod, container, pods.Claim(str(now[0]), str(now[1])))
        self.ledger.records.refused(pod, container, why)
        return self.ledger.settle()

    def stop_container(self, pod: nri.PodSandbox, container: nri.Container) -> list[nri.ContainerUpdate]:
        """Its CPUs are free at once; its pod's reservation stays for an in-place restart."""
        before = self.ledger.occupancy
        updates = self._ended(pod, container.id)
        return self.moves.with_stop(updates) if self.ledger.occupancy is not before else []

    def remove_container(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """For a runtime that never sent StopContainer; maybe the last event of its pod. Its answer has no updates: they
        wait for the next that may.
        """
        self.moves.take_along(self._ended(pod, container.id))
        self.ledger.tidy()

    def _ended(self, pod: nri.PodSandbox, container: str) -> list[nri.ContainerUpdate]:
        """What the end of the container with this id changes for others."""
        ledger = self.ledger
        self._forget(pod, container)
        before = ledger.occupancy
        ledger.occupancy = before.without_allocation(container).without_reservation(container)
        if ledger.occupancy is not before:
            log.debug("container stopped", pod=f"{pod.namespace}/{pod.name}", id=container[:12])
        return self._freed(before, [container])

    def _forget(self, pod: nri.PodSandbox, container: str) -> None:
        """All that is kept of the container with this id but the room that it takes."""
        ledger = self.ledger
        ledger.residents.gone(container)
        ledger.requests.pop(container, None)
        ledger.narrows_no_more(container)
        ledger.left.pop(container, None)
        ledger.demands.stopped(pod.uid, container)
        ledger.records.forget(container)
        self.read_back.ended(container)
        self._unclaimed.discard(container)

    def _freed(self, before: Occupancy, containers: Iterable[str]) -> list[nri.ContainerUpdate]:
        """What it changes for others that these containers, which that occupancy may have, are not there any more."""
        ledger, ended = self.ledger, list(containers)
        for container in ended:
            allocation = before.allocations.get(container)
            ledger.past = ledger.past.ended(container, allocation.exclusive if allocation is not None else CpuSet())
        return ledger.settle() if any(pools.depend_on(before, container) for container in ended) else []

    def stop_pod_sandbox(self, pod: nri.PodSandbox) -> None:
        """Or removed, which may be long after: another pod may have the name by then, or this one another sandbox."""
        ledger, before = self.ledger, self.ledger.occupancy
        if not ledger.sandboxes.ended(pod):
            return
        placed = (
            container
            for key in before.directory.by_pod.get(pod.uid, ())
            for container in before.directory.by_reservation.get(key, ())
        )
        # Of some no StopContainer ever comes: CRI-O sends none of a creation that another plugin undid.
        live = [*dict.fromkeys((*ledger.residents.of_pod(pod.uid), *placed))]
        for container in live:
            self._forget(pod, container)
        ledger.end_pod(pod)
        self.creations.forget(pod.uid)
        self.moves.take_along(self._freed(before, live))

    # The observer's messages

    def expect(self, message: pb.Expect) -> None:
        """A nomination; one that comes after its pod's container is late, and its facts still count.

        Each replica of the extender sends one: a second one for a pod changes nothing.
        """
        ledger = self.ledger
        first = ledger.nominations.add(message)
        late = [
            reservation
            for reservation in ledger.occupancy.reservations.values()
            if reservation.pod == message.pod and reservation.opted_in
        ]
        if first and not late:
            log.debug("expecting a pod", pod=f"{message.namespace}/{message.name}", numa_nodes=message.numa_nodes)
        if first and late and message.numa_nodes:
            ledger.records.late(message, late[0].numa_nodes)
        if late:
            ledger.sandboxes.alive(message.pod)
            before = {key: request.budget for key, request in ledger.requests.items() if request.pod == message.pod}
            ledger.renew(message.pod)
            if any(ledger.requests[key].budget != budget for key, budget in before.items()):
                self.moves.take_along(self._resized(message.pod))

    def used(self, milli: Mapping[str, int]) -> None:
        """What pods of workloads use of the CPU, in millicores: members that are here count by it from now on."""
        ledger, before = self.ledger, self.ledger.demands.uses
        ledger.demands.uses = dict([*{**before, **milli}.items()][-MOST_WORKLOADS:])
        changed = {workload for workload, used in milli.items() if before.get(workload) != used}
        asking = (*ledger.requests.values(), *ledger.narrowed.values())
        for pod in sorted({request.pod for request in asking if request.workload in changed}):
            ledger.renew(pod)

    def limited(self, quotas: Mapping[str, Quota]) -> None:
        """What namespaces may have from now on: what runs keeps what it has, and gets no more than that."""
        ledger, before = self.ledger, self.ledger.demands.quotas
        ledger.demands.quotas = quotas
        changed = {name for name in {*before, *quotas} if before.get(name) != quotas.get(name)}
        asking = (*ledger.requests.values(), *ledger.narrowed.values()) if changed else ()
        uids = sorted({request.pod for request in asking if request.namespace in changed})
        for uid in uids:
            ledger.renew(uid)
        if uids:
            self.moves.second_best.ask_again()

    def deleted(self, uids: Iterable[str]) -> None:
        """The API server does not have these pods any more: their room is free once their containers have ended."""
        for uid in uids:
            self.ledger.sandboxes.deleted(uid)
        self.ledger.tidy()

    # Between events

    def prepare(self) -> bool:
        """Decides ahead for one pod whose first container is still to come; whether there may be more to do."""
        if not self.ledger.prepared.waiting or self.ledger.released:
            return False
        self.ledger.refresh_memory()
        return self.ledger.prepare()

    @property
    def refreshes(self) -> Iterator[Callable[[], None]]:
        """Takes over what is notable of what the kernel says now: in short steps, so that no container waits long. Each
        is to be run before the next is asked for.
        """
        ledger = self.ledger
        yield ledger.refresh_memory
        yield self._open_where_full
        yield lambda: ledger.take_live(ledger.node.load())
        yield from self.relief.steps()
        yield self.cache_domains.keep
        yield self.moves.second_best.look
        yield ledger.sandboxes.note_some_cgroups
        yield ledger.tidy

    def refresh(self) -> None:
        """All steps at once."""
        for step in self.refreshes:
            step()


def _kind(decision: Decision) -> str:
    """As a container's mark has it."""
    return "stable" if decision.stable else "" if decision.fits else "open"
