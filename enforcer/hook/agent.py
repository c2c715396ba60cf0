"""The one owner of a node's occupancy: what the runtime says goes in, what placement decided comes out.

It is called by the hook's loop, one event at a time, and never waits for anybody. All that it holds can be rebuilt
from the runtime's Synchronize, the cgroups' own cpusets, and what was written down of whose work these are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from enforcer.hook.decision_records import DecisionRecords, names
from enforcer.hook.facts import pods
from enforcer.hook.facts.demands import Demands, Limited, foreign_resized
from enforcer.hook.facts.devices import PodDevices
from enforcer.hook.facts.local_containers import LocalContainers
from enforcer.hook.facts.nominations import Nominations
from enforcer.hook.facts.sandboxes import PodCgroup, Sandboxes
from enforcer.hook.live import notable
from enforcer.hook.moves import MoveExecutor
from enforcer.hook.ownership.adoption import exclusive_cpus_first, known_of, owner_of
from enforcer.hook.ownership.checkpoint import Past
from enforcer.hook.unbinding import unbound
from enforcer.local.learned import Learned
from placement.decide.decide import Decision, Kin, Reason, Request, decide, left_open
from placement.model.cpuset import CpuSet, NumaSet
from placement.model.live_usage import NOTHING, Live
from placement.model.rules import Rules
from placement.model.topology import Machine
from placement.state import pools
from placement.state.occupancy import Allocation, Occupancy, Reservation
from process.log import Log
from proto import nri_pb2 as nri
from proto import report_pb2 as pb

log = Log("hook.agent")

DEFAULT_RULES = Rules()
NO_KIN = Kin()

LIVE = (nri.CONTAINER_CREATED, nri.CONTAINER_RUNNING, nri.CONTAINER_PAUSED)


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What the agent asks of its node: its hardware, and what the kernel says now.

    cpuset_now: a container's cgroup path -> what its cgroup has, None when unknown. free_memory: NUMA node -> bytes;
    load: what else is live there. Both may leave out what is not known.
    device_node: (c or b, major, minor) -> the NUMA node that the device is near to, None when it has none.
    limited: as `Demands` asks it. pod_cgroup: as `Sandboxes` does.
    doubts: what of the hardware could not be had, in sentences.
    """

    machine: Machine
    reserved: CpuSet
    cpuset_now: Callable[[str], tuple[CpuSet, NumaSet] | None]
    free_memory: Callable[[], Mapping[int, int]]
    load: Callable[[], Live] = Live
    device_node: Callable[[str, int, int], int | None] = lambda _kind, _major, _minor: None
    rules: Rules = DEFAULT_RULES
    limited: Limited = lambda _cgroups_path, _pod: None
    pod_cgroup: PodCgroup = lambda _cgroups_path, _pod: False
    doubts: tuple[str, ...] = ()


