"""One order of arrivals, placed by numakin: extender and nodes in this process."""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from random import Random
from typing import Any

from benchmarks.cluster.load import Replica
from benchmarks.cluster.nodes.population import NodeSpec
from extender.cluster import Cluster
from extender.kube.stream import pods
from extender.scoring.predict import predict
from extender.settings import Settings
from extender.state.node_domains import ZONE
from extender.state.node_report import Report
from extender.state.node_view import NodeView
from extender.state.pod_terms import HOST, DomainTerm, PodSelector, PodTerms, SpreadTerm
from extender.state.pods import Allocatable, Changes, NodeRow, PodRow
from lab.standins.scheduler.cache import Room
from lab.standins.scheduler.scheduler import DoesNotFitError, Scheduler
from numakin.placement.decide.request import Kin
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.state.occupancy import Occupancy, Reservation

POD_S = 0.01
"""Seconds between two pods that kube-scheduler asks about."""

UNSEEN = 3
"""Bindings that are under way while the next pod is scored."""

CREATED_BEFORE_S = 5.0
"""Since the last pod of a wave was created, where the controllers are done before the first is scheduled."""

PACKED_EACH = 5
"""Pods between two rounds, at least, in which the extender plans where groups go."""

PACKED_SHARE = 0.09
"""Of the pods that wait, between two rounds at least: planning takes some 90 microseconds for each of them, on a thread
that has a tenth of the time (`extender.main`).
"""

ZONES = 3

_READER = pods()


class Apart(StrEnum):
    """By what the pods of a workload are kept apart: none shares a host, or they are spread over zones one by one."""

    HOST = "host"
    ZONE = "zone"


APART: Mapping[Apart, Callable[[PodSelector], PodTerms]] = {
    Apart.HOST: lambda alike: PodTerms(away=(DomainTerm(HOST, alike),)),
    Apart.ZONE: lambda alike: PodTerms(spread=(SpreadTerm(ZONE, alike),)),
}

Places = dict[Replica, tuple[str, str]]
"""Node and NUMA nodes; empty for a pod that stays pending."""

PENDING = ("", "")


def zone(spec: NodeSpec) -> str:
    return f"zone-{int(spec.name.rpartition('-')[2]) % ZONES}"


def labels(spec: NodeSpec) -> Mapping[str, str]:
    return {HOST: spec.name, ZONE: zone(spec)}


def _admitted(specs: Sequence[NodeSpec], there: Mapping[str, int], apart: Apart) -> set[str]:
    """Where kube-scheduler lets one more of a workload go. there: how many are on each node."""
    if apart is Apart.HOST:
        return {spec.name for spec in specs if not there.get(spec.name)}
    in_zones = Counter[str]({zone(spec): 0 for spec in specs})
    for spec in specs:
        in_zones[zone(spec)] += there.get(spec.name, 0)
    return {spec.name for spec in specs if in_zones[zone(spec)] == min(in_zones.values())}


def row(replica: Replica) -> PodRow:
    """As the API server sends it."""
    body = replica.body()
    named = {"namespace": replica.namespace, "uid": replica.uid}
    return _READER.row(json.dumps({**body, "metadata": {**body["metadata"], **named}}).encode())


