"""Which CPUs a container of a pod with a budget of its own gets, where these are to be exclusive.

The budget is one set of CPUs that no other pod has. Containers that ask for whole CPUs by themselves have slices of it,
the others share the rest (KEP-5526). The set is not stored: it is what the pod's live containers have, so that CPUs are
free as soon as a container stops, as those of any other are. A container whose slice was not known when the others took
the whole set takes it from their part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from numakin.placement.decide.cpus.exclusive import suits
from numakin.placement.decide.decision import Reason
from numakin.placement.decide.request import Request
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Cpus, Pool
from numakin.placement.state.allocations import Allocation
from numakin.placement.state.occupancy import Occupancy

BUDGET = "pod's budget"
"""What a reason is about that says how a container's CPUs come out of its pod's."""


@dataclass(frozen=True, slots=True)
class Share:
    """What becomes of a container's part. anew: CPUs that its pod has not yet, and has to have. common: those that the
    pod's containers without a slice have now. cut: CPUs that leave them for this container's slice. grown: CPUs that
    they should have more, if there are any, or fewer (negative).
    """

    anew: int
    common: CpuSet = CpuSet()
    cut: int = 0
    grown: int = 0


def share_of(occupancy: Occupancy, request: Request) -> Share:
    """For a request of exclusive CPUs; without a budget all that it asks for are its own."""
    budget = request.budget
    if budget is None:
        return Share(request.demand.whole_cpus)
    live = _siblings(occupancy, request)
    common = _common(request, live)
    has = len({cpu for allocation in live for cpu in allocation.exclusive})
    own = budget.slice_of(request.name)
    if own:
        if has + own <= budget.cpus or not common:
            return Share(own)
        if own < len(common):
            return Share(0, common, cut=own)
        return Share(0, common)
    running = {allocation.name: len(allocation.exclusive) for allocation in live}
    left = budget.cpus - sum(running.get(name) or size for name, size in budget.slices)
    if common:
        return Share(0, common, grown=left - len(common) if left > 0 else 0)
    return Share(max(0, left))


def has_its_share(machine: Machine, occupancy: Occupancy, request: Request, own: CpuSet) -> bool:
    """Whether these CPUs of its own are what the container should have."""
    share, whole_cores = share_of(occupancy, request), request.opt_in.cpus is Cpus.EXCLUSIVE_CORES
    if share.common and not share.cut:
        wanted = len(share.common) + share.grown
        return own == share.common and suits(machine, own, wanted, whole_cores=whole_cores)
    return suits(machine, own, share.anew or share.cut, whole_cores=whole_cores)


def within_budget(occupancy: Occupancy, request: Request) -> tuple[Request, tuple[Reason, ...]]:
    """One that finds its pod's budget given to others in slices runs in the shared pool."""
    if request.budget is None or not request.wants_exclusive:
        return request, ()
    share = share_of(occupancy, request)
    if share.anew or share.common:
        return request, ()
    shared = replace(request.opt_in, cpus=Cpus.SHARED, pool=Pool.SHARED)
    effect = "all of them are other containers' alone: shared pool instead"
    return replace(request, opt_in=shared), (Reason(BUDGET, f"{request.budget.cpus} CPUs", effect),)


def sharers_of(occupancy: Occupancy, request: Request) -> tuple[str, ...]:
    """The ids of the pod's other containers that have the common part."""
    live = _siblings(occupancy, request)
    common = _common(request, live)
    return tuple(allocation.container for allocation in live if common and allocation.exclusive == common)


def _siblings(occupancy: Occupancy, request: Request) -> list[Allocation]:
    """What the pod's other live containers have."""
    containers = occupancy.directory.by_reservation.get(request.reservation_key, ())
    return [occupancy.allocations[key] for key in containers if key != request.container]


def _common(request: Request, live: list[Allocation]) -> CpuSet:
    """Of the first that has CPUs and no slice."""
    budget = request.budget
    if budget is None:
        return CpuSet()
    return next((it.exclusive for it in live if it.exclusive and not budget.slice_of(it.name)), CpuSet())