class Agent:
    """Answers the runtime's events. Public state: `occupancy`, its `residents`, `records` of what was decided,
    what was `learned` from traffic, and the `requests` of those that are ours, by container.
    """

    def __init__(self, node: NodeFacts, nominations: Nominations) -> None:
        self._node, self._nominations = node, nominations
        self.machine = node.machine
        self.learned = Learned()
        self.occupancy = Occupancy(reserved=node.reserved, rules=node.rules, generation=1).on(node.machine)
        self._demands = Demands(self._nominations, node.limited)
        self.residents = LocalContainers(self._workload)
        self.records = DecisionRecords()
        self.pod_devices = PodDevices()
        self.sandboxes = Sandboxes(node.pod_cgroup)
        self.requests: dict[str, Request] = {}
        self.moving = MoveExecutor(self)
        self._free: Mapping[int, int] = {}
        self.past = Past()
        """What was given before, until the runtime has told what runs."""
        self.released = False
        self.memory_policies = False
        """Whether the runtime can set a memory policy (NRI 0.12 and later)."""
        self.remark: Callable[[Decision], tuple[Reason, ...]] | None = None
        """What is to be said beside a decision because of how it is carried out."""

    # The runtime's events

    def synchronize(
        self, sandboxes: Sequence[nri.PodSandbox], containers: Sequence[nri.Container]
    ) -> list[nri.ContainerUpdate]:
        """Takes what runs as it is; answers with updates for members that are not pinned yet."""
        self.sandboxes.listed(sandboxes)
        by_id = {pod.id: pod for pod in sandboxes}
        uids = {pod.uid for pod in sandboxes}
        before, self.residents, self.requests = self.occupancy, LocalContainers(self._workload), {}
        past, self.past = self.past.with_those_of(before), Past()
        self._demands.clear()
        kept = {
            key: reservation
            for key, reservation in before.reservations.items()
            if reservation.pod in uids and reservation.opted_in
        }
        self.occupancy = replace(before, reservations=kept, allocations={}, generation=before.generation + 1)
        self._refresh_memory()
        live = [
            (by_id[container.pod_sandbox_id], container)
            for container in containers
            if container.state in LIVE and container.pod_sandbox_id in by_id
        ]
        known = known_of(live, past)
        live = exclusive_cpus_first(live, known)
        waiting = [(pod, one, request) for pod, one in live if (request := self._taken(pod, one, known)) is not None]
        updates = self._leave_open(waiting) if self.released else self._place(waiting)
        self.sandboxes.look()
        log.info(
            "synchronized",
            pods=len(sandboxes),
            containers=len(live),
            waiting=len(waiting),
            known=len(known.grants),
            updates=len(updates),
        )
        return updates

    def _leave_open(
        self, waiting: Iterable[tuple[nri.PodSandbox, nri.Container, Request]]
    ) -> list[nri.ContainerUpdate]:
        for pod, one, _ in waiting:
            self._note_unmanaged(pod, one)
        return self.release()

    def _place(self, waiting: Iterable[tuple[nri.PodSandbox, nri.Container, Request]]) -> list[nri.ContainerUpdate]:
        """Pins what runs unpinned, and sets the pools of all others anew."""
        updates = self.settle()
        for pod, one, request in waiting:
            decision = self._commit(pod, one, request, "synchronize")
            updates += self._updates(decision.updates)
            if decision.cpus:
                updates.append(pods.update(one.id, decision.cpus, decision.mems or self._node.machine.all_mems))
        return pods.merged([*updates, *self.settle()])

    def create_container(
        self, pod: nri.PodSandbox, container: nri.Container
    ) -> tuple[nri.ContainerAdjustment | None, list[nri.ContainerUpdate]]:
        """The new container's cpuset, and what it changes for others; (None, []) for whoever has not opted in."""
        self.sandboxes.appeared(pod, container.linux.cgroups_path)
        self.residents.met(pod, container)
        self.records.check(pod, container)
        request = self._request(pod, container)
        if request is None or self.released:
            self._note_unmanaged(pod, container)
            return None, []
        claim = pods.claim_of(container)
        if claim is not None:
            self._yield(pod, container, claim)
            return None, []
        self._refresh_memory()
        decision = self._commit(pod, container, request, "create")
        updates = self.moving.along(self._updates(decision.updates), but=container.id)
        if not decision.cpus and not decision.mems:
            return None, updates
        cpus = self.occupancy.allocations[container.id].cpus
        adjust = pods.adjustment(cpus, decision.mems, decision.exclusive, decision.numa_nodes)
        if decision.memory_policy is not None and self.memory_policies:
            pods.set_memory_policy(adjust, decision.memory_policy)
        return adjust, updates

    def update_container(
        self, pod: nri.PodSandbox, container: nri.Container, resources: nri.LinuxResources
    ) -> list[nri.ContainerUpdate]:
        """An in-place resize is taken over; somebody else's cpuset makes us yield for that container."""
        allocation = self.occupancy.allocations.get(container.id)
        if allocation is None:
            return []
        resized = nri.Container()
        resized.CopyFrom(container)
        resized.linux.resources.MergeFrom(resources)
        if allocation.reservation == container.id:
            self.occupancy = foreign_resized(self.occupancy, resized)
            return []
        asked = pods.cpuset_of(resources.cpu.cpus, resources.cpu.mems)
        if resources.cpu.cpus and (asked is None or asked[0] != allocation.cpus):
            self._yield(pod, container, pods.Claim(resources.cpu.cpus, resources.cpu.mems))
            return self.settle()
        request = self._request(pod, resized)
        if request is not None and self._renew(pod.uid):
            log.info("container resized", **names(pod, container), cpu_milli=request.demand.cpu_milli)
            self.records.counts["resized"] += 1
            resized_pod = [one for one in self.requests.values() if one.pod == pod.uid]
            self.occupancy, updates = unbound(self._node.machine, self.occupancy, resized_pod)
            self.records.counts["memory opened"] += len(updates)
            return updates
        return []

    def start_container(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """The container's process is known from here on."""
        self.residents.met(pod, container)

    def post_start_container(self, pod: nri.PodSandbox, container: nri.Container) -> list[nri.ContainerUpdate]:
        """An update for a container that started with another cpuset than it was given: the runtime takes one for a
        container whose start is under way, as Synchronize may give, and then starts it with the cpuset it had before.
        """
        allocation = self.occupancy.allocations.get(container.id)
        if allocation is None or not allocation.cpus or allocation.reservation == container.id:
            return []
        now = self._node.cpuset_now(container.linux.cgroups_path)
        if now is None or (now[0] == allocation.cpus and allocation.mems in (NumaSet(), now[1])):
            return []
        log.warning(
            "container started with another cpuset", **names(pod, container), cpus=now[0], given=allocation.cpus
        )
        return [pods.update(container.id, allocation.cpus, allocation.mems)]

    def taken_over(self, pod: nri.PodSandbox, container: nri.Container, claim: pods.Claim) -> list[nri.ContainerUpdate]:
        """Somebody else has written the cpuset that the container has now: we yield for it."""
        self._yield(pod, container, claim)
        return self.settle()

    def refused(self, pod: nri.PodSandbox, container: nri.Container, why: str) -> list[nri.ContainerUpdate]:
        """The kernel did not take the container's cpuset: it is left alone."""
        now = self._node.cpuset_now(container.linux.cgroups_path) or (CpuSet(), NumaSet())
        self._let_go(pod, container, pods.Claim(str(now[0]), str(now[1])))
        self.records.refused(pod, container, why)
        return self.settle()

    def stop_container(self, pod: nri.PodSandbox, container: nri.Container) -> list[nri.ContainerUpdate]:
        """Its CPUs are free at once; its pod's reservation stays for an in-place restart."""
        self.residents.gone(container.id)
        self.requests.pop(container.id, None)
        self._demands.stopped(pod.uid, container.id)
        self.records.forget(container.id)
        self.past = self.past.without(container.id)
        before = self.occupancy
        self.occupancy = self.occupancy.without_allocation(container.id).without_reservation(container.id)
        if self.occupancy is before:
            return []
        log.debug("container stopped", **names(pod, container))
        return self.moving.along(self.settle())

    def remove_container(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """For a runtime that never said Stop, and maybe the last word of its pod."""
        self.stop_container(pod, container)
        self._tidy()

    def stop_pod_sandbox(self, pod: nri.PodSandbox) -> None:
        """Or removed, which may be long after: another pod may have the name by then, or this one another sandbox."""
        if self.sandboxes.ended(pod):
            self._end(pod)

    def _end(self, pod: nri.PodSandbox) -> None:
        if pod.uid in self.occupancy.directory.by_pod:
            self.pod_devices.forget(pod)
        self.occupancy = self.occupancy.without_pod(pod.uid)
        self._nominations.forget(pod.uid)
        self._demands.forget(pod.uid)
        self.learned.forget(pod.uid)

    # The observer's messages

    def expect(self, message: pb.Expect) -> None:
        """A nomination; one that comes after its pod's container is late, and its facts still count.

        Each replica of the extender makes one: what another has said already is no news.
        """
        first = self._nominations.add(message)
        late = [
            reservation
            for reservation in self.occupancy.reservations.values()
            if reservation.pod == message.pod and reservation.opted_in
        ]
        if first and not late:
            log.debug("expecting a pod", pod=f"{message.namespace}/{message.name}", numa_nodes=message.numa_nodes)
        if first and late and message.numa_nodes:
            self.records.late(message, late[0].numa_nodes)
        if late:
            self.sandboxes.alive(message.pod)
            self._renew(message.pod)

    def deleted(self, pods: Iterable[str]) -> None:
        """The API server does not have these any more: their room is free once their containers have ended."""
        for uid in pods:
            self.sandboxes.deleted(uid)
        self._tidy()

    def release(self) -> list[nri.ContainerUpdate]:
        """Gives every pinned container the whole machine back, and pins no more: what comes before an uninstall.

        An empty set would mean "as it is" to the runtime, so the full one is named. They stay written down until the
        runtime tells what became of it.
        """
        self.released = True
        self.past = self.past.with_those_of(self.occupancy)
        pinned = [key for key, given in self.past.grants.items() if not given.externally_managed]
        ours = [one for key in pinned if (one := self.occupancy.allocations.get(key)) is not None]
        self.occupancy = self.occupancy.changed(
            reservations=dict.fromkeys(one.reservation for one in ours),
            allocations=dict.fromkeys(one.container for one in ours),
        )
        machine = self._node.machine
        log.warning("released: every container has the whole machine again", containers=len(pinned))
        return [*(pods.update(key, machine.all_cpus, machine.all_mems) for key in pinned), *self.settle()]

    def resume(self) -> None:
        """Pins again what starts from now on; what runs, at the next Synchronize."""
        self.released = False
        log.warning("resumed: containers are pinned again")

    def remember(self, past: Past) -> None:
        """What an earlier process gave; taken up at the runtime's Synchronize."""
        self.past, self.released = past, past.released

    def refresh(self) -> None:
        """Takes over what is notable of what the kernel says now; called between events."""
        self._refresh_memory()
        self._take(self._node.load())
        self.sandboxes.look()
        self._tidy()

    # How

    def _tidy(self) -> None:
        """Frees the room of pods that are no more, though the runtime told of no end of their sandboxes."""
        live = {allocation.pod for allocation in self.occupancy.allocations.values()}
        idle = {
            reservation.pod
            for reservation in self.occupancy.reservations.values()
            if reservation.opted_in and reservation.pod not in live
        }
        for pod in self.sandboxes.gone(idle):
            log.info("the room of a pod that is gone is free", pod=f"{pod.namespace}/{pod.name}")
            self._end(pod)

    def _refresh_memory(self) -> None:
        """The same reading as before is no work."""
        free = self._node.free_memory()
        if free is not self._free:
            self._free = free
            self._take(Live(free_memory=free))

    def _take(self, now: Live) -> None:
        news = notable(self._node.machine, self.occupancy.live, now)
        if news != NOTHING:
            self.occupancy = self.occupancy.with_live(self.occupancy.live.after(news))

    def _request(self, pod: nri.PodSandbox, container: nri.Container) -> Request | None:
        request = self._demands.request(pod, container)
        if request is None:
            return None
        near = self.pod_devices.near(pod, request, pods.devices_of(container, self._node.device_node))
        if near:
            request = replace(request, devices=near)
        self.requests[container.id] = request
        return request

    def _renew(self, pod: str) -> bool:
        """Takes over what the pod asks for now; whether that is another demand than before."""
        self.residents.belongs(pod, self._nominations.workload(pod))
        requests, reservations = self._demands.renewed(pod, self.requests, self.occupancy)
        self.requests |= requests
        if reservations:
            self.occupancy = self.occupancy.changed(reservations=reservations)
        return bool(requests or reservations)

    def _workload(self, pod: nri.PodSandbox) -> str:
        return self._nominations.workload(pod.uid) or pods.workload(pod)

    def _commit(self, pod: nri.PodSandbox, container: nri.Container, request: Request, event: str) -> Decision:
        machine, kin = self._node.machine, NO_KIN
        try:
            kin = self.learned.kin(machine, self.occupancy, request, self._nominations.kin(pod.uid))
            decision = decide(machine, self.occupancy, request, kin)
            if self.remark is not None:
                decision = replace(decision, reasons=(*decision.reasons, *self.remark(decision)))
            after = decision.applied(self.occupancy, request)
        except Exception as error:
            log.exception("not decided: the container is left open", **names(pod, container))
            self.records.counts["failed"] += 1
            decision = self._undecided(request, error)
            after = decision.applied(self.occupancy, request)
        self.occupancy = after
        self.moving.seated(request, kin)
        self.records.decided(pod, container, decision, kin.expected, event=event, at=after.generation)
        return decision

    def _undecided(self, request: Request, error: Exception) -> Decision:
        """A fault of ours costs one container its place; what it asks for is counted all the same."""
        why = Reason("fault", "", f"left open: {type(error).__name__}: {error}")
        return left_open(
            self.machine, request, (why,), reservation=self.occupancy.reservations.get(request.reservation_key)
        )

    def _taken(self, pod: nri.PodSandbox, container: nri.Container, known: Past) -> Request | None:
        """As `_adopt`; a container over which that raises is left alone, and costs no other one its place."""
        try:
            return self._adopt(pod, container, known)
        except Exception:
            log.exception("a running container could not be taken over", **names(pod, container))
            self.records.counts["failed"] += 1
            return None

    def _adopt(self, pod: nri.PodSandbox, container: nri.Container, known: Past) -> Request | None:
        """Takes a running container as it is; its request when it is a member that still has to be placed."""
        self.sandboxes.appeared(pod, container.linux.cgroups_path)
        self.residents.met(pod, container)
        self.records.check(pod, container)
        request = self._request(pod, container)
        if request is None:
            self._note_unmanaged(pod, container)
            return None
        now = self._node.cpuset_now(container.linux.cgroups_path) or pods.told_cpuset(container)
        found = owner_of(self.machine, self.occupancy, request, now, known)
        if isinstance(found, pods.Claim):
            self._yield(pod, container, found)
            return None
        if found is None:
            return request
        allocation = found.allocation
        # Unchecked: a neighbour's exclusive CPUs may have come without the update that takes them from this one.
        reservation = request.reservation(found.homes)
        self.occupancy = self.occupancy.changed(
            reservations={reservation.key: reservation}, allocations={container.id: allocation}, checked=False
        )
        where = {"numa_nodes": found.homes, "cpus": allocation.cpus, "mems": allocation.mems}
        log.info("container found pinned", **names(pod, container), **where)
        return None

    def _note_unmanaged(self, pod: nri.PodSandbox, container: nri.Container, claim: pods.Claim | None = None) -> None:
        """What has not opted in takes room by its requests; it is only ever moved off exclusive CPUs, by the
        operator's rule. claim: somebody else sets its CPUs, so that not even that happens.
        """
        machine, demand = self._node.machine, pods.demand_of(container.linux.resources)
        told = claim.cpuset if claim is not None else pods.told_cpuset(container)[0]
        homes = (machine.nodes_of(told) if told else NumaSet()) or machine.cpu_nodes
        isolated = told - machine.cpus if not machine.cpus <= told else CpuSet()
        # What it really uses of memory and hugepages is missing from what is free; isolated CPUs are nobody else's.
        cpu_milli = max(0, demand.cpu_milli - 1000 * len(isolated))
        reservation = Reservation(
            container.id, pod.uid, "", homes, replace(demand, cpu_milli=cpu_milli, memory=0, hugepages={})
        )
        allocation = Allocation(
            container.id,
            container.name,
            pod.uid,
            container.id,
            told - self.occupancy.exclusive,
            externally_managed=claim is not None or bool(isolated),
        )
        self.occupancy = self.occupancy.changed(
            reservations={reservation.key: reservation}, allocations={container.id: allocation}
        )

    def _yield(self, pod: nri.PodSandbox, container: nri.Container, claim: pods.Claim) -> None:
        self._let_go(pod, container, claim)
        self.records.yielded(pod, container, claim)

    def _let_go(self, pod: nri.PodSandbox, container: nri.Container, claim: pods.Claim) -> None:
        """Somebody else's from here on."""
        self.requests.pop(container.id, None)
        self.occupancy = self.occupancy.without_allocation(container.id)
        own = self.occupancy.without_reservation(f"{pod.uid}/{container.name}")
        self.occupancy = own if own.directory.by_reservation.get(pod.uid) else own.without_reservation(pod.uid)
        self._note_unmanaged(pod, container, claim)

    def settle(self) -> list[nri.ContainerUpdate]:
        """Whose CPUs are not their pool's any more, after exclusive ones came or went."""
        return self._updates(pools.due(self._node.machine, self.occupancy))

    def _updates(self, changes: Iterable[tuple[str, CpuSet]]) -> list[nri.ContainerUpdate]:
        updates = []
        for container, cpus in changes:
            allocation = self.occupancy.allocations[container]
            if allocation.cpus != cpus:
                self.occupancy = self.occupancy.with_allocation(replace(allocation, cpus=cpus))
            updates.append(pods.update(container, cpus, NumaSet()))
        return updates
