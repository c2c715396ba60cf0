"""A pod whose containers are placed one by one is placed as one all the same, while a NUMA node holds all of it.

Its containers talk with each other more than with other pods, and plans, moves and counts are of pods. So the first one
asks for the whole pod, and those that follow join it; `Scope.CONTAINER` only shows where that does not hold: then each
container goes where it fits by itself, beside the others of its pod where it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from numakin.placement.decide.asked.quota import on_node, within_quota
from numakin.placement.decide.request import NO_KIN, Request
from numakin.placement.decide.survey import survey
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand, larger, less
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Policy, Scope
from numakin.placement.state.occupancy import Occupancy, Reservation


def as_placed(machine: Machine, occupancy: Occupancy, request: Request, key: str = "") -> Request:
    """The request as it is decided on this node: without what the node's rule for namespaces leaves out, and for the
    whole pod as one where that holds: a pod with a budget of its own always is, its containers' shares of it are not
    known one by one.

    key: of the reservation that it was placed by before it was known here; empty: it is placed now. One that is here,
    or was, stays with its reservation, whatever its namespace may ask for by now.
    """
    request = on_node(occupancy, request)
    mine = occupancy.allocations.get(request.container)
    whole = without_those_apart(_of(request, Scope.POD), apart(occupancy, request.pod), request.demand)
    if mine is not None and mine.reservation != request.container:
        return whole if mine.reservation == request.pod else _of(request, Scope.CONTAINER)
    if key not in ("", request.pod):
        return _of(request, Scope.CONTAINER)
    if request.opt_in.scope is Scope.POD:
        return whole
    if request.opt_in.policy is Policy.NONE:
        return request
    if key:
        return whole
    one = request.budget is not None and not occupancy.members_of(request.pod, but=request.pod)
    return whole if one or _is_one(machine, occupancy, request, whole) else request


def whole_reservation(occupancy: Occupancy, request: Request) -> Request:
    """With the pod's demand never less than what its reservation is known to need: an estimate may know one container
    only.
    """
    reservation = occupancy.reservations.get(request.reservation_key)
    if reservation is None or not request.pod_demand.estimated or reservation.demand == request.reservation_demand:
        return request
    if request.reservation_key != request.pod:
        return request
    return replace(request, pod_demand=larger(request.pod_demand, reservation.demand))


def apart(occupancy: Occupancy, pod: str) -> list[Reservation]:
    """Those of its containers that are not placed with the others: one by one, or not by us."""
    return [occupancy.reservations[key] for key in occupancy.directory.by_pod.get(pod, ()) if key != pod]


def without_those_apart(request: Request, others: Sequence[Reservation], least: Demand) -> Request:
    """With what is left of its pod's demand, where it is placed as one, beside the pod's other reservations. least:
    what is known to be asked for by those that are placed as one.
    """
    if request.opt_in.scope is not Scope.POD or not others:
        return request
    rest = reduce(less, (reservation.demand for reservation in others), request.pod_demand)
    return replace(request, pod_demand=larger(rest, least))


def _of(request: Request, scope: Scope) -> Request:
    return request if request.opt_in.scope is scope else replace(request, opt_in=replace(request.opt_in, scope=scope))


def _is_one(machine: Machine, occupancy: Occupancy, request: Request, whole: Request) -> bool:
    members = occupancy.reservations.keys()
    if request.reservation_key in members:
        return False
    if request.pod in members:
        return _holds(machine, occupancy, whole)
    return not occupancy.members_of(request.pod) and _holds(machine, occupancy, whole)


def _holds(machine: Machine, occupancy: Occupancy, whole: Request) -> bool:
    """Whether the pod, or this container of it beside those that run, has room on one NUMA node, near its devices."""
    asked = within_quota(machine, occupancy, whole_reservation(occupancy, whole)).request
    room = survey(machine, occupancy, asked, NO_KIN)
    masks = [1 << numa_node for numa_node in room.usable]
    if occupancy.directory.by_reservation.get(whole.pod):
        masks = [occupancy.reservations[whole.pod].numa_nodes.mask]
    usable = NumaSet.of(room.usable)
    there = (room.weigh(mask) for mask in masks if NumaSet(mask) <= usable)
    return any(candidate.fits and not candidate.misses and not candidate.spills for candidate in there)
