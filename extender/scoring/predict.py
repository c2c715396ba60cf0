"""What a node's enforcer would decide for a pod: decide(), folded over its containers as the kubelet creates them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from extender.scoring import devices
from extender.state.pods import PodRow
from numakin.placement.decide.asked.whole_pod import as_placed
from numakin.placement.decide.cpus.cache_domain import keeps_to_cache
from numakin.placement.decide.decide import Decision, Kin, Request, decide
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand, counted
from numakin.placement.model.errors import AlreadyHeld
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Cpus, Defaults
from numakin.placement.optin.parsing import NOTHING, OptIn, Policy, Scope, parse
from numakin.placement.optin.quotas import UNLIMITED, Quota
from numakin.placement.state.occupancy import Allocation, Occupancy, Reservation

CPUS_OF_A_CORE = 2
"""Where it is not known yet on which machine: whoever asks for whole cores has machines with several CPUs in each."""

STRICT = frozenset({Policy.RESTRICTED, Policy.SINGLE_NUMA_NODE})
"""The policies by which a node may be refused."""


@dataclass(frozen=True)
class Wanted:
    """An opted-in pod, ready to be predicted. requests: of its opted-in containers, in the order of their creation."""

    pod: PodRow
    requests: tuple[Request, ...]

    @property
    def opt_in(self) -> OptIn:
        return self.requests[0].opt_in

    @property
    def group(self) -> str:
        return self.opt_in.group

    @cached_property
    def exclusive(self) -> bool:
        """Whether any container asks for exclusive CPUs."""
        return any(request.wants_exclusive for request in self.requests)

    @property
    def strict(self) -> bool:
        """Whether a node that can't align the pod may be refused to it."""
        return any(request.opt_in.policy in STRICT for request in self.requests)

    @cached_property
    def whole(self) -> tuple[Request, ...]:
        """The requests where the pod is placed as one: on every node that has a NUMA node with room for all of it."""
        return tuple(
            request
            if request.opt_in.scope is Scope.POD
            else replace(request, opt_in=replace(request.opt_in, scope=Scope.POD))
            for request in self.requests
        )

    @cached_property
    def alone_decides(self) -> bool:
        """Whether the first container's decision settles the place of all others where the pod is placed as one."""
        return not self.exclusive


@dataclass(frozen=True, slots=True)
class PredictedPlace:
    """What a pod would occupy on a node."""

    numa_nodes: NumaSet
    reservations: tuple[Reservation, ...]
    allocations: tuple[Allocation, ...] = ()


@dataclass(frozen=True, slots=True)
class Prediction:
    """The decision for each opted-in container of a pod in order, and what they would occupy."""

    decisions: tuple[Decision, ...]
    reservations: tuple[Reservation, ...]
    allocations: tuple[Allocation, ...]

    @property
    def fits(self) -> bool:
        return all(decision.fits for decision in self.decisions)

    @property
    def fits_as_asked(self) -> bool:
        """Whether it fits with the CPUs of its own that it asks for, and takes no other's."""
        return self.fits and not any(decision.shares_instead or decision.share_again for decision in self.decisions)

    @property
    def shares_instead(self) -> bool:
        """Whether a container that asks for CPUs of its own would have none."""
        return any(decision.shares_instead for decision in self.decisions)

    @property
    def admitted(self) -> bool:
        """What the pod's policies say, as the kubelet's topology manager would."""
        return all(decision.admitted for decision in self.decisions)

    @property
    def score(self) -> float:
        """The mean over the containers, which have all the same where the pod is placed as one."""
        return sum(decision.score for decision in self.decisions) / len(self.decisions)

    @property
    def numa_nodes(self) -> NumaSet:
        mask = 0
        for decision in self.decisions:
            mask |= decision.numa_nodes.mask
        return NumaSet(mask)

    @property
    def place(self) -> PredictedPlace | None:
        """None where the pod does not fit."""
        return PredictedPlace(self.numa_nodes, self.reservations, self.allocations) if self.fits else None


def opt_ins(pod: PodRow, defaults: Callable[[str], Defaults] = lambda _group: NOTHING) -> dict[str, OptIn]:
    """What each container that has opted in asks for, by its name. defaults: as `parse` takes them."""
    parsed = {
        container.name: parse(pod.namespace, pod.annotations, container.name, defaults) for container in pod.containers
    }
    return {name: opt_in for name, opt_in in parsed.items() if opt_in is not None}


