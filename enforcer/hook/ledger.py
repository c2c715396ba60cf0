"""The node's state in the hook, and the steps by which it changes. The agent, its takeover of running containers and
its moves all work on one ledger.

All that it holds can be rebuilt from the runtime's Synchronize, the cgroups' own cpusets, and the checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from enforcer.hook.decision_records import DecisionRecords
from enforcer.hook.facts import pods
from enforcer.hook.facts.demands import Demands, isolated_of, unmanaged_demand
from enforcer.hook.facts.devices import PodDevices
from enforcer.hook.facts.local_containers import LocalContainers
from enforcer.hook.facts.node_facts import NodeFacts
from enforcer.hook.facts.nominations import Nominations
from enforcer.hook.facts.sandboxes import Sandboxes
from enforcer.hook.hardware.live import notable
from enforcer.hook.newcomers import Newcomers
from enforcer.hook.ownership.checkpoint import Grant, KnownBeside, Past
from enforcer.hook.prepared import Basis, PreparedDecisions
from enforcer.local.learned import Learned
from enforcer.machine.cgroup import CpusAndMems
from numakin.placement.decide.asked.whole_pod import as_placed
from numakin.placement.decide.decide import Decision, Reason, Request, decide, left_open
from numakin.placement.decide.relocation import beside_its_pages
from numakin.placement.decide.request import NO_KIN, Kin
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.live_usage import NOTHING, Live, devices_near
from numakin.placement.optin.options import Policy, Scope
from numakin.placement.optin.parsing import parse
from numakin.placement.state import pools
from numakin.placement.state.allocations import as_one
from numakin.placement.state.occupancy import Allocation, Occupancy, Reservation
from numakin.placement.state.yielded import Yielded
from numakin.process.log import Log
from numakin.wire import convert
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri

log = Log("hook.agent")


class Ledger:
    """`occupancy`, the `residents`, `records` of what was decided, what was `learned` from traffic, and the `requests`
    of members by container. past: what was given before, until the runtime has listed what runs. released: nothing is
    pinned until an operator resumes. remark: reasons to add to a decision because of how it is carried out.
    """

    def __init__(self, node: NodeFacts, nominations: Nominations) -> None:
        self.node, self.nominations = node, nominations
        self.machine = node.machine
        self._owed: tuple[Decision, Request] | None = None
        self._occupancy = Occupancy(reserved=node.reserved, rules=node.rules, generation=1).on(node.machine)
        self.demands = Demands(nominations, node.limited)
        self.residents = LocalContainers(self.demands.workload, nominations.host_network)
        self.sandboxes = Sandboxes(node.pod_cgroup)
        self.pod_devices = PodDevices()
        self.learned = Learned()
        self.records = DecisionRecords()
        self.newcomers = Newcomers()
        self.prepared = PreparedDecisions()
        self.requests: dict[str, Request] = {}
        self._others: dict[str, bool] = {}
        """Ids of members' containers whose cpuset another owner sets, and whether by a claim after ours."""
        self.within: dict[str, CpuSet] = {}
        """By container, the CPUs of another owner within which it was placed: it stays where it is."""
        self.narrowed: dict[str, Request] = {}
        """Of these what they ask for; they are none of the `requests`, which may be placed elsewhere at any time."""
        self.left: dict[str, Grant] = {}
        """By container, as `KnownBeside` has it."""
        self.past = Past()
        self.released = False
        self.remark: Callable[[Decision], tuple[Reason, ...]] | None = None
        self._free: Mapping[int, int] = {}

    @property
    def occupancy(self) -> Occupancy:
        """As it is now. A decision that was prepared is applied at the first question, after the runtime's answer:
        that takes longer the more containers there are.
        """
        if self._owed is not None:
            self._apply_owed()
        return self._occupancy

    @occupancy.setter
    def occupancy(self, after: Occupancy) -> None:
        self._owed, self._occupancy = None, after

    def cpus_after(self, decision: Decision, container: str) -> CpuSet:
        """What the container has by the decision that was just committed, and what came with it."""
        return decision.cpus if self._owed is not None else self.occupancy.allocations[container].cpus

    def _apply_owed(self) -> None:
        assert self._owed is not None
        decision, request = self._owed
        self._owed = None
        try:
            self._occupancy = decision.applied(self._occupancy, request)
        except Exception as error:
            log.exception("not decided: the container is left open", pod=request.pod, container=request.name)
            self._occupancy = self._failed(request, error).applied(self._occupancy, request)

    # Live figures

    def refresh_memory(self) -> None:
        """Takes over free memory; the same reading as before is no work."""
        free = self.node.free_memory()
        if free is not self._free:
            self._free = free
            self.take_live(Live(free_memory=free))

    def take_live(self, now: Live) -> None:
        """Takes over what is notably new."""
        news = notable(self.machine, self.occupancy.live, now)
        if news != NOTHING:
            self.occupancy = self.occupancy.with_live(self.occupancy.live.after(news))

    def take_devices(self, reported: local.Devices) -> None:
        """What the kubelet gave to whom, and what it has left."""
        self.pod_devices.learn(reported)
        live = self.occupancy.live
        free = devices_near(convert.devices_from(reported.free), (self.machine.cpu_nodes | self.machine.all_mems).mask)
        free = dict.fromkeys(live.devices, 0) | free
        if free != live.devices:
            self.occupancy = self.occupancy.with_live(live.after(Live(devices=free)))

    # Members

    def request(self, pod: nri.PodSandbox, container: nri.Container, key: str = "") -> Request | None:
        """What the container asks for now; None when it has not opted in. key: as `as_placed` has it."""
        request = self.demands.request(pod, container)
        if request is None:
            return None
        near = self.pod_devices.near(pod, request, pods.devices_of(container, self.node.device_node))
        if near:
            request = replace(request, devices=near)
        if request.budget is not None and not key:
            self._unite(request)
        request = as_placed(self.machine, self.occupancy, request, key)
        if limit := pods.within(pod, container):
            self.within[container.id] = limit
        if container.id in self.within:
            request = self.narrowed[container.id] = replace(request, within=self.within[container.id])
        else:
            self.requests[container.id] = request
        if request.budget is not None:  # by this container it may have become known for those before it
            self.requests |= self.demands.renewed(pod.uid, self.requests, self.occupancy)[0]
            self._round_up_anew(pod.uid)
        return request

    def _unite(self, request: Request) -> None:
        """A pod that is known to have a budget of its own is placed as one from here on: its containers were placed one
        by one where that was not known when the first came.
        """
        pod, occupancy = request.pod, self.occupancy
        apart = [it for key in occupancy.directory.by_pod.get(pod, ()) if (it := occupancy.reservations[key]).opted_in]
        if request.opt_in.policy is Policy.NONE or all(reservation.key == pod for reservation in apart):
            return
        one = replace(as_one(apart), key=pod, demand=request.pod_demand)
        live = [key for reservation in apart for key in occupancy.directory.by_reservation.get(reservation.key, ())]
        self.occupancy = occupancy.changed(
            reservations={**{reservation.key: None for reservation in apart}, pod: one},
            allocations={key: replace(occupancy.allocations[key], reservation=pod, rounded_up=0) for key in live},
        )
        for key in self.requests.keys() & {*live}:
            known = self.requests[key]
            self.requests[key] = replace(known, opt_in=replace(known.opt_in, scope=Scope.POD))

    def renew(self, pod: str) -> bool:
        """Takes over what the pod asks for now; whether that is another demand than before."""
        self.residents.learned(pod, self.nominations.workload(pod))
        requests, reservations = self.demands.renewed(pod, {**self.requests, **self.narrowed}, self.occupancy)
        self.narrowed |= {key: request for key, request in requests.items() if key in self.narrowed}
        self.requests |= (own := {key: request for key, request in requests.items() if key not in self.narrowed})
        budgeted = (it for it in own.values() if it.budget is not None and it.opt_in.scope is Scope.CONTAINER)
        if (request := next(budgeted, None)) is not None:
            self._unite(request)
        else:
            self._round_up_anew(pod, reservations)
        return bool(requests or reservations)

    def _round_up_anew(self, pod: str, reservations: Mapping[str, Reservation] = {}) -> None:
        """By what the pod's containers ask for now. reservations: of the pod, as they are from now on."""
        occupancy, now = self.occupancy, dict[str, Allocation]()
        for reservation in occupancy.directory.by_pod.get(pod, ()):
            for key in occupancy.directory.by_reservation.get(reservation, ()):
                held, request = occupancy.allocations[key], self.requests.get(key) or self.narrowed.get(key)
                if request and (more := request.rounded_up(len(held.exclusive))) != held.rounded_up:
                    now[key] = replace(held, rounded_up=more)
        if reservations or now:
            self.occupancy = occupancy.changed(reservations, now, checked=False)

    def commit(self, pod: nri.PodSandbox, container: nri.Container, request: Request, event: str) -> Decision:
        """Places a new member, and records it."""
        if pod.uid not in self.occupancy.directory.by_pod:
            self.prepared.first_request(request)
        kin, decision = self.place(request)
        at = self._occupancy.generation + (self._owed is not None)
        self.newcomers.add(at, request, kin)
        if request.opt_in.scope is Scope.CONTAINER and request.pod in self._occupancy.reservations:
            self.renew(request.pod)  # what the others are placed by is what is left of the pod
        self.records.decided(pod, container, decision, kin.expected, event=event, at=at)
        return decision

    def place(self, request: Request) -> tuple[Kin, Decision]:
        """Decides and applies the decision. A fault of ours leaves the container open, with its demand counted."""
        kin = NO_KIN
        try:
            began = time.perf_counter()
            basis = self._basis(request)
            ahead = self.prepared.take(basis)
            kin, decision = ahead or self._decide(basis)
            decision = beside_its_pages(request, decision, self.memory_of)
            self.records.durations.add(time.perf_counter() - began)
            if ahead is not None and self.remark is None and not (decision.updates or decision.share_again):
                self._owed = decision, request
                return kin, decision
            if self.remark is not None:
                decision = replace(decision, reasons=(*decision.reasons, *self.remark(decision)))
            after = decision.applied(self.occupancy, request)
        except Exception as error:
            log.exception("not decided: the container is left open", pod=request.pod, container=request.name)
            decision = self._failed(request, error)
            after = decision.applied(self.occupancy, request)
        self.occupancy = after
        self.tell_lenders(decision)
        return kin, decision

    def memory_of(self, container: str) -> Mapping[int, int]:
        """Bytes on each NUMA node; none of one that does not run yet, or of which it is not known."""
        path = self.residents.running(container)
        return (self.node.memory_now(path) if path else None) or {}

    def tell_lenders(self, decision: Decision) -> None:
        """That they share from now on, by a decision that was applied."""
        for container in decision.share_again:
            self._shares_again(container)

    def _shares_again(self, container: str) -> None:
        allocation, resident = self.occupancy.allocations[container], self.residents.now().get(container)
        if resident is not None:
            home = self.occupancy.reservations[allocation.reservation].numa_nodes
            why = "its request was rounded up, and others need the rest: it shares from now on"
            reasons = (Reason("exclusive CPUs", "", why),)
            self.records.shares_again(
                resident,
                Decision(home, allocation.cpus, allocation.mems, CpuSet(), 0.0, True, reasons),
                at=self.occupancy.generation,
            )

    def prepare(self) -> bool:
        """Decides ahead for one pod whose first container is still to come; whether there may be more to do."""
        try:
            return self.prepared.prepare(self._foreseen, self._decide_ahead)
        except Exception:
            log.exception("not prepared: decided when the container comes")
            return True

    def _foreseen(self, pod: nri.PodSandbox) -> Basis | None:
        """None also over a fault of ours, which would be met again at once."""
        try:
            request = self.demands.foreseen(pod, self.prepared.last_request(self.demands.workload(pod)))
            return self._basis(as_placed(self.machine, self.occupancy, request)) if request is not None else None
        except Exception:
            log.exception("not foreseen: decided when the container comes", pod=f"{pod.namespace}/{pod.name}")
            return None

    def _basis(self, request: Request) -> Basis:
        return Basis(self.occupancy, self.learned.version, self.nominations.get(request.pod), request)

    def _decide(self, basis: Basis) -> tuple[Kin, Decision]:
        request = basis.request
        kin = self.learned.kin(self.machine, basis.occupancy, request, self.nominations.kin(request.pod))
        return kin, decide(self.machine, basis.occupancy, request, kin)

    def _decide_ahead(self, basis: Basis) -> tuple[Kin, Decision]:
        """Raises where the decision can't be applied, so that one that was prepared can."""
        kin, decision = self._decide(basis)
        decision.applied(basis.occupancy, basis.request)
        return kin, decision

    def _failed(self, request: Request, error: Exception) -> Decision:
        """A fault of ours: the container is left open."""
        self.records.counts["failed"] += 1
        why = Reason("fault", "", f"left open: {type(error).__name__}: {error}")
        reservation = self._occupancy.reservations.get(request.reservation_key)
        return left_open(self.machine, self._occupancy, request, (why,), reservation=reservation)

    # Containers that are not ours

    def note_unmanaged(
        self,
        pod: nri.PodSandbox,
        container: nri.Container,
        claim: pods.Claim | None = None,
        now: CpuSet | None = None,
    ) -> None:
        """What has not opted in takes room by its requests; it is only ever moved off exclusive CPUs, by the
        operator's rule. claim: another owner sets its CPUs, so that not even that happens. now: what its cgroup has,
        empty: all; None: the runtime's word counts, which may be of an update that came to nothing.
        """
        machine = self.machine
        self.requests.pop(container.id, None)  # what it asked for as a member, while the node is released
        named = claim.cpuset if claim is not None else now
        named = pods.runtime_cpuset(container)[0] if named is None else named
        cpus = named & machine.all_cpus  # a cgroup v2 goes on naming those that went offline
        moved = self.occupancy.rules.everyone and claim is None
        exclusive = self.occupancy.exclusive
        around = cpus | exclusive if cpus and moved else cpus  # those it has been kept off
        homes = (machine.nodes_of(around) if around else NumaSet()) or machine.cpu_nodes
        demand = unmanaged_demand(machine, container.linux.resources, cpus)
        reservation = Reservation(container.id, pod.uid, "", homes, demand)
        allocation = Allocation(
            container.id,
            container.name,
            pod.uid,
            container.id,
            CpuSet() if machine.cpus <= cpus else cpus if moved else cpus - exclusive,  # `settle` gives it the others
            externally_managed=claim is not None or bool(isolated_of(machine, cpus)),
        )
        self.occupancy = self.occupancy.changed(
            reservations={reservation.key: reservation}, allocations={container.id: allocation}
        )

    def kept_off(self, container: nri.Container) -> nri.ContainerAdjustment | None:
        """By the operator's rule a new container that has not opted in starts off exclusive CPUs, where no other
        owner names its CPUs. None: it has them all.
        """
        rest = pools.rest(self.machine, self.occupancy)
        allocation = self.occupancy.allocations[container.id]
        if not rest or rest == self.machine.cpus or allocation.externally_managed or pods.claim_of(container):
            return None
        self.occupancy = self.occupancy.with_allocation(replace(allocation, cpus=rest))
        cpu = nri.LinuxCPU(cpus=str(rest))
        return nri.ContainerAdjustment(linux=nri.LinuxContainerAdjustment(resources=nri.LinuxResources(cpu=cpu)))

    def leave_vm(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """The container runs in a virtual machine: it is left as it is, whether it has opted in or not."""
        self.note_unmanaged(pod, container, pods.Claim(*map(str, pods.runtime_cpuset(container))))
        if parse(pod.namespace, pod.annotations, container.name) is not None:
            self.records.in_vm(pod, container)

    def place_within(
        self, pod: nri.PodSandbox, container: nri.Container, request: Request, claim: pods.Claim
    ) -> Decision | None:
        """The decision on a member within the wider cpuset that another owner gives it, where the operator allows that;
        None where it is to be left to the other owner. It shares the other's CPUs, so none can be its own.
        """
        if not self.node.within_others or claim.mems or not self.has_room_within(request, claim.cpuset):
            return None
        self.within[container.id] = claim.cpuset
        self.narrowed[container.id] = request = replace(request, within=claim.cpuset)
        self.requests.pop(container.id, None)
        return self.commit(pod, container, request, "create")

    def has_room_within(self, request: Request, limit: CpuSet) -> bool:
        """Whether it would be placed on a part of these CPUs."""
        if request.wants_exclusive:
            return False
        decision = self._decide(self._basis(request))[1]
        home = self.machine.cpus_of(decision.numa_nodes)
        inside = home - self.occupancy.reserved <= limit and not limit <= home
        there = bool(decision.cpus) and decision.cpus <= limit  # its pod may be let out to more
        return inside and there and decision.fits and not decision.updates

    def widest(self, container: str) -> CpuSet:
        """What a container may have at most: all CPUs, or those of another owner within which it is narrowed."""
        return self.within.get(container, self.machine.all_cpus) & self.machine.all_cpus

    def narrows_no_more(self, container: str) -> None:
        """It has ended, or another owner's later word counts."""
        self.within.pop(container, None)
        self.narrowed.pop(container, None)

    def yield_to(self, pod: nri.PodSandbox, container: nri.Container, claim: pods.Claim) -> None:
        """Another owner sets the container's cpuset from here on."""
        self.let_go(pod, container, claim)
        self._others[container.id] = False
        self.records.yielded(pod, container, claim)

    def leave_to_plugin(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """Another plugin claims the container's cpuset after us: it is left open, or it could not be created."""
        self.let_go(pod, container, pods.UNKNOWN)
        self._others[container.id] = True
        self.records.conflict(pod, container)

    def take_back(self, container: str) -> None:
        """The container was left to another plugin, and none has claimed it: it is as one that was never heard of, and
        so is placed at its start.
        """
        self._others.pop(container, None)
        self.occupancy = self.occupancy.without_allocation(container).without_reservation(container)

    @property
    def yielded(self) -> Yielded:
        """What other owners have of the containers that opted in, also while the node is released."""
        live = self.occupancy.allocations
        self._others = {key: conflict for key, conflict in self._others.items() if key in live}
        members = sum(key in live for key in self.residents.members)
        return Yielded(len(self._others), members, sum(self._others.values()))

    def let_go(self, pod: nri.PodSandbox, container: nri.Container, claim: pods.Claim) -> None:
        """The container's allocation goes, and the reservation too where no other container of the pod needs it."""
        self._note_left(container, claim)
        self.requests.pop(container.id, None)
        self.narrows_no_more(container.id)
        self.occupancy = self.occupancy.without_allocation(container.id)
        own = self.occupancy.without_reservation(f"{pod.uid}/{container.name}")
        self.occupancy = own if own.directory.by_reservation.get(pod.uid) else own.without_reservation(pod.uid)
        self.note_unmanaged(pod, container, claim)
        if pod.uid in self.occupancy.reservations:
            self.renew(pod.uid)

    def _note_left(self, container: nri.Container, claim: pods.Claim) -> None:
        """What of the container's cpuset is our work, while the other owner's word says nothing of it."""
        held, everything = self.occupancy.allocations.get(container.id), self.machine.all_cpus
        if held is None or held.externally_managed or held.reservation == container.id:
            return
        limit = self.within.get(container.id, CpuSet())
        stays = bool(limit) and claim.cpuset & everything == limit & everything
        ours = held.cpus if stays else CpuSet(), NumaSet() if claim.mems else self.bound_memory(container)
        if any(ours):
            self.left[container.id] = Grant(held.pod, cpus=ours[0], mems=ours[1], within=limit if stays else CpuSet())

    def note_word(self, container: str, claim: pods.Claim) -> None:
        """The other owner says anew what the container is to have."""
        left = self.left.pop(container, None)
        if left is not None and left.mems and not claim.mems:
            self.left[container] = replace(left, cpus=CpuSet(), within=CpuSet())

    def beside(self, of: Allocation) -> KnownBeside:
        """What is to be written down of a container beside its allocation."""
        key = of.container
        return KnownBeside(self.demands.shown(of.pod, key), self.within.get(key, CpuSet()), self.left.get(key))

    def undone(self, container: str, named: CpusAndMems) -> list[nri.ContainerUpdate]:
        """The update that gives back what is our work of another owner's container, whose cgroup names this."""
        left = self.left.get(container, Grant(""))
        narrowed = bool(left.within) and named[0] == left.cpus
        bound = bool(left.mems) and named[1] == left.mems and not self.machine.mems <= named[1]
        if not (narrowed or bound):
            self.left.pop(container, None)
            return []
        cpus = left.within & self.machine.all_cpus if narrowed else CpuSet()
        return [pods.update(container, cpus, self.machine.all_mems if bound else NumaSet())]

    def disown_members(self) -> list[str]:
        """Every member's container takes room by its own requests from here on, as one that has not opted in, and no
        pod has a reservation any more; the containers' ids. An empty machine would be what the extender sends pods to.
        """
        occupancy, nodes = self.occupancy, self.machine.cpu_nodes
        reservations: dict[str, Reservation | None] = {
            key: None for key, reservation in occupancy.reservations.items() if reservation.opted_in
        }
        members = [
            allocation
            for allocation in occupancy.allocations.values()
            if allocation.reservation != allocation.container and not allocation.externally_managed
        ]
        allocations: dict[str, Allocation | None] = {}
        for member in members:
            request = self.requests.pop(member.container, None)
            demand = replace(request.demand, memory=0, hugepages={}) if request is not None else Demand()
            own = Reservation(member.container, member.pod, "", nodes, demand)
            reservations[own.key] = own
            allocations[member.container] = Allocation(
                member.container, member.name, member.pod, own.key, within=member.within
            )
        self.occupancy = occupancy.changed(reservations=reservations, allocations=allocations)
        return [member.container for member in members]

    # Shared pools

    def settle(self) -> list[nri.ContainerUpdate]:
        """Updates for containers whose CPUs are not their pool's any more, after exclusive ones came or went."""
        return self.updates(pools.due(self.machine, self.occupancy))

    def updates(self, changes: Iterable[tuple[str, CpuSet]]) -> list[nri.ContainerUpdate]:
        """Applies new cpusets of running containers, and makes the runtime's updates for them."""
        updates = []
        for container, cpus in changes:
            allocation = self.occupancy.allocations[container]
            if allocation.cpus != cpus:
                self.occupancy = self.occupancy.with_allocation(allocation.resized(cpus))
            updates.append(pods.update(container, cpus, NumaSet()))
        return updates

    def mems_due(self, container: str, cgroups_path: str, named: NumaSet) -> NumaSet:
        """The memory that a member's cgroup is to have, where it names another: all of it, where its memory is open.
        Empty where it is right, or not ours to set.
        """
        held = self.occupancy.allocations.get(container)
        if held is None or held.externally_managed or held.reservation == container:
            return NumaSet()
        right = held.mems == named if held.mems else self.is_open(cgroups_path, named)
        return NumaSet() if right else held.mems or self.machine.all_mems

    def is_open(self, cgroups_path: str, named: NumaSet) -> bool:
        """Whether a cgroup that names this memory may have all that containers are given, or all of the one above it;
        with none of its own it has.
        """
        if not named or self.machine.mems <= named:
            return True
        above = self.node.widest_cpuset(cgroups_path)
        return above is not None and above[1] <= named

    def bound_memory(self, container: nri.Container) -> NumaSet:
        """What we have bound its memory to; or had, where we have opened it and its cgroup has not got that yet."""
        held, path = self.occupancy.allocations.get(container.id), container.linux.cgroups_path
        if held is None:
            return NumaSet()
        if held.mems:
            return held.mems
        now = self.node.cpuset_now(path)
        return now[1] if now is not None and self.mems_due(container.id, path, now[1]) else NumaSet()

    def updates_since(self, before: Occupancy) -> list[nri.ContainerUpdate]:
        """Updates for containers of then whose allocation is another now. What became open is named in full: an empty
        list means "as they are" to the runtime.
        """
        machine, updates = self.machine, []
        for key, now in self.occupancy.allocations.items():
            was = before.allocations.get(key)
            if was is None or now == was or now.externally_managed:
                continue
            cpus = self.widest(key) if was.cpus and not now.cpus else now.cpus
            mems = machine.all_mems if was.mems and not now.mems else now.mems
            updates.append(pods.update(key, cpus, mems))
        return updates

    # Ends

    def former(self, pod: nri.PodSandbox, container: nri.Container) -> list[str]:
        """The ids of the pod's other containers of that name; none of a pod without a uid, as no kubelet makes it."""
        occupancy, directory = self.occupancy, self.occupancy.directory
        of_pod = (
            key
            for reservation in (directory.by_pod.get(pod.uid, ()) if pod.uid else ())
            for key in directory.by_reservation.get(reservation, ())
        )
        return sorted(
            key for key in of_pod if key != container.id and occupancy.allocations[key].name == container.name
        )

    def end_pod(self, pod: nri.PodSandbox) -> None:
        """The pod is gone for good."""
        if pod.uid in self.occupancy.directory.by_pod:
            self.pod_devices.forget(pod)
        self.occupancy = self.occupancy.without_pod(pod.uid)
        self.nominations.forget(pod.uid)
        self.demands.forget(pod.uid)
        self.learned.forget(pod.uid)
        self.prepared.forget(pod.uid)

    def tidy(self) -> None:
        """Frees the room of pods that are gone, though the runtime reported no end of their sandboxes."""
        live = {allocation.pod for allocation in self.occupancy.allocations.values()}
        idle = {
            reservation.pod
            for reservation in self.occupancy.reservations.values()
            if reservation.opted_in and reservation.pod not in live
        }
        for pod in self.sandboxes.gone(idle):
            log.info("the room of a pod that is gone is free", pod=f"{pod.namespace}/{pod.name}")
            self.end_pod(pod)
