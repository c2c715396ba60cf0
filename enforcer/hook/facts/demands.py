"""What each member's container asks for now, and its whole pod.

The runtime's messages are current: the kubelet sets CPU shares and memory limits at creation and at each in-place
resize. What the extender sends is exact, and has memory requests and workloads, which no other source has; but it is
as old as the nomination or the watch that brought it: where the two differ, the runtime's counts. Without the extender,
only what a pod's containers and its sandbox show is known; whether a pod has resources of its own then follows from
that (`pod_budget`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from enforcer.hook.facts import pods
from enforcer.hook.facts.nominations import Nominations
from enforcer.hook.facts.pod_budget import NOTHING, Own, ResourceSettings, asked_by_itself, own_resources, resized_with
from numakin.placement.decide.asked.whole_pod import apart, without_those_apart
from numakin.placement.decide.request import Request
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.demand import UNKNOWN_LIMIT, Demand, PodBudget, counted, larger, resized
from numakin.placement.model.topology import Machine
from numakin.placement.optin import parsing
from numakin.placement.optin.options import OptIn, Scope
from numakin.placement.optin.quotas import UNLIMITED, Quota
from numakin.placement.state.allocations import Reservation
from numakin.placement.state.occupancy import Occupancy
from numakin.wire import nri_pb2 as nri

Limited = Callable[[str, str], bool | None]
"""From a container's cgroup path and its pod's uid to whether every container of the pod has a memory limit; None:
not known.
"""


class _Shown(NamedTuple):
    """A container's settings, and what they let us guess."""

    estimate: Demand
    shares: int | None
    memory_limit: int | None
    settings: ResourceSettings


@dataclass(slots=True)
class _Member:
    """One pod, as its runtime shows it. whole: as it was when the sandbox was made, or when the runtime said that it
    was resized (resized); None: not known.

    first, now: by container name, at its creation (or when first met) and now. live: names by container id. A whole
    that is current is compared with what the containers have now, one of the creation with what they had then.
    """

    sandbox: str
    whole: _Shown | None
    resized: bool = False
    cgroups_path: str = ""
    first: dict[str, _Shown] = field(default_factory=dict)
    now: dict[str, _Shown] = field(default_factory=dict)
    live: dict[str, str] = field(default_factory=dict)

    @property
    def own(self) -> Own:
        """What the pod has of its own, by what its live containers were created with."""
        if self.whole is None or len(self.live) < 2:
            return NOTHING
        return own_resources(self.whole.settings, {name: before for name, (before, _) in self.settings.items()})

    @property
    def settings(self) -> dict[str, tuple[ResourceSettings, ResourceSettings]]:
        """Of the live containers, by name: those to compare with `whole`, and those of now."""
        before = self.now if self.resized else self.first
        return {name: (before[name].settings, self.now[name].settings) for name in self.live.values()}


