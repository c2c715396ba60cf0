"""From the node's traffic graph to what the hook decides by: kin weights for each opted-in pod and for the next
replica of each workload, and the workloads that a plan should have reservations for. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from placement.model.demand import Demand
from placement.plan.problem import Weights, Workload
from placement.state.occupancy import Occupancy
from placement.traffic.affinity import neighbours, with_replicas
from proto import local_pb2 as local

MOST_PAST = 2048
"""Pods that are gone and still stand for their workload's traffic; the oldest go first."""

PERIOD = 60
"""Windows. As many replicas of a workload are expected as there were at most in this period and the one before: ten to
twenty minutes, which a rolling update or a node's drain may take.
"""


@dataclass(frozen=True, slots=True)
class WorkloadIndex:
    """Which pods are here and opted in, and which workload each belongs or belonged to.

    most, before: of each workload the most replicas seen in this period and in the last one. demands: what its newest
    replica asked for. age: windows of this period.
    """

    present: frozenset[str] = frozenset()
    workloads: Mapping[str, str] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)
    before: Mapping[str, int] = field(default_factory=dict)
    demands: Mapping[str, Demand] = field(default_factory=dict)
    age: int = 0

    def after(self, containers: Iterable[local.LocalContainer]) -> WorkloadIndex:
        """With the containers of now; pods that are gone keep their workload for a while."""
        now = {container.pod: container.workload for container in containers if container.opted_in}
        past = [(pod, name) for pod, name in self.workloads.items() if pod not in now]
        workloads = {**dict(past[-MOST_PAST:]), **now}
        most = {name: max(count, self.most.get(name, 0)) for name, count in Counter(now.values()).items()}
        return replace(self, present=frozenset(now), workloads=workloads, most={**self.most, **most})

    def over_a_window(self, occupancy: Occupancy) -> WorkloadIndex:
        """A window later, with what the members ask for that sit there."""
        asked = {
            reservation.workload: reservation.demand
            for reservation in occupancy.reservations.values()
            if reservation.workload
        }
        later = replace(self, demands={**self.demands, **asked}, age=self.age + 1)
        if later.age < PERIOD:
            return later
        now = Counter(self.workloads[pod] for pod in self.present)
        kept = {name: demand for name, demand in later.demands.items() if name in self.most}
        return replace(later, most=now, before=self.most, demands=kept, age=0)

    def expected(self, weights: Weights) -> list[Workload]:
        """The workloads whose traffic is known, those too whose pods are gone, but not for long. Of the others nothing
        is known but their group, which is decide()'s to look at. weights: of pairs of workloads.
        """
        talking = {name for pair, weight in weights.items() if weight > 0 for name in pair}
        return [
            Workload(name, demand, max(self.most.get(name, 0), self.before.get(name, 0)))
            for name, demand in self.demands.items()
            if name in talking and (name in self.most or name in self.before)
        ]


def learned(weights: Weights, between: Weights, roster: WorkloadIndex) -> dict[str, dict[str, float]]:
    """Weights by pod present, for each pod present and for each known workload's next replica. weights: of pairs of
    pods; between: of pairs of workloads.
    """
    by_pod, by_workload = neighbours(weights), neighbours(between)
    replicas: dict[str, list[str]] = defaultdict(list)
    for pod in sorted(roster.present):
        replicas[roster.workloads[pod]].append(pod)
    found = {
        pod: {peer: weight for peer, weight in by_pod.get(pod, {}).items() if peer in roster.present}
        for pod in roster.present
    }
    for name, peers in by_workload.items():
        found[name] = with_replicas(peers, lambda workload: replicas.get(workload, ()))
    return {key: weights for key, weights in found.items() if weights}
