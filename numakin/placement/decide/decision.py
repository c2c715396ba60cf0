"""What decide() answers: where, with which CPUs and memory, how good that is, and why."""

from __future__ import annotations

from dataclasses import dataclass

from numakin.placement.decide.request import Request
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.state.occupancy import Allocation, Occupancy, Part, Reservation

LONGEST_SENTENCE = 1024
"""Bytes of an Event's message (Kubernetes' own bound, NoteLengthLimit of events.k8s.io)."""


@dataclass(frozen=True, slots=True)
class Reason:
    """What was considered, its number, and what it did to the decision."""

    what: str
    number: str
    effect: str

    def __str__(self) -> str:
        return f"{self.what} {self.number}: {self.effect}" if self.number else f"{self.what}: {self.effect}"


@dataclass(frozen=True, slots=True)
class MemoryPolicy:
    """A kernel memory policy (set_mempolicy(2)) for the container's processes, where the runtime can set one."""

    mode: str
    numa_nodes: NumaSet


@dataclass(frozen=True, slots=True)
class Decision:
    """numa_nodes: the home. cpus, mems: for the cgroup. exclusive: those of the CPUs that become its own.

    score: 0 (worst) to 1. fits: whether the demand fits at all; without it memory is left open, and `cpus` are all that
    no other container has for itself, or empty where that is all there are. shares_instead: it asked for CPUs of its
    own, and has none. stable: its CPUs stay what they are. share_again: containers that were alone on their CPUs, and
    are not any more.
    updates: new CPUs of other containers, by container id, that come with this decision.
    preferred: as the topology manager's bit: every resource could be had on as few NUMA nodes as it needs.
    admitted: what the pod's policy says of that; only the extender's filter may act on it, the enforcer never rejects.
    parts: how the reservation's demand lies on several NUMA nodes. memory_policy: None where `mems` or first touch does
    it. reservation_demand: the reservation's whole demand, when it is not what the request says. cache_domain: the
    CPUs that share a cache, within which the reservation's containers are kept; empty: they are not. crowded: more CPU
    will be used there than there is, by what workloads are known to use. hot: its CPUs are nearly all in use
    while others are not. let_out: as `Reservation` has it.
    """

    numa_nodes: NumaSet
    cpus: CpuSet
    mems: NumaSet
    exclusive: CpuSet
    score: float
    fits: bool
    reasons: tuple[Reason, ...]
    updates: tuple[tuple[str, CpuSet], ...] = ()
    preferred: bool = True
    admitted: bool = True
    memory_policy: MemoryPolicy | None = None
    parts: tuple[Part, ...] = ()
    reservation_demand: Demand | None = None
    cache_domain: CpuSet = CpuSet()
    shares_instead: bool = False
    stable: bool = False
    share_again: tuple[str, ...] = ()
    crowded: bool = False
    hot: bool = False
    let_out: NumaSet = NumaSet()

    def reservation(self, request: Request) -> Reservation:
        """The room that the pod (in container scope: the container) has from now on."""
        return request.reservation(
            self.numa_nodes, self.parts, self.reservation_demand, self.cache_domain, self.let_out
        )

    def allocation(self, request: Request) -> Allocation:
        """What the container has from now on."""
        return Allocation(
            request.container,
            request.name,
            request.pod,
            request.reservation_key,
            self.cpus,
            self.mems,
            self.exclusive,
            open=not self.fits,
            stable=self.stable,
            within=request.within,
            rounded_up=request.rounded_up(len(self.exclusive)),
        )

    def applied(self, occupancy: Occupancy, request: Request) -> Occupancy:
        """The occupancy once this decision is carried out, its updates included; AlreadyHeld when it is too old."""
        held = occupancy.allocations
        allocations = {key: held[key].sharing() for key in self.share_again if key in held}
        for container, cpus in self.updates:
            if container in held:
                allocations[container] = allocations.get(container, held[container]).resized(cpus)
        allocation = self.allocation(request)
        return occupancy.changed(
            reservations={request.reservation_key: self.reservation(request)},
            allocations={**allocations, allocation.container: allocation},
        )

    @property
    def sentence(self) -> str:
        """The reasons in one line, short enough for an Event; what does not fit is cut off and said to be."""
        text = "; ".join(map(str, self.reasons))
        if len(text.encode()) <= LONGEST_SENTENCE:
            return text
        return text.encode()[: LONGEST_SENTENCE - 3].decode(errors="ignore") + "..."
