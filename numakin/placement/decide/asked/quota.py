"""How many more exclusive CPUs a namespace may have on a node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from numakin.placement.decide.asked.pod_budget import share_of
from numakin.placement.decide.cpus.exclusive import taken
from numakin.placement.decide.decision import Reason
from numakin.placement.decide.request import Request
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Cpus, Pool
from numakin.placement.optin.quotas import Quota
from numakin.placement.state.occupancy import Occupancy

QUOTA = "quota"
"""What a reason is about that says what was not granted."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """The request as it counts, and the reasons where that is less than was asked for."""

    request: Request
    reasons: tuple[Reason, ...] = ()


def within_quota(machine: Machine, occupancy: Occupancy, request: Request) -> Allowed:
    """A container whose CPUs would be too many runs in the shared pool. One that has as many already keeps them."""
    reasons = tuple(Reason(QUOTA, "", text) for text in request.refused)
    limit = limit_of(occupancy, request)
    mine = occupancy.allocations.get(request.container)
    if limit is None or not request.wants_exclusive:
        return Allowed(request, reasons)
    used, wanted = in_use(occupancy, request), taken_by(machine, occupancy, request)
    grows = share_of(occupancy, request).grown > 0
    if used + wanted <= limit or (mine is not None and len(mine.exclusive) >= wanted and not grows):
        return Allowed(request, reasons)
    asked = f"it has {used} and asked for {wanted} more"
    effect = f"for namespace {request.namespace} on a node; {asked}: shared pool instead"
    shared = replace(request.opt_in, cpus=Cpus.SHARED, pool=Pool.SHARED)
    return Allowed(replace(request, opt_in=shared), (*reasons, Reason(QUOTA, f"{limit} exclusive CPUs", effect)))


def on_node(occupancy: Occupancy, request: Request) -> Request:
    """Without what this node's rule for namespaces leaves out, whatever else is there."""
    most = occupancy.rules.max_exclusive_cpus_per_namespace
    if most is None or request.max_exclusive_cpus is not None or not request.opt_in.alone:
        return request
    opt_in, refused = Quota(exclusive_cpus=most).allowed(request.opt_in)
    return replace(request, opt_in=opt_in, refused=(*request.refused, *refused))


def limit_of(occupancy: Occupancy, request: Request) -> int | None:
    """Its namespace's own, else the node's for each; None: there is none."""
    own = request.max_exclusive_cpus
    return own if own is not None else occupancy.rules.max_exclusive_cpus_per_namespace


def in_use(occupancy: Occupancy, request: Request) -> int:
    """CPUs that other containers of the request's namespace have exclusively."""
    if not occupancy.directory.exclusive:
        return 0
    held = (
        allocation.exclusive.mask
        for allocation in occupancy.allocations.values()
        if allocation.exclusive
        and allocation.container != request.container
        and (reservation := occupancy.reservations.get(allocation.reservation)) is not None
        and reservation.namespace == request.namespace
    )
    return reduce(or_, held, 0).bit_count()  # a pod's containers may share what no other pod has


def has_room(machine: Machine, occupancy: Occupancy, request: Request) -> bool:
    """Whether its namespace may have as many exclusive CPUs more as a grant would take at the most."""
    limit = limit_of(occupancy, request)
    return limit is None or in_use(occupancy, request) + taken_by(machine, occupancy, request) <= limit


def taken_by(machine: Machine, occupancy: Occupancy, request: Request) -> int:
    """The most CPUs that a grant would take."""
    share, whole_cores = share_of(occupancy, request), request.opt_in.cpus is Cpus.EXCLUSIVE_CORES
    return taken(machine, share.anew + max(0, share.grown), whole_cores=whole_cores)
