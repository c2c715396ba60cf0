"""What traffic has taught, in one immutable value, and the object that keeps it up to date."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

from extender.state.pods import Changes, PodRow
from extender.traffic.communities import partition
from extender.traffic.exchanged import namespace_of
from extender.traffic.graph import ClusterGraph
from extender.traffic.learned import LearnedGroup, by_group
from extender.traffic.memberships import NO_GROUPS, Membership, Partition
from extender.traffic.priors import Priors
from extender.traffic.uses import WorkloadUses
from numakin.placement.model.demand import Demand
from numakin.placement.namespaces import Namespaces
from numakin.placement.traffic.affinity import neighbours
from numakin.placement.traffic.graph import Flow, Graph
from numakin.placement.traffic.relays import relays
from numakin.placement.traffic.silent import Pair
from numakin.placement.traffic.tenancy import SEPARATE
from numakin.process.log import Log

_log = Log("learning")

Peers = Mapping[str, Mapping[str, float]]
"""Weight by peer, both directions together (`Costs.weight`)."""


@dataclass(frozen=True)
class ClusterTraffic:
    """graph: between workloads. peers: of each workload. partners: of each pod, by uid. declared: by workload that has
    pods the group that they name, empty for `auto`. found: the groups found for those. replicas: pods by workload.
    fates: bytes reported, by what became of them (`Fates`). dropped: edges lost to the caps. waiting: bytes whose
    other end is not known yet. restored: written texts that are taken in. relays: workloads that pass on what they
    receive. pods: the graph between pods, by uid. expected: weights by pair of what is expected of workloads before
    traffic shows it (`Priors`); peers have it added. demands: what one replica asks for, by workload that has pods.
    left_out: as `Priors.left_out`. awaited: by group, weights of pairs that an operator expects of workloads that have
    no pods yet (`Priors`). uses: millicores that one pod uses, by workload (`WorkloadUses`).
    """

    graph: Graph = field(default_factory=Graph)
    peers: Peers = field(default_factory=dict)
    partners: Peers = field(default_factory=dict)
    declared: Mapping[str, str] = field(default_factory=dict)
    found: Partition = NO_GROUPS
    replicas: Mapping[str, int] = field(default_factory=dict)
    fates: Mapping[str, int] = field(default_factory=dict)
    dropped: int = 0
    waiting: int = 0
    restored: int = 0
    relays: frozenset[str] = frozenset()
    pods: Graph = field(default_factory=Graph)
    expected: Mapping[Pair, float] = field(default_factory=dict)
    demands: Mapping[str, Demand] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    awaited: Mapping[str, Mapping[Pair, float]] = field(default_factory=dict)
    uses: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def named(self) -> dict[str, str]:
        """The group of each workload whose pods name one."""
        return _named(self.declared)

    @cached_property
    def groups(self) -> dict[str, str]:
        """The group of each workload that has one."""
        return {**{workload: member.group for workload, member in self.found.members.items()}, **self.named}

    @cached_property
    def members(self) -> dict[str, list[str]]:
        """Workloads by group."""
        workloads: dict[str, list[str]] = defaultdict(list)
        for workload in sorted(self.groups):
            workloads[self.groups[workload]].append(workload)
        return dict(workloads)

    def group_of(self, workload: str) -> str:
        """Empty when it has none."""
        return self.groups.get(workload, "")

    def lasting(self) -> dict[str, LearnedGroup]:
        """What is to be written down, by group."""
        return by_group(
            self.graph,
            self.declared,
            {workload: member.group for workload, member in self.found.members.items()},
            self.uses,
        )


class TrafficLearning:
    """One owner. Times are seconds of any clock that never runs backwards. application_label: as for `PodIndex`."""

    def __init__(self, application_label: str = "") -> None:
        self.graph = ClusterGraph(application_label=application_label)
        self.priors = Priors()
        self.tenancy = SEPARATE
        self._uses = WorkloadUses()
        self._found = NO_GROUPS
        self._restored = 0
        self._relays: frozenset[str] = frozenset()
        self._own_relays: frozenset[str] = frozenset()

    def apply(self, changes: Changes[PodRow], now: float) -> bool:
        """Whether what is expected of workloads may have changed."""
        self.graph.apply(changes, now)
        return self.priors.pods(changes)

    def set_namespaces(self, namespaces: Namespaces) -> bool:
        """As `apply`, by what operators set on Namespaces."""
        self.tenancy = namespaces.tenancy
        return self.priors.set_namespaces(namespaces)

    def asked(self, row: PodRow, now: float) -> None:
        self.graph.asked(row, now)

    def receive(self, node: str, flows: Iterable[Flow], now: float) -> None:
        self.graph.add(node, flows, now)

    def used(self, node: str, milli: Mapping[str, int], now: float) -> None:
        """What pods of each workload use on a node."""
        self._uses.reported(node, milli, now)

    def restored(self, group: str, learned: LearnedGroup, now: float) -> None:
        """What an extender before us wrote down of a group; what is known already stays."""
        self._restored += 1
        # A namespace's objects have no say about two workloads of others.
        namespace = f"{group.partition('/')[0]}/"
        edges = {key: rate for key, rate in learned.edges.items() if any(end.startswith(namespace) for end in key[:2])}
        self.graph.remembered.restored(edges, now)
        own = {workload: milli for workload, milli in learned.uses.items() if workload.startswith(namespace)}
        self._uses.restored(own, now)
        before = {workload: Membership(group, 0.0) for workload in learned.members if workload.startswith(namespace)}
        self._found = replace(self._found, members={**before, **self._found.members})

    def known(self, now: float) -> ClusterTraffic:
        graph = self.graph
        graph.tidy(now)
        pods = graph.pods(now)
        workloads = graph.workloads(pods, now)
        seen = self.tenancy.within(workloads.weights())
        expected = self.priors.weights(seen, graph.pod_index.replicas(), now)
        weights = {
            pair: seen.get(pair, 0.0) + expected.get(pair, 0.0) for pair in sorted(seen.keys() | expected.keys())
        }
        between_pods = self.tenancy.within(pods.weights(), graph.pod_index.owners())
        declared = graph.pod_index.groups()
        self._relays_changed(relays(workloads, self._relays))
        self._own_relays = relays(_within_namespaces(workloads), self._own_relays)
        to_divide = self._to_divide(workloads, declared)
        applications = graph.pod_index.applications()
        found = partition(
            weights, to_divide, _named(declared), self._found, self._own_relays, applications=applications
        )
        self._found = _without_traffic(found, neighbours(SEPARATE.within(seen)))
        return ClusterTraffic(
            workloads, neighbours(weights), neighbours(between_pods), declared, self._found, graph.pod_index.replicas(),
            asdict(graph.fates), graph.dropped, graph.waiting_bytes, self._restored,
            self._relays, pods, expected, self.priors.demands(), self.priors.left_out(), self.priors.awaited(seen),
            self._uses.known(now),
        )  # fmt: skip

    def _relays_changed(self, now: frozenset[str]) -> None:
        for workload in sorted(now - self._relays):
            _log.warning(
                "a workload passes on what it receives: who talks through it is not seen, and it joins no workloads",
                workload=workload,
            )
        for relay in sorted(self._relays - now):
            _log.info("a workload is no longer taken for a relay", workload=relay)
        self._relays = now

    def _to_divide(self, workloads: Graph, declared: Mapping[str, str]) -> set[str]:
        """Those that declare `auto`, and members of found groups that have no pod now and are still remembered."""
        remembered = {end for key in workloads.edges for end in key[:2]}
        return {workload for workload, group in declared.items() if not group} | (
            (self._found.members.keys() & remembered) - declared.keys()
        )


def _named(declared: Mapping[str, str]) -> dict[str, str]:
    return {workload: group for workload, group in declared.items() if group}


def _within_namespaces(workloads: Graph) -> Graph:
    """Who seems to pass on what other namespaces sent it would else be their choice."""
    edges = {key: rate for key, rate in workloads.edges.items() if namespace_of(key.source) == namespace_of(key.target)}
    return replace(workloads, edges=edges)


def _without_traffic(found: Partition, peers: Peers) -> Partition:
    """With the memberships marked that nothing but what is expected speaks for."""
    expected = {name: replace(member, expected=True) for name, member in found.members.items() if name not in peers}
    return replace(found, members={**found.members, **expected})
