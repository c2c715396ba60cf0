"""Pods, nodes and Services as the API server reports them, reduced to what placement needs: the rows that
`extender.kube` makes.

Nothing here knows the API server; `extender.scheduler.wire` builds the same rows from what kube-scheduler sends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import inf
from typing import Generic, NamedTuple, TypeVar

from extender.state import told_groups
from extender.state.pod_terms import NO_POD_TERMS, PodKind, PodTerms
from numakin.placement.model.demand import (
    LARGEST_QUANTITY,
    Demand,
    PodBudget,
    from_resources,
    of_pod,
    own_resources,
    quantity,
    whole_cpus_of,
)
from numakin.placement.model.errors import BadQuantity
from numakin.placement.model.live_usage import Devices
from numakin.placement.model.names import is_kind, is_object
from numakin.placement.model.node_terms import NO_TERMS, NodeTerms, Taint
from numakin.placement.model.workload import NODE, template_of
from numakin.placement.plan.problem import CpuAndMemory
from numakin.placement.traffic.mentions import NO_MENTIONS, Mentions

Row = TypeVar("Row")

ENDED = frozenset({"Succeeded", "Failed"})
"""The phases in which a pod has no running container any more and never will."""

NOTHING_BESIDE = Demand()

DEMANDS = 1024
"""Different ones that are kept: replicas ask for the same, and each is asked for it several times."""


@dataclass(frozen=True, slots=True)
class ContainerRow:
    """One container. requests, limits: resource name -> quantity as written: what the node has given it once it runs,
    which after a resize in place is another than the spec's until it is carried out.

    init: runs before the others; restartable: and stays, a sidecar.
    """

    name: str
    requests: Mapping[str, str] = field(default_factory=dict, hash=False)
    limits: Mapping[str, str] = field(default_factory=dict, hash=False)
    init: bool = False
    restartable: bool = False

    @property
    def demand(self) -> Demand:
        """BadQuantity when a quantity is not one."""
        return _demand(tuple(self.requests.items()), tuple(self.limits.items()))

    @property
    def devices(self) -> Mapping[str, int]:
        """How many of each resource that is not Kubernetes' own, as device plugins have them."""
        return _devices(tuple(self.requests.items()), tuple(self.limits.items()))

    @property
    def slice(self) -> int:
        """Whole CPUs that it has for itself of its pod's budget, where that has one; 0: none."""
        return whole_cpus_of(self.requests, self.limits)


@lru_cache(maxsize=DEMANDS)
def _demand(requests: tuple[tuple[str, str], ...], limits: tuple[tuple[str, str], ...]) -> Demand:
    return from_resources(dict(requests), dict(limits))


@lru_cache(maxsize=DEMANDS)
def _devices(requests: tuple[tuple[str, str], ...], limits: tuple[tuple[str, str], ...]) -> Mapping[str, int]:
    """Extended resources are whole, and asked for as their limit is; what is none counts as nothing."""
    asked = {**dict(limits), **dict(requests)}
    counts = {name: _count(text) for name, text in asked.items() if "/" in name}
    return {name: count for name, count in counts.items() if count}


def _count(text: str) -> int:
    """As the API server has them: 3000 is `3k`. Templates of other projects' kinds may have any: 0 for what is none."""
    try:
        amount = quantity(text)
    except BadQuantity:
        return 0
    return int(amount) if 0 <= amount <= LARGEST_QUANTITY and amount == amount.to_integral_value() else 0


@lru_cache(maxsize=DEMANDS)
def _summed(containers: tuple[Demand, ...], init_containers: tuple[tuple[Demand, bool], ...]) -> Demand:
    return of_pod(containers, init_containers)


@dataclass(frozen=True, slots=True)
class OwnerRow:
    """The controller whose replicas are alike: the top of the chain that begins with the ownerReference that says
    controller: true. uid: where that one is the pod's own, since names carry no uids.
    """

    kind: str
    name: str
    uid: str = ""


def owner_row(kind: str, name: str, uid: str = "") -> OwnerRow | None:
    """None for an owner that no controller is: a pod's author may write anything there."""
    return OwnerRow(kind, name, uid) if is_kind(kind) and is_object(name) else None


