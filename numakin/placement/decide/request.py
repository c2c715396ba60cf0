"""What decide() is asked: a container to place, and what is known of its pod's peers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand, PodBudget
from numakin.placement.model.live_usage import Devices
from numakin.placement.optin.options import Cpus, OptIn, Pool, Scope
from numakin.placement.state.allocations import Part, Reservation, namespace_of


@dataclass(frozen=True, slots=True)
class Request:
    """A container to place. demand: the container's own; pod_demand: its whole pod's.

    devices: for each device that the container gets, the NUMA nodes it is near to; one without any has no say.
    workload: as `Reservation` has it. max_exclusive_cpus: what its namespace's own quota says of exclusive CPUs, None:
    nothing. refused: in words, what was left out of opt_in because of that quota. budget: its pod's own, where that has
    one and it is known; `demand` is then what the container asks for by itself, which may be nothing. within: as
    `Allocation` has it. lasts: as long as its pod, as far as is known; else its CPUs are free before the pod is up.
    """

    pod: str
    container: str
    name: str
    opt_in: OptIn
    demand: Demand
    pod_demand: Demand
    devices: tuple[NumaSet, ...] = ()
    workload: str = ""
    max_exclusive_cpus: int | None = None
    refused: tuple[str, ...] = ()
    budget: PodBudget | None = None
    within: CpuSet = CpuSet()
    lasts: bool = True

    @property
    def namespace(self) -> str:
        """Empty where neither its workload nor its group is known."""
        return namespace_of(self.workload, self.opt_in.group)

    @property
    def reservation_key(self) -> str:
        return self.pod if self.opt_in.scope is Scope.POD else f"{self.pod}/{self.name}"

    @property
    def reservation_demand(self) -> Demand:
        return self.pod_demand if self.opt_in.scope is Scope.POD else self.demand

    def reservation(
        self,
        numa_nodes: NumaSet,
        parts: tuple[Part, ...] = (),
        demand: Demand | None = None,
        cache_domain: CpuSet = CpuSet(),
        let_out: NumaSet = NumaSet(),
    ) -> Reservation:
        """The room that its pod (in container scope: the container) has there. demand: the reservation's, if it is
        another.
        """
        return Reservation(
            key=self.reservation_key,
            pod=self.pod,
            group=self.opt_in.group,
            numa_nodes=numa_nodes,
            demand=demand or self.reservation_demand,
            parts=parts,
            pool=self.pool,
            alone=self.opt_in.alone,
            size=self.opt_in.size,
            workload=self.workload,
            cache_domain=cache_domain,
            let_out=let_out,
        )

    @property
    def wants_exclusive(self) -> bool:
        """A container that asks for less than one CPU shares, unless `cpus.numakin.io` names it: what is said of its
        pod is meant for the pod's work, not for a proxy beside it. Of a pod with a budget that is asked of the budget.
        """
        asked = self.demand if self.budget is None else self.pod_demand
        return self.opt_in.cpus.own and (self.opt_in.cpus_named or asked.cpu_milli >= 1000)

    def rounded_up(self, count: int) -> int:
        """Millicores by which so many CPUs of its own are more than its pod's demand has for it, which is what it asks
        for. A budget's are for all of its pod's containers, and who does not last has what those after it will have.
        """
        return max(0, 1000 * count - self.demand.cpu_milli) if self.budget is None and self.lasts else 0

    @property
    def wants_stable(self) -> bool:
        """Whether its CPUs shall stay what they are."""
        return self.opt_in.cpus is Cpus.SHARED_STABLE and self.pool is Pool.SHARED

    @property
    def pool(self) -> Pool:
        """Exclusive CPUs are never those of another pool."""
        return Pool.SHARED if self.wants_exclusive else self.opt_in.pool


@dataclass(frozen=True, slots=True)
class Kin:
    """What is known of a pod's peers.

    weights: by peer pod uid; empty: every member of its group counts alike. elsewhere: weight of peers that are not on
    this machine. expected: the NUMA nodes that the extender nominated. room_milli: CPU that the rest of the group will
    still ask for; 0: not known. planned: the slot that the plan keeps for its workload. devices: by resource, how many
    the rest of a group that begins will ask for; the extender's own, as no enforcer is asked to keep any.
    """

    weights: Mapping[str, float] = field(default_factory=dict, hash=False)
    elsewhere: float = 0.0
    expected: NumaSet = NumaSet()
    planned: NumaSet = NumaSet()
    room_milli: int = 0
    devices: Devices = ()


NO_KIN = Kin()
