"""One order of arrivals, placed by numakin: extender and nodes in this process."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from benchmarks.cluster.load import Replica
from benchmarks.cluster.nodes.population import NodeSpec
from extender.cluster import Cluster
from extender.scoring.predict import predict
from extender.settings import Settings
from extender.state.node_report import Report
from extender.state.node_view import NodeView
from extender.state.pods import Changes, ContainerRow, OwnerRow, PodRow
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
that has a tenth of the time (`extender.group_reservations`).
"""

Places = dict[Replica, tuple[str, str]]
"""Node and NUMA nodes; empty for a pod that stays pending."""

PENDING = ("", "")


def row(replica: Replica) -> PodRow:
    requests = {"cpu": f"{replica.cpu_milli}m", "memory": str(replica.memory)}
    return PodRow(
        uid=f"{replica.namespace}/{replica.name}",
        namespace=replica.namespace,
        name=replica.name,
        annotations=replica.annotations,
        containers=(ContainerRow("main", requests, {"memory": str(replica.memory)}),),
        owner=OwnerRow("ReplicaSet", replica.replica_set),
        template_hash=replica.template_hash,
        labels=replica.labels,
    )


@dataclass
class Played:
    """The extender's side of a scheduler stand-in. held: whether it holds room for groups. apart: whether no two pods
    of a workload may be on one node, as they say themselves. reported: each node's own occupancy.
    """

    specs: Sequence[NodeSpec]
    held: bool = True
    apart: bool = False
    now: float = 0.0
    reported: dict[str, Occupancy] = field(default_factory=dict)
    places: Places = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cluster = Cluster(Settings(report_timeout=1e9, hold=1e9, patience=0.0), lambda: self.now)
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
        if not self.apart:
            return row(replica)
        label = "app", replica.workload
        return replace(row(replica), own_terms=True, labels=dict([label]), apart=frozenset([label]))

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


def placed(
    specs: Sequence[NodeSpec],
    waves: Sequence[Sequence[Replica]],
    seed: int,
    *,
    settled: bool,
    held: bool = True,
    apart: bool = False,
) -> Places:
    """held, apart: as `Played` has them. settled: whether the last pod of a wave was created a while before the first
    is scheduled.
    """
    played = Played(specs, held, apart)
    rooms = {spec.name: Room(spec.allocatable_milli, spec.memory) for spec in specs}
    scheduler = Scheduler(rooms, played, random=Random(seed), percentage=100)
    taken = defaultdict[str, set[str]](set)
    for wave in waves:
        played.create(wave)
        played.now += CREATED_BEFORE_S if settled else 0.0
        played.reserve()
        under_way, due = deque[tuple[Replica, str]](), PACKED_EACH
        for at, replica in enumerate(wave, 1):
            played.now += POD_S
            want = Room(replica.cpu_milli, replica.memory)
            within = rooms.keys() - taken[replica.workload] if apart else None
            try:
                choice = scheduler.schedule({"row": played.row(replica)}, replica.workload, want, within)
            except DoesNotFitError:
                played.places[replica] = PENDING
                continue
            taken[replica.workload].add(choice.node)
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