@dataclass(frozen=True)
class PodRow:
    """One pod. uid: as its node calls it. containers: init containers first, in the order of the spec. node: empty
    until bound.

    requests, limits: the pod's own (pod-level resources), which go before its containers'. account: the service
    account's name. priority: as its PriorityClass has it. gated: it has scheduling gates, so that kube-scheduler does
    not try it yet.
    own_terms: it says by itself where it may go, by more than terms: beside or away from which pods, by its volumes, or
    by what can't be read. said: where that is all: what it says of pods of its namespace. terms: of nodes. labels,
    mentions, terms: of a pod that has opted in; mentions where the Services that its containers name are asked for.
    leaving: it is being deleted. nominated: the node that kube-scheduler has nominated for it. scheduling_group: the
    PodGroup that it is scheduled with, if any; of 1.35 its Workload's. unscheduled: a number that is another for each
    condition PodScheduled=False, 0: it has none. ready: its condition Ready is True; of members alone. overhead: what
    its RuntimeClass has it take beside its containers, of its node and of no NUMA node in particular.
    """

    uid: str
    namespace: str
    name: str
    node: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    containers: tuple[ContainerRow, ...] = ()
    owner: OwnerRow | None = None
    phase: str = "Pending"
    ip: str = ""
    other_ips: tuple[str, ...] = ()
    host_network: bool = False
    priority: int = 0
    account: str = ""
    requests: Mapping[str, str] = field(default_factory=dict, hash=False)
    limits: Mapping[str, str] = field(default_factory=dict, hash=False)
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    mentions: Mentions = NO_MENTIONS
    leaving: bool = False
    nominated: str = ""
    scheduling_group: str = ""
    unscheduled: int = 0
    gated: bool = False
    own_terms: bool = False
    said: PodTerms = NO_POD_TERMS
    terms: NodeTerms = NO_TERMS
    ready: bool = False
    overhead: Demand = NOTHING_BESIDE

    @property
    def kind(self) -> PodKind:
        """With whom it may share a node."""
        return PodKind(frozenset(self.labels.items()), self.said, self.terms, self.leaving)

    @property
    def gang(self) -> str:
        """NAMESPACE/NAME of the pods that are bound all or none; empty where it is scheduled by itself."""
        name = self.scheduling_group or self.labels.get(told_groups.COSCHEDULING, "")
        return f"{self.namespace}/{name}" if name else ""

    @property
    def told_size(self) -> int:
        """How many pods belong together, by what other controllers wrote on it; 0: nothing readable says it."""
        return told_groups.size(self.annotations)

    @property
    def sized_by(self) -> tuple[str, ...]:
        """The keys under which objects may say how many pods belong together: the first one that is known counts."""
        return told_groups.sized_by(self.namespace, self.scheduling_group, self.labels, self.annotations)

    @property
    def ended(self) -> bool:
        return self.phase in ENDED

    @property
    def comes_again(self) -> bool:
        """Whether another is made in its place, elsewhere, when it is evicted; not once it is being deleted, as that
        other is there by then.
        """
        return not self.leaving and self.owner is not None and self.owner.kind not in (NODE, "DaemonSet")

    @property
    def template(self) -> str:
        """The hash of the template that its controller made it of; empty: it says none."""
        return template_of(self.labels)

    @property
    def workload(self) -> str:
        """NAMESPACE/KIND/NAME of its owner; the pod itself where none owns it."""
        if self.owner is None or self.owner.kind == NODE:
            return f"{self.namespace}/Pod/{self.name}"
        return f"{self.namespace}/{self.owner.kind}/{self.owner.name}"

    @cached_property
    def demand(self) -> Demand:
        """The whole pod's demand as the scheduler counts it; BadQuantity when a quantity is not one."""
        summed = self._containers_demand
        return own_resources(summed, self.requests, self.limits) if self.requests or self.limits else summed

    @property
    def _containers_demand(self) -> Demand:
        return _summed(
            tuple(container.demand for container in self.containers if not container.init),
            tuple((container.demand, container.restartable) for container in self.containers if container.init),
        )

    @cached_property
    def budget(self) -> PodBudget | None:
        """None where the pod has no CPU of its own: a request that is its containers' sum is none, the API server fills
        that in beside a limit of memory. BadQuantity as `demand`.
        """
        if not (self.requests or self.limits):
            return None
        if "cpu" not in self.limits and self.demand.cpu_milli == self._containers_demand.cpu_milli:
            return None
        slices = {container.name: container.slice for container in self.lasting}
        return PodBudget.of(self.demand.cpu_milli, slices)

    @cached_property
    def devices(self) -> Devices:
        """How many of each resource the whole pod asks for, as `ContainerRow.devices`: of what runs together, or the
        most of what runs before.
        """
        together, before = Counter[str](), Counter[str]()
        for container in self.containers:
            if container.init and not container.restartable:
                before |= Counter(container.devices)
            else:
                together += Counter(container.devices)
        return tuple(sorted((together | before).items()))

    def devices_of(self, container: str) -> Devices:
        """Of one of its containers."""
        return next((tuple(sorted(each.devices.items())) for each in self.containers if each.name == container), ())

    @property
    def beside(self) -> CpuAndMemory:
        """What it takes of its node beside its containers."""
        return self.overhead.cpu_milli, self.overhead.memory

    def asks_as(self, other: PodRow) -> bool:
        """Whether both ask for the same resources."""
        own, theirs = ((row.containers, dict(row.requests), dict(row.limits), row.annotations) for row in (self, other))
        return own == theirs

    @property
    def lasting(self) -> Iterator[ContainerRow]:
        """The containers that run as long as the pod does: its sidecars, then its own."""
        return (container for container in self.containers if not container.init or container.restartable)


class Allocatable(NamedTuple):
    """What kube-scheduler has to give on a node: millicores, bytes, and how many pods. Infinite: it is not said."""

    cpu: float = inf
    memory: float = inf
    pods: float = inf


NOT_SAID = Allocatable()


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One Kubernetes node. ready: its condition Ready is True. cordoned: it takes no new pods, as while it is drained.
    near: the values of the labels by which nodes are near each other, as `node_domains.values` has them. taints: those
    that a new pod has to tolerate.
    """

    name: str
    uid: str = ""
    ready: bool = True
    addresses: tuple[str, ...] = ()
    cordoned: bool = False
    near: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[Taint, ...] = ()
    allocatable: Allocatable = NOT_SAID

    @property
    def closed(self) -> bool:
        """Whether it takes no pod that says nothing of nodes."""
        return self.cordoned or bool(self.taints)


@dataclass(frozen=True, slots=True)
class ServiceRow:
    """One Service, reduced to what shows which pods are behind its name. selector: the labels that its pods have;
    empty where it selects none by itself.
    """

    namespace: str
    name: str
    selector: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Changes(Generic[Row]):
    """What a list or a watch reported of one kind of object. gone: of deleted ones the key: a pod's uid, the name of a
    node or namespace, NAMESPACE/NAME of a Service or a group's object.

    whole: `rows` is all there is, so that what is not among them is gone.
    """

    rows: tuple[Row, ...] = ()
    gone: tuple[str, ...] = ()
    whole: bool = False