class Demands:
    """By pod uid, of members alone; forgotten when the pod is."""

    def __init__(self, nominations: Nominations, limited: Limited) -> None:
        self._nominations, self._limited = nominations, limited
        self._members: dict[str, _Member] = {}
        self.quotas: Mapping[str, Quota] = {}
        """By namespace, where an operator has set one and the extender has sent it."""
        self.uses: Mapping[str, int] = {}
        """By workload the millicores that one of its pods was seen to use here."""
        self._limited_ahead: dict[str, bool | None] = {}

    def request(self, pod: nri.PodSandbox, container: nri.Container) -> Request | None:
        """What to place, None when the container has not opted in. The container is as it is now."""
        opt_in = parsing.parse(pod.namespace, pod.annotations, container.name)
        if opt_in is None:
            return None
        member = self._met(pod, container)
        demand, whole, budget = self._asked(pod.uid, member, container.name)
        allowed, refused = self._allowed(pod.namespace, pod.uid, container.name, opt_in)
        workload = self.workload(pod)
        return Request(
            pod=pod.uid,
            container=container.id,
            name=container.name,
            opt_in=allowed,
            demand=demand,
            pod_demand=self._counted(pod.uid, workload, whole),
            workload=workload,
            max_exclusive_cpus=self._quota(pod.namespace).exclusive_cpus,
            refused=refused,
            budget=budget,
            lasts=self._nominations.lasts(pod.uid, container.name),
        )

    def foreseen(self, pod: nri.PodSandbox, like: Request | None) -> Request | None:
        """What the pod's first container will ask for, where it is as that of another pod of its workload was."""
        opt_in = parsing.parse(pod.namespace, pod.annotations, like.name) if like is not None else None
        if like is None or opt_in is None:
            return None
        nominated = self._nominations.demands(pod.uid)
        if pod.uid not in self._limited_ahead and pod.linux.cgroups_path:
            self._limited_ahead[pod.uid] = self._limited(pod.linux.cgroups_path, pod.uid)
        allowed, refused = self._allowed(pod.namespace, pod.uid, like.name, opt_in)
        workload, whole = self.workload(pod), self._nominations.pod_demand(pod.uid, {}) or like.pod_demand
        return replace(
            like,
            pod=pod.uid,
            container="",
            opt_in=allowed,
            max_exclusive_cpus=self._quota(pod.namespace).exclusive_cpus,
            refused=refused,
            demand=nominated.get(like.name, like.demand),
            pod_demand=self._counted(pod.uid, workload, whole),
            workload=workload,
            budget=self._nominations.budget(pod.uid),
        )

    def _counted(self, pod: str, workload: str, asked: Demand) -> Demand:
        """With what its workload uses: as seen here, else as the extender has it."""
        return counted(asked, self.uses.get(workload) or self._nominations.used_milli(pod))

    def resize_pod(self, pod: str, resources: nri.LinuxResources) -> bool:
        """The runtime says what the pod's sandbox has from now on; whether the pod is a member that is known."""
        member = self._members.get(pod)
        if member is None:
            return False
        member.whole, member.resized = _shown(resources.SerializeToString()), True
        return True

    def _quota(self, namespace: str) -> Quota:
        return self.quotas.get(namespace, UNLIMITED)

    def _allowed(self, namespace: str, pod: str, container: str, own: OptIn) -> tuple[OptIn, tuple[str, ...]]:
        """What the container asks for as far as its namespace may, and in words what is left out. own: by its
        annotations alone.
        """
        return self._quota(namespace).allowed(self._nominations.opt_in(pod, container, own))

    def workload(self, pod: nri.PodSandbox) -> str:
        """NAMESPACE/KIND/NAME of what owns the pod: as the extender has it, else by its labels."""
        return self._nominations.workload(pod.uid) or pods.workload(pod)

    def renewed(
        self, pod: str, requests: Mapping[str, Request], occupancy: Occupancy
    ) -> tuple[dict[str, Request], dict[str, Reservation]]:
        """The requests of the pod's containers, by id, and its reservations, as far as they have changed."""
        member = self._members.get(pod)
        after: dict[str, Request] = {}
        reservations: dict[str, Reservation] = {}
        if member is None:
            return after, reservations
        fresh = {key: self._renewed(requests[key], member) for key in member.live if key in requests}
        as_one = [key for key, request in fresh.items() if request.opt_in.scope is Scope.POD]
        together = sum((fresh[key].demand for key in as_one), Demand())
        by_themselves = [key for key in fresh if key not in as_one]
        for container in (*by_themselves, *as_one):  # these are what is left of the pod beside those
            others = [reservations.get(it.key, it) for it in apart(occupancy, pod)]
            now, before = without_those_apart(fresh[container], others, together), requests[container]
            after |= {container: now} if now != before else {}
            reservation = occupancy.reservations.get(now.reservation_key)
            current = reservation and replace(
                reservation, demand=now.reservation_demand, workload=now.workload, size=now.opt_in.size
            )
            if current is not None and current != reservation:
                reservations[current.key] = current
        return after, reservations

    def shown(self, pod: str, container: str) -> tuple[int, ...]:
        """What the runtime shows that the container with this id asks for: millicores, bytes; empty: not known."""
        member = self._members.get(pod)
        name = member.live.get(container) if member is not None else None
        if member is None or name is None:
            return ()
        estimate = member.now[name].estimate
        return estimate.cpu_milli, estimate.memory

    def stopped(self, pod: str, container: str) -> None:
        member = self._members.get(pod)
        if member is not None:
            member.live.pop(container, None)

    def forget(self, pod: str) -> None:
        self._members.pop(pod, None)
        self._limited_ahead.pop(pod, None)

    def clear(self) -> None:
        """The runtime lists everything anew."""
        self._members.clear()
        self._limited_ahead.clear()

    def _met(self, pod: nri.PodSandbox, container: nri.Container) -> _Member:
        member = self._members.get(pod.uid)
        if member is None or member.sandbox != pod.id:
            known = pod.linux.HasField("pod_resources")
            member = _Member(pod.id, _shown(pod.linux.pod_resources.SerializeToString()) if known else None)
            self._members[pod.uid] = member
        shown = _shown(container.linux.resources.SerializeToString())
        member.cgroups_path = container.linux.cgroups_path
        member.first.setdefault(container.name, shown)
        member.now[container.name] = shown
        member.live[container.id] = container.name
        return member

    def _renewed(self, request: Request, member: _Member) -> Request:
        demand, whole, budget = self._asked(request.pod, member, request.name)
        workload = self._nominations.workload(request.pod) or request.workload
        allowed, refused = self._allowed(request.namespace, request.pod, request.name, request.opt_in)
        return replace(
            request,
            opt_in=replace(allowed, scope=request.opt_in.scope),  # whose its reservation is does not change
            max_exclusive_cpus=self._quota(request.namespace).exclusive_cpus,
            refused=tuple(dict.fromkeys((*request.refused, *refused))),
            demand=demand,
            pod_demand=self._counted(request.pod, workload, whole),
            workload=workload,
            budget=budget,
            lasts=self._nominations.lasts(request.pod, request.name),
        )

    def _asked(self, pod: str, member: _Member, name: str) -> tuple[Demand, Demand, PodBudget | None]:
        """The container's demand, its whole pod's, and the pod's budget."""
        nominated, changed = self._nominations.demands(pod), {}
        budget, own = self._nominations.budget(pod), member.own
        for live in member.live.values():
            exact, shown = nominated.get(live), member.now[live]
            if exact is not None:
                now = _resized(exact, shown, shares_pod=budget is not None)
                if now is not exact:
                    changed[live] = now
        demand = changed.get(name) or nominated.get(name) or _by_itself(member, own, name)
        whole = self._nominations.pod_demand(pod, changed)
        if whole is None:
            whole, budget = self._shown(pod, member, own), own.budget
            return demand, whole, replace(budget, cpus=whole.whole_cpus) if budget is not None else None
        if member.resized and member.whole is not None:
            whole = resized(whole, shares=member.whole.shares, memory_limit=member.whole.memory_limit)
        return demand, whole, replace(budget, cpus=whole.whole_cpus) if budget is not None else None

    def _shown(self, pod: str, member: _Member, own: Own) -> Demand:
        """Without the extender. The sandbox has the pod's own requests and limits, or the sums of those that its
        containers set, as they were at its creation: what came since is added. Containers that were not met yet may
        have no limit, and then the pod has none.
        """
        estimates = {name: shown.estimate for name, shown in member.now.items()}
        live = tuple(estimates[name] for name in dict.fromkeys(member.live.values()))
        whole = member.whole.estimate if member.whole is not None else None
        if member.resized:
            total = _total(live, whole, ())
        else:
            changes = ((first.estimate, estimates[name]) for name, first in member.first.items())
            total = _total(live, whole, tuple(changes))
        if member.whole is not None and own is not NOTHING:
            total = resized_with(total, member.whole.estimate, own, member.settings)
        if total.memory_limit is None:
            return total
        # The kubelet limits the pod's cgroup before it asks for its sandbox; other callers may do so later.
        limited = self._limited_ahead.pop(pod, None) or self._limited(member.cgroups_path, pod)
        if limited:
            return total
        unknown = UNKNOWN_LIMIT if limited is None else frozenset()
        return replace(total, memory_limit=None, estimated=total.estimated | unknown)