@dataclass
class Played:
    """The extender's side of a scheduler stand-in. held: whether it holds room for groups. apart: how the pods of a
    workload are kept apart, as they say themselves. reported: each node's own occupancy.
    """

    specs: Sequence[NodeSpec]
    held: bool = True
    apart: Apart | None = None
    now: float = 0.0
    reported: dict[str, Occupancy] = field(default_factory=dict)
    places: Places = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cluster = Cluster(Settings(report_timeout=1e9, hold=1e9, patience=0.0), lambda: self.now)
        self.cluster.apply_nodes(Changes(rows=tuple(map(_node, self.specs))))
        self._views = {spec.name: NodeView(spec.name, "session", "1", spec.machine) for spec in self.specs}
        for spec in self.specs:
            occupancy = Occupancy().on(spec.machine)
            for other in spec.others:
                home, demand = NumaSet.of((other.numa_node,)), Demand(other.cpu_milli)
                occupancy = occupancy.with_reservation(Reservation(other.uid, "other", "", home, demand))
            self.reported[spec.name] = occupancy
            self.report(spec.name)

    def prioritize(self, pod: Mapping[str, Any], nodes: Sequence[str]) -> dict[str, int]:
        want = self.cluster.wanted(pod["row"])
        assert want is not None
        offer = self.cluster.score(want, nodes)
        return dict(zip(nodes, offer.scores, strict=True))

    def create(self, replicas: Sequence[Replica]) -> None:
        self.cluster.apply_pods(Changes(rows=tuple(map(self.row, replicas))))
        self.reserve()

    def row(self, replica: Replica) -> PodRow:
        if self.apart is None:
            return row(replica)
        made, label = row(replica), ("app", replica.workload)
        said = APART[self.apart](PodSelector(frozenset([label])))
        return replace(made, own_terms=True, labels={**made.labels, "app": replica.workload}, said=said)

    def reserve(self) -> None:
        """What the extender's thread does meanwhile."""
        if self.held:
            self.cluster.reserve()

    def bind(self, replica: Replica, node: str) -> None:
        """The binding is seen, and the node's enforcer places the pod."""
        bound = replace(self.row(replica), node=node)
        (nomination,) = self.cluster.apply_pods(Changes(rows=(bound,)))
        want, machine = self.cluster.wanted(bound), self._views[node].machine
        assert want is not None
        kin = replace(nomination.kin or Kin(), expected=nomination.numa_nodes)
        prediction = predict(machine, self.reported[node], want, kin)
        changed = {reservation.key: reservation for reservation in prediction.reservations}
        self.reported[node] = self.reported[node].changed(reservations=changed)
        self.places[replica] = node, str(prediction.numa_nodes)

    def report(self, node: str) -> None:
        """Everything that is on the node."""
        there = self.reported[node]
        self.cluster.connected(node)
        whole = Report(there.generation + 1, 0, there.fingerprint, tuple(there.reservations.values()))
        self.cluster.reported(self._views[node], whole)


def _node(spec: NodeSpec) -> NodeRow:
    """Other pods are in its report, but for their number: the API server shows none here."""
    given = Allocatable(1000 * len(spec.machine.cpus), spec.memory, spec.room.pods)
    return NodeRow(spec.name, labels=labels(spec), allocatable=given)


def placed(
    specs: Sequence[NodeSpec],
    waves: Sequence[Sequence[Replica]],
    seed: int,
    *,
    settled: bool,
    held: bool = True,
    apart: Apart | None = None,
) -> Places:
    """held, apart: as `Played` has them. settled: whether the last pod of a wave was created a while before the first
    is scheduled.
    """
    played = Played(specs, held, apart)
    rooms = {spec.name: spec.room for spec in specs}
    scheduler = Scheduler(rooms, played, random=Random(seed), percentage=100)
    taken = defaultdict[str, Counter[str]](Counter)
    for wave in waves:
        played.create(wave)
        played.now += CREATED_BEFORE_S if settled else 0.0
        played.reserve()
        under_way, due = deque[tuple[Replica, str]](), PACKED_EACH
        for at, replica in enumerate(wave, 1):
            played.now += POD_S
            want = Room(replica.cpu_milli, replica.memory)
            within = _admitted(specs, taken[replica.workload], apart) if apart is not None else None
            try:
                choice = scheduler.schedule({"row": played.row(replica)}, replica.workload, want, within)
            except DoesNotFitError:
                played.places[replica] = PENDING
                continue
            taken[replica.workload][choice.node] += 1
            under_way.append((replica, choice.node))
            if len(under_way) > UNSEEN:
                played.bind(*under_way.popleft())
            if at >= due:
                played.reserve()
                due = at + max(PACKED_EACH, round(PACKED_SHARE * (len(wave) - at)))
        for binding in under_way:
            played.bind(*binding)
        for spec in specs:
            played.report(spec.name)
    return played.places
