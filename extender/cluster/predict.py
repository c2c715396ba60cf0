"""What a node's enforcer would decide for a pod: decide(), folded over its containers as the kubelet creates them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from extender.cluster.pods import PodRow
from placement.cpuset import NumaSet
from placement.decide import Decision, Kin, Request, decide
from placement.errors import AlreadyHeld
from placement.occupancy import Holding, Occupancy, Seat
from placement.optin import NOTHING, Cpus, OptIn, Policy, Scope, parse
from placement.topology import Machine
from placement.wishes import Defaults

STRICT = frozenset({Policy.RESTRICTED, Policy.SINGLE_NUMA_NODE})
"""The policies by which a node may be refused."""


@dataclass(frozen=True)
class Wanted:
    """An opted-in pod, ready to be predicted. requests: of its opted-in containers, in the order of their creation.

    lasting: the names of those that run as long as the pod; the others give their CPUs back before the pod is up.
    """

    pod: PodRow
    requests: tuple[Request, ...]
    lasting: frozenset[str]

    @property
    def opt_in(self) -> OptIn:
        return self.requests[0].opt_in

    @property
    def group(self) -> str:
        return self.opt_in.group

    @property
    def strict(self) -> bool:
        """Whether a node that can't align the pod may be refused to it."""
        return any(one.opt_in.policy in STRICT for one in self.requests)

    @property
    def alone_decides(self) -> bool:
        """Whether the first container's decision settles the place of all others."""
        return all(one.opt_in.scope is Scope.POD and one.opt_in.cpus is Cpus.SHARED for one in self.requests)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The decision for each opted-in container of a pod in order, and what they would occupy."""

    decisions: tuple[Decision, ...]
    seats: tuple[Seat, ...]
    holdings: tuple[Holding, ...]

    @property
    def fits(self) -> bool:
        return all(one.fits for one in self.decisions)

    @property
    def admitted(self) -> bool:
        """What the pod's policies say, as the kubelet's topology manager would."""
        return all(one.admitted for one in self.decisions)

    @property
    def score(self) -> float:
        """The mean over the containers, which in pod scope have all the same."""
        return sum(one.score for one in self.decisions) / len(self.decisions)

    @property
    def numa_nodes(self) -> NumaSet:
        mask = 0
        for one in self.decisions:
            mask |= one.numa_nodes.mask
        return NumaSet(mask)


def opt_ins(pod: PodRow, defaults: Callable[[str], Defaults] = lambda _group: NOTHING) -> dict[str, OptIn]:
    """What each container that has opted in asks for, by its name. defaults: as `parse` takes them."""
    asked = {one.name: parse(pod.namespace, pod.annotations, one.name, defaults)[0] for one in pod.containers}
    return {name: opt_in for name, opt_in in asked.items() if opt_in is not None}


def wanted(pod: PodRow, defaults: Callable[[str], Defaults] = lambda _group: NOTHING) -> Wanted | None:
    """None when no container of the pod is to be placed; BadQuantity when a demand can't be read."""
    asked = opt_ins(pod, defaults)
    requests = tuple(
        Request(pod.uid, f"{pod.uid}/{one.name}", one.name, asked[one.name], one.demand, pod.demand)
        for one in pod.containers
        if one.name in asked and asked[one.name].policy is not Policy.NONE
    )
    return Wanted(pod, requests, frozenset(one.name for one in pod.lasting)) if requests else None


def predict(machine: Machine, occupancy: Occupancy, want: Wanted, kin: Kin) -> Prediction:
    """The same answers, in the same order, as the node's enforcer would give on the same occupancy."""
    if want.alone_decides:
        only = want.requests[0]
        decision = decide(machine, occupancy, only, kin)
        return Prediction((decision,) * len(want.requests), (decision.seat(only),), ())
    decisions, seats, holdings = [], {}, []
    for request in want.requests:
        decision = decide(machine, occupancy, request, kin)
        decisions.append(decision)
        seat = decision.seat(request)
        seats[seat.key] = seat
        if request.name in want.lasting and decision.exclusive:
            holdings.append(decision.holding(request))
            occupancy = _applied(occupancy, decision, request)
        else:
            occupancy = occupancy.seated(seat)
    return Prediction(tuple(decisions), tuple(seats.values()), tuple(holdings))


def _applied(occupancy: Occupancy, decision: Decision, request: Request) -> Occupancy:
    """The occupancy that the pod's next container finds."""
    try:
        return decision.applied(occupancy, request)
    except AlreadyHeld:
        # Somebody who has not opted in is on these CPUs and stays there: the node lives with it, and so does the guess.
        return occupancy.changed(
            {request.seat_key: decision.seat(request)}, {request.container: decision.holding(request)}, checked=False
        )