def _resized(exact: Demand, shown: _Shown, *, shares_pod: bool) -> Demand:
    """The nominated demand of a container as its settings say it is now. shares_pod: what it does not ask for by itself
    is its pod's.
    """
    if not shares_pod:
        return resized(exact, shares=shown.shares, memory_limit=shown.memory_limit)
    return resized(
        exact,
        shares=shown.shares if exact.cpu_milli else None,
        memory_limit=shown.memory_limit if exact.memory_limit is not None else None,
    )


def _by_itself(member: _Member, own: Own, name: str) -> Demand:
    """What the runtime shows of the container, without what it was given of its pod's."""
    shown = member.now[name]
    if own.budget is None or member.whole is None:
        return shown.estimate
    if name not in own.given:
        return shown.estimate
    before, _ = member.settings[name]
    return replace(shown.estimate, cpu_milli=asked_by_itself(member.whole.settings, before))


@lru_cache(maxsize=1024)
def _total(live: tuple[Demand, ...], whole: Demand | None, changes: tuple[tuple[Demand, Demand], ...]) -> Demand:
    """What these containers ask for, or their whole pod at the sandbox's creation, with what has changed since: from
    and to, of each container. One value for all replicas.
    """
    first, *others = live
    total = sum(others, first)
    if whole is None:
        return total
    cpu = whole.cpu_milli + sum(now.cpu_milli - before.cpu_milli for before, now in changes)
    memory = max(0, whole.memory + sum(now.memory - before.memory for before, now in changes))
    limit = None if total.memory_limit is None else memory
    return larger(total, replace(whole, cpu_milli=max(0, cpu), memory=memory, memory_limit=limit))


