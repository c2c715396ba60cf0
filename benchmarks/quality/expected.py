"""A life in which nothing is known but what is written down about who will talk to whom: the extender's own path, from
pods and Services as the API server sends them to the nomination, and the enforcer's, which takes it up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from benchmarks.graphs import online_boutique
from benchmarks.quality.arrivals import Event
from benchmarks.quality.cold import WINDOW_S, GroupAlone
from benchmarks.quality.placers import View, parts
from benchmarks.quality.scenario import Pair, Scenario
from enforcer.local.learned import Learned
from extender.cluster import Cluster
from extender.state.group_spec import GroupSpec
from extender.state.node_report import Report
from extender.state.node_view import NodeView
from extender.state.pods import Changes, ContainerRow, OwnerRow, PodRow, ServiceRow
from extender.traffic.known import ClusterTraffic, TrafficLearning
from numakin.placement.model.demand import Demand
from numakin.placement.optin import parsing
from numakin.placement.optin.options import Scope
from numakin.placement.state.fingerprint import fingerprint
from numakin.placement.state.occupancy import Occupancy
from numakin.placement.traffic.affinity import neighbours
from numakin.placement.traffic.graph import Amount, Graph
from numakin.placement.traffic.mentions import mentions

NODE = "n1"

NAMED = {"online-boutique": online_boutique.NAMED}
"""By graph, which Services each workload's public manifest names. The others keep that in files inside of their images
and in ConfigMaps: there an operator writes one edge for each pair of workloads that call each other, all alike.
"""


class Expecting(GroupAlone):
    """Pods are created so many at a time as a wave has; each wave is known before the first of it is scheduled."""

    def __init__(self, scenario: Scenario, graph: str, happening: Iterable[Event], *, wave: int) -> None:
        super().__init__()
        self._wave = wave
        self._scenario, self._named = scenario, NAMED.get(graph)
        self._coming = [event for event in happening if event.joins]
        self._now = 0.0
        self._cluster = Cluster(clock=lambda: self._now)
        self._learning = TrafficLearning()
        self._rows: dict[str, PodRow] = {}
        self._hook = Learned()
        self._generation = 0
        self._services_and_objects()
        self._report(Occupancy().on(scenario.machine))

    def __call__(self, view: View) -> tuple[Occupancy, bool]:
        if view.event.pod not in self._rows:
            self._created(self._coming[len(self._rows) : len(self._rows) + self._wave])
        row = self._rows[view.event.pod]
        want = self._cluster.wanted(row)
        assert want is not None
        self._cluster.score(want, [NODE])
        (nomination,) = self._cluster.apply_pods(Changes((replace(row, node=NODE),)))
        nominated = replace(nomination.kin, expected=nomination.numa_nodes)
        machine, kin = view.scenario.machine, self._hook.kin
        occupancy, fits = self.placed(view, lambda now, request: kin(machine, now, request, nominated))
        self._report(occupancy)
        return occupancy, fits

    def _services_and_objects(self) -> None:
        pairs = [pair for pair in self._scenario.traffic if _namespace(pair[0]) == _namespace(pair[1])]
        if self._named is None:
            edges: dict[str, dict[Pair, int]] = {}
            for pair in pairs:
                namespace = _namespace(pair[0])
                edges.setdefault(f"{namespace}/{namespace}", {})[pair] = 1
            self._learning.priors.set_group_specs({group: GroupSpec(edges=pairs) for group, pairs in edges.items()})
        services = [service.name.split("/") for service in self._scenario.services]
        rows = tuple(ServiceRow(namespace, name, {"app": name}) for namespace, _, name in services)
        self._learning.priors.services(Changes(rows, whole=True))

    def _created(self, events: Sequence[Event]) -> None:
        self._now += WINDOW_S
        rows = tuple(self._row(event) for event in events)
        self._rows |= {row.uid: row for row in rows}
        changes = Changes(rows)
        self._cluster.apply_pods(changes)
        self._learning.apply(changes, self._now)
        self._cluster.learned(self._known())

    def _known(self) -> ClusterTraffic:
        return self._learning.known(self._now)

    def _row(self, event: Event) -> PodRow:
        namespace, kind, name = event.workload.split("/")
        demand = self._scenario.by_name[event.workload].demand
        texts = [f"{target}:80" for source, target in self._named or () if source == name]
        return PodRow(
            uid=event.pod,
            namespace=namespace,
            name=event.pod.replace("/", "-"),
            annotations={parsing.GROUP_KEY: namespace, **self._scope},
            containers=tuple(_container(name, part) for name, part in self._parts(demand)),
            owner=OwnerRow(kind, name),
            labels={"app": name},
            mentions=mentions(namespace, texts),
        )

    @property
    def _scope(self) -> dict[str, str]:
        return {f"scope.{parsing.DOMAIN}": Scope.CONTAINER} if self._scenario.containers > 1 else {}

    def _parts(self, demand: Demand) -> list[tuple[str, Demand]]:
        several = self._scenario.containers > 1
        return [*parts(demand, self._scenario.containers)] if several else [("main", demand)]

    def _report(self, occupancy: Occupancy) -> None:
        self._generation += 1
        reservations = tuple(occupancy.reservations.values())
        report = Report(self._generation, 0, fingerprint(reservations, ()), reservations)
        self._cluster.connected(NODE)
        self._cluster.reported(NodeView(NODE, "session", "1", self._scenario.machine), report)


class Taught(Expecting):
    """Nothing is written down, and this graph was learned before; all pods are created at once."""

    def __init__(self, scenario: Scenario, happening: list[Event], weights: Mapping[Pair, float]) -> None:
        self._weights = weights
        super().__init__(scenario, "", happening, wave=len(happening))

    def _services_and_objects(self) -> None:
        pass

    def _known(self) -> ClusterTraffic:
        graph = Graph({(*pair, "tcp"): Amount(weight, weight) for pair, weight in self._weights.items()})
        return replace(super()._known(), graph=graph, peers=neighbours(self._weights))


def _container(name: str, demand: Demand) -> ContainerRow:
    amounts = {"cpu": f"{demand.cpu_milli}m", "memory": str(demand.memory)}
    return ContainerRow(name, amounts, {"memory": amounts["memory"]})


def _namespace(workload: str) -> str:
    return workload.partition("/")[0]
