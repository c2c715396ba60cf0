"""The one owner of a node's occupancy: what the runtime says goes in, what placement decided comes out.

It is called by the hook's loop, one event at a time, and never waits for anybody. All that it holds can be rebuilt
from the runtime's Synchronize and the cgroups' own cpusets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from enforcer import pods
from enforcer.accounts import Accounts, names
from enforcer.adoption import owner_of
from enforcer.equipment import Equipment
from enforcer.learned import Learned
from enforcer.live import notable
from enforcer.log import Log
from enforcer.moving import Moving
from enforcer.promises import Promises
from enforcer.residents import Residents
from placement import pools
from placement.cpuset import CpuSet, NumaSet
from placement.decide import Decision, Reason, Request, decide
from placement.live import NOTHING, Live
from placement.occupancy import Holding, Occupancy, Seat
from placement.optin import Problem
from placement.rules import Rules
from placement.topology import Machine
from proto import nri_pb2 as nri
from proto import report_pb2 as pb

log = Log("hook.agent")

DEFAULT_RULES = Rules()

LIVE = (nri.CONTAINER_CREATED, nri.CONTAINER_RUNNING, nri.CONTAINER_PAUSED)


@dataclass(frozen=True, slots=True)
class Node:
    """What the agent asks of its node: its hardware, and what the kernel says now.

    cpuset_now: a container's cgroup path -> what its cgroup has, None when unknown. free_memory: NUMA node -> bytes;
    load: what else is live there. Both may leave out what is not known.
    device_node: (c or b, major, minor) -> the NUMA node that the device is near to, None when it has none.
    """

    machine: Machine
    reserved: CpuSet
    cpuset_now: Callable[[str], tuple[CpuSet, NumaSet] | None]
    free_memory: Callable[[], Mapping[int, int]]
    load: Callable[[], Live] = Live
    device_node: Callable[[str, int, int], int | None] = lambda _kind, _major, _minor: None
    rules: Rules = DEFAULT_RULES


class Agent:
    """Answers the runtime's events. Public state: `occupancy`, its `residents`, `accounts` of what was decided,
    what was `learned` from traffic, and the `requests` of those that are ours, by container.
    """

    def __init__(self, node: Node, promises: Promises) -> None:
        self._node, self._promises = node, promises
        self.machine = node.machine
        self.learned = Learned()
        self.occupancy = Occupancy(reserved=node.reserved, rules=node.rules, generation=1)
        self.residents = Residents()
        self.accounts = Accounts()
        self.equipment = Equipment()
        self.requests: dict[str, Request] = {}
        self.moving = Moving(self)
        self._free: Mapping[int, int] = {}
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
        by_id = {pod.id: pod for pod in sandboxes}
        uids = {pod.uid for pod in sandboxes}
        before, self.residents, self.requests = self.occupancy, Residents(), {}
        kept = {key: seat for key, seat in before.seats.items() if seat.pod in uids and seat.opted_in}
        self.occupancy = replace(before, seats=kept, holdings={}, generation=before.generation + 1)
        self._refresh_memory()
        live = [
            (by_id[one.pod_sandbox_id], one)
            for one in sorted(containers, key=lambda one: (one.created_at, one.id))
            if one.state in LIVE and one.pod_sandbox_id in by_id
        ]
        waiting = [(pod, one, request) for pod, one in live if (request := self._adopt(pod, one)) is not None]
        updates = []
        for pod, one, request in waiting:
            decision = self._commit(pod, one, request, "synchronize")
            if decision.cpus:
                updates.append(pods.update(one.id, decision.cpus, decision.mems or self._node.machine.mems))
        updates += [
            change for change in self.settle() if change.container_id not in {one.container_id for one in updates}
        ]
        log.info(
            "synchronized", pods=len(sandboxes), containers=len(live), pinned_now=len(waiting), updates=len(updates)
        )
        return updates

    def create_container(
        self, pod: nri.PodSandbox, container: nri.Container
    ) -> tuple[nri.ContainerAdjustment | None, list[nri.ContainerUpdate]]:
        """The new container's cpuset, and what it changes for others; (None, []) for whoever has not opted in."""
        self.residents.met(pod, container)
        request, problems = self._request(pod, container)
        for problem in problems:
            self.accounts.complained(pod, problem)
        if request is None or self.released:
            self._note_foreign(pod, container)
            return None, []
        claim = pods.claim_of(container)
        if claim is not None:
            self._stand_aside(pod, container, claim)
            return None, []
        self._refresh_memory()
        decision = self._commit(pod, container, request, "create")
        updates = self.moving.along(self._updates(decision.updates), but=container.id)
        if not decision.cpus and not decision.mems:
            return None, updates
        adjust = pods.adjustment(self.occupancy.holdings[container.id].cpus, decision.mems)
        if decision.memory_policy is not None and self.memory_policies:
            pods.set_memory_policy(adjust, decision.memory_policy)
        return adjust, updates

    def update_container(
        self, pod: nri.PodSandbox, container: nri.Container, resources: nri.LinuxResources
    ) -> list[nri.ContainerUpdate]:
        """An in-place resize is taken over; somebody else's cpuset makes us stand aside for that container."""
        holding = self.occupancy.holdings.get(container.id)
        if holding is None or holding.foreign or holding.seat == container.id:
            return []
        asked = pods.cpuset_of(resources.cpu.cpus, resources.cpu.mems)
        if resources.cpu.cpus and (asked is None or asked[0] != holding.cpus):
            self._stand_aside(pod, container, pods.Claim(resources.cpu.cpus, resources.cpu.mems))
            return self.settle()
        resized = nri.Container()
        resized.CopyFrom(container)
        resized.linux.resources.MergeFrom(resources)
        request, _ = self._request(pod, resized)
        seat = self.occupancy.seats.get(holding.seat)
        if request is not None and seat is not None and seat.demand != request.seat_demand:
            self.occupancy = self.occupancy.seated(replace(seat, demand=request.seat_demand))
            log.info("container resized", **names(pod, container), cpu_milli=request.seat_demand.cpu_milli)
        return []

    def start_container(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """The container's process is known from here on."""
        self.residents.met(pod, container)

    def post_start_container(self, pod: nri.PodSandbox, container: nri.Container) -> list[nri.ContainerUpdate]:
        """An update for a container that started with another cpuset than it was given: the runtime takes one for a
        container whose start is under way, as Synchronize may give, and then starts it with the cpuset it had before.
        """
        holding = self.occupancy.holdings.get(container.id)
        if holding is None or not holding.cpus or holding.seat == container.id:
            return []
        now = self._node.cpuset_now(container.linux.cgroups_path)
        if now is None or (now[0] == holding.cpus and holding.mems in (NumaSet(), now[1])):
            return []
        log.warning("container started with another cpuset", **names(pod, container), cpus=now[0], given=holding.cpus)
        return [pods.update(container.id, holding.cpus, holding.mems)]

    def taken_over(self, pod: nri.PodSandbox, container: nri.Container, claim: pods.Claim) -> list[nri.ContainerUpdate]:
        """Somebody else has written the cpuset that the container has now: we stand aside for it."""
        self._stand_aside(pod, container, claim)
        return self.settle()

    def refused(self, pod: nri.PodSandbox, container: nri.Container, why: str) -> list[nri.ContainerUpdate]:
        """The kernel did not take the container's cpuset: it is left alone."""
        now = self._node.cpuset_now(container.linux.cgroups_path) or (CpuSet(), NumaSet())
        self._let_go(pod, container, pods.Claim(str(now[0]), str(now[1])))
        self.accounts.refused(pod, container, why)
        return self.settle()

    def stop_container(self, pod: nri.PodSandbox, container: nri.Container) -> list[nri.ContainerUpdate]:
        """Its CPUs are free at once; its pod's seat stays for an in-place restart."""
        self.residents.gone(container.id)
        self.requests.pop(container.id, None)
        self.accounts.forget(container.id)
        before = self.occupancy
        self.occupancy = self.occupancy.without_holding(container.id).without_seat(container.id)
        if self.occupancy is before:
            return []
        log.debug("container stopped", **names(pod, container))
        return self.moving.along(self.settle())

    def remove_container(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """For a runtime that never said Stop."""
        self.stop_container(pod, container)

    def stop_pod_sandbox(self, pod: nri.PodSandbox) -> None:
        """Or removed, which may be long after: another pod may have the name by then."""
        if pod.uid in self.occupancy.directory.by_pod:
            self.equipment.forget(pod)
        self.occupancy = self.occupancy.without_pod(pod.uid)
        self._promises.forget(pod.uid)
        self.learned.forget(pod.uid)

    # The observer's messages

    def expect(self, message: pb.Expect) -> None:
        """A promise; one that comes after its pod's container is late, and its facts still count.

        Each replica of the extender makes one: what another has said already is no news.
        """
        first = self._promises.add(message)
        late = [seat for seat in self.occupancy.seats.values() if seat.pod == message.pod and seat.opted_in]
        if not first:
            return
        if not late:
            log.debug("expecting a pod", pod=f"{message.namespace}/{message.name}", numa_nodes=message.numa_nodes)
            return
        self.accounts.late(message, late[0].numa_nodes)
        told = self._promises.pod_demand(message.pod)
        if told is not None and len(late) == 1 and late[0].key == message.pod:
            self.occupancy = self.occupancy.seated(replace(late[0], demand=told))

    def release(self) -> list[nri.ContainerUpdate]:
        """Gives every pinned container the whole machine back, and pins no more: what comes before an uninstall.

        An empty set would mean "as it is" to the runtime, so the full one is named.
        """
        self.released = True
        machine = self._node.machine
        ours = (one for one in self.occupancy.holdings.values() if one.seat != one.container)
        pinned = [one for one in ours if one.cpus or one.mems]
        for one in pinned:
            self.occupancy = self.occupancy.without_pod(one.pod)
        log.warning("released: every container has the whole machine again", containers=len(pinned))
        return [pods.update(one.container, machine.cpus, machine.mems) for one in pinned]

    def refresh(self) -> None:
        """Takes over what is notable of what the kernel says now; called between events."""
        self._refresh_memory()
        self._take(self._node.load())

    # How

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

    def _request(self, pod: nri.PodSandbox, container: nri.Container) -> tuple[Request | None, tuple[Problem, ...]]:
        told = self._promises.demand(pod.uid, container.name)
        request, problems = pods.request_of(pod, container, told, self._promises.pod_demand(pod.uid))
        if request is None:
            return None, problems
        near = self.equipment.near(pod, request, pods.devices_of(container, self._node.device_node))
        opt_in = self._promises.opt_in(pod.uid, container.name, request.opt_in)
        if near or opt_in is not request.opt_in:
            request = replace(request, opt_in=opt_in, devices=near)
        self.requests[container.id] = request
        return request, problems

    def _commit(self, pod: nri.PodSandbox, container: nri.Container, request: Request, event: str) -> Decision:
        machine = self._node.machine
        kin = self.learned.kin(machine, self.occupancy, request, self._promises.kin(pod.uid))
        decision = decide(machine, self.occupancy, request, kin)
        if self.remark is not None:
            decision = replace(decision, reasons=(*decision.reasons, *self.remark(decision)))
        self.occupancy = decision.applied(self.occupancy, request)
        generation = self.occupancy.generation
        self.accounts.decided(pod, container, decision, kin.expected, event=event, at=generation)
        return decision

    def _adopt(self, pod: nri.PodSandbox, container: nri.Container) -> Request | None:
        """Takes a running container as it is; its request when it is a member that still has to be placed."""
        self.residents.met(pod, container)
        request, problems = self._request(pod, container)
        for problem in problems:
            self.accounts.complained(pod, problem)
        if request is None:
            self._note_foreign(pod, container)
            return None
        now = self._node.cpuset_now(container.linux.cgroups_path) or pods.told_cpuset(container)
        found = owner_of(self.machine, self.occupancy, request, container, now)
        if isinstance(found, pods.Claim):
            self._stand_aside(pod, container, found)
            return None
        if found is None:
            return request
        holding = found.holding
        self.occupancy = self.occupancy.seated(request.seat(found.homes)).held(holding)
        where = {"numa_nodes": found.homes, "cpus": holding.cpus, "mems": holding.mems}
        log.info("container found pinned", **names(pod, container), **where)
        return None

    def _note_foreign(self, pod: nri.PodSandbox, container: nri.Container, claim: pods.Claim | None = None) -> None:
        """What has not opted in takes room by its requests; it is only ever moved off exclusive CPUs, by the
        operator's rule. claim: somebody else sets its CPUs, so that not even that happens.
        """
        demand = pods.demand_of(container.linux.resources)
        told = claim.cpuset if claim is not None else pods.told_cpuset(container)[0]
        homes = (self._node.machine.nodes_of(told) if told else NumaSet()) or self._node.machine.cpu_nodes
        # What it really uses of memory and hugepages is missing from what is free.
        seat = Seat(container.id, pod.uid, "", homes, replace(demand, memory=0, hugepages={}))
        holding = Holding(
            container.id,
            container.name,
            pod.uid,
            container.id,
            told - self.occupancy.exclusive,
            foreign=claim is not None,
        )
        self.occupancy = self.occupancy.changed(seats={seat.key: seat}, holdings={container.id: holding})

    def _stand_aside(self, pod: nri.PodSandbox, container: nri.Container, claim: pods.Claim) -> None:
        self._let_go(pod, container, claim)
        self.accounts.stood_aside(pod, container, claim)

    def _let_go(self, pod: nri.PodSandbox, container: nri.Container, claim: pods.Claim) -> None:
        """Somebody else's from here on."""
        self.requests.pop(container.id, None)
        self.occupancy = self.occupancy.without_holding(container.id)
        if not any(one.pod == pod.uid for one in self.occupancy.holdings.values()):
            self.occupancy = self.occupancy.without_seat(pod.uid)
        self._note_foreign(pod, container, claim)

    def settle(self) -> list[nri.ContainerUpdate]:
        """Whose CPUs are not their pool's any more, after exclusive ones came or went."""
        return self._updates(pools.due(self._node.machine, self.occupancy))

    def _updates(self, changes: Iterable[tuple[str, CpuSet]]) -> list[nri.ContainerUpdate]:
        updates = []
        for container, cpus in changes:
            holding = self.occupancy.holdings[container]
            if holding.cpus != cpus:
                self.occupancy = self.occupancy.held(replace(holding, cpus=cpus))
            updates.append(pods.update(container, cpus, NumaSet()))
        return updates