def wanted(
    pod: PodRow,
    defaults: Callable[[str], Defaults] = lambda _group: NOTHING,
    quota: Quota = UNLIMITED,
    used_milli: int = 0,
) -> Wanted | None:
    """None when no container of the pod is to be placed; BadQuantity when a demand can't be read. quota: its
    namespace's. used_milli: what pods of its workload use, 0: not known.
    """
    allowed = {name: quota.allowed(opt_in) for name, opt_in in opt_ins(pod, defaults).items()}
    lasting = {container.name for container in pod.lasting}
    requests = tuple(
        Request(
            pod.uid,
            f"{pod.uid}/{container.name}",
            container.name,
            opt_in,
            container.demand,
            counted(pod.demand, used_milli),
            workload=pod.workload,
            max_exclusive_cpus=quota.exclusive_cpus,
            refused=refused,
            budget=pod.budget,
            lasts=container.name in lasting,
        )
        for container in pod.containers
        if container.name in allowed
        for opt_in, refused in (allowed[container.name],)
        if opt_in.policy is not Policy.NONE
    )
    return Wanted(pod, requests) if requests else None


def taken_demand(pod: PodRow) -> Demand:
    """The pod's, with the CPUs of its own whole: on whichever node. BadQuantity as `PodRow.demand`."""
    want = wanted(pod)
    own = [request for request in want.requests if request.wants_exclusive and request.lasts] if want else []
    if not own:
        return pod.demand
    if pod.budget is not None:
        return replace(pod.demand, cpu_milli=1000 * pod.budget.cpus)
    more = sum(1000 * _cpus(request) - request.demand.cpu_milli for request in own)
    return replace(pod.demand, cpu_milli=pod.demand.cpu_milli + more)


def _cpus(request: Request) -> int:
    size = CPUS_OF_A_CORE if request.opt_in.cpus is Cpus.EXCLUSIVE_CORES else 1
    return -(-request.demand.whole_cpus // size) * size


def predict(machine: Machine, occupancy: Occupancy, want: Wanted, kin: Kin) -> Prediction:
    """The same answers, in the same order, as the node's enforcer would give on the same occupancy, once the kubelet
    has given the pod the devices that it will probably get.
    """
    pod, live = want.pod, occupancy.live
    first = devices.expected(want.requests[0], pod, live, kin)
    if want.alone_decides and (only := as_placed(machine, occupancy, first)).opt_in.scope is Scope.POD:
        decision = decide(machine, occupancy, only, kin)
        return Prediction((decision,) * len(want.requests), (decision.reservation(only),), ())
    decisions, reservations, allocations = [], {}, []
    for asked in want.requests:
        request = as_placed(machine, occupancy, devices.expected(asked, pod, live, kin))
        request = devices.expected(request, pod, live, kin)
        decision = decide(machine, occupancy, request, kin)
        decisions.append(decision)
        reservation = decision.reservation(request)
        reservations[reservation.key] = reservation
        if decision.share_again or (request.lasts and decision.exclusive):
            if decision.exclusive:
                allocations.append(decision.allocation(request))
            occupancy = _applied(occupancy, decision, request)
        else:
            occupancy = occupancy.with_reservation(reservation)
    return Prediction(tuple(decisions), tuple(reservations.values()), tuple(allocations))


def place_on_one(machine: Machine, occupancy: Occupancy, want: Wanted, numa_node: int) -> PredictedPlace | None:
    """The prediction's where that is known to be this one NUMA node; None where more would have to be decided: CPUs of
    its own, a cache domain, memory elsewhere.
    """
    home, whole = NumaSet(1 << numa_node), want.whole[0]
    if not want.alone_decides or keeps_to_cache(whole, occupancy.rules) or not machine.nearest_mems(home) <= home:
        return None
    return PredictedPlace(home, (whole.reservation(home),))


def _applied(occupancy: Occupancy, decision: Decision, request: Request) -> Occupancy:
    """The occupancy that the pod's next container finds."""
    try:
        return decision.applied(occupancy, request)
    except AlreadyHeld:
        # A container that has not opted in is on these CPUs and stays there: the node lives with it, and so does the
        # guess.
        return occupancy.changed(
            {request.reservation_key: decision.reservation(request)},
            {request.container: decision.allocation(request)},
            checked=False,
        )