@lru_cache(maxsize=1024)
def _shown(encoded: bytes) -> _Shown:
    """encoded: LinuxResources. One value for all replicas."""
    resources = nri.LinuxResources.FromString(encoded)
    cpu, memory = resources.cpu, resources.memory
    estimate, quota, period = pods.demand_of(resources), cpu.quota.value, cpu.period.value
    limit = memory.limit.value if memory.HasField("limit") else None
    return _Shown(
        estimate,
        cpu.shares.value if cpu.HasField("shares") else None,
        limit,
        ResourceSettings(estimate.cpu_milli, quota * 1000 // period if quota > 0 and period else None, limit or None),
    )


def unmanaged_resized(machine: Machine, occupancy: Occupancy, container: nri.Container) -> Occupancy:
    """With the CPU that a container which has not opted in asks for now."""
    reservation, held = occupancy.reservations.get(container.id), occupancy.allocations.get(container.id)
    if reservation is None or held is None:
        return occupancy
    now = unmanaged_demand(machine, container.linux.resources, held.cpus).cpu_milli
    if reservation.demand.cpu_milli == now:
        return occupancy
    return occupancy.with_reservation(replace(reservation, demand=replace(reservation.demand, cpu_milli=now)))


def unmanaged_demand(machine: Machine, resources: nri.LinuxResources, cpus: CpuSet) -> Demand:
    """What a container takes that has not opted in. What it really uses of memory and hugepages is missing from what is
    free; isolated CPUs are no other's. cpus: those that it has; empty: all.
    """
    demand = pods.demand_of(resources)
    cpu_milli = max(0, demand.cpu_milli - 1000 * len(isolated_of(machine, cpus)))
    return replace(demand, cpu_milli=cpu_milli, memory=0, hugepages={})


def isolated_of(machine: Machine, cpus: CpuSet) -> CpuSet:
    """Those of a container's CPUs that the kernel keeps for whoever names them; none where it has them all."""
    return CpuSet() if machine.cpus <= cpus else cpus - machine.cpus
