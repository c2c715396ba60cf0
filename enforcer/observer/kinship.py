"""From the node's traffic graph to what the hook decides by: kin weights for each opted-in pod and for the next
replica of each workload, and the workloads that a plan should have reservations for. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from numakin.placement.model.demand import Demand
from numakin.placement.plan.expected import PEAK_S, ExpectedPods, Peak
from numakin.placement.plan.problem import Weights, Workload
from numakin.placement.state.occupancy import Occupancy
from numakin.placement.traffic import silent
from numakin.placement.traffic.affinity import neighbours, with_replicas
from numakin.wire import local_pb2 as local
from numakin.wire import report_pb2 as pb

MOST_PAST = 2048
"""Pods that are gone and still stand for their workload's traffic; the oldest go first."""

MOST_ANNOUNCED = 1024
"""Workloads of which the extender has sent how many there are; the oldest go first."""

GONE_S = 2 * PEAK_S
"""Seconds after which a workload that is gone is forgotten: it may have moved to another node."""


@dataclass(frozen=True, slots=True)
class WorkloadIndex:
    """Which pods are here and opted in, and which workload each belongs or belonged to.

    peaks: the replicas expected of each workload. demands: what its newest replica asked for. groups: the group that it
    names, empty: none. announced: how many there can be of it, by the extender, and when that came. windows: seen so
    far, of window_s seconds each, by which time is counted.
    """

    present: frozenset[str] = frozenset()
    workloads: Mapping[str, str] = field(default_factory=dict)
    peaks: Mapping[str, Peak] = field(default_factory=dict)
    demands: Mapping[str, Demand] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    announced: Mapping[str, tuple[ExpectedPods, float]] = field(default_factory=dict)
    windows: int = 0
    window_s: float = 10.0

    @property
    def now(self) -> float:
        """Seconds."""
        return self.windows * self.window_s

    def after(self, containers: Iterable[local.LocalContainer]) -> WorkloadIndex:
        """With the containers of now; pods that are gone keep their workload for a while. A workload that pods counted
        as until their owner was known is none, and expected no more.
        """
        now = {container.pod: container.workload for container in containers if container.opted_in}
        past = [(pod, name) for pod, name in self.workloads.items() if pod not in now]
        workloads = {**dict(past[-MOST_PAST:]), **now}
        guessed = {name for pod, name in self.workloads.items() if now.get(pod, name) != name}.difference(now.values())
        peaks = {name: peak for name, peak in self.peaks.items() if name not in guessed}
        return _counted(replace(self, present=frozenset(now), workloads=workloads, peaks=peaks))

    def over_a_window(self, occupancy: Occupancy) -> WorkloadIndex:
        """A window later, with what the members ask for that sit there."""
        current = {pod.workload: pod for pod in occupancy.whole_pods().values() if pod.workload}
        demands = {name: pod.demand for name, pod in current.items()}
        groups = {name: pod.group for name, pod in current.items()}
        later = _counted(replace(self, windows=self.windows + 1))
        return replace(
            later, demands=_kept(later.peaks, self.demands, demands), groups=_kept(later.peaks, self.groups, groups)
        )

    def counted(self, replicas: Iterable[pb.ReplicaCount]) -> WorkloadIndex:
        """With what the extender has sent, of workloads that are still to come here too; it counts for PEAK_S."""
        news = {count.workload: (ExpectedPods(count.bound, count.unbound), self.now) for count in replicas}
        before = {name: entry for name, entry in self.announced.items() if name not in news}
        return replace(self, announced=dict([*before.items(), *news.items()][-MOST_ANNOUNCED:]))

    def with_silent(self, weights: Weights) -> Weights:
        """Weights of pairs of workloads, with what is expected of those that were not seen to talk."""
        return silent.with_silent(weights, self.groups)

    def expected(self, weights: Weights) -> list[Workload]:
        """The workloads whose traffic is known, those too whose pods are gone, but not for long. Of the others nothing
        is known but their group, which is decide()'s to look at. weights: of pairs of workloads.
        """
        talking = {name for pair, weight in weights.items() if weight > 0 for name in pair}
        return [
            Workload(name, demand, self._replicas(name))
            for name, demand in self.demands.items()
            if name in talking and name in self.peaks
        ]

    def _replicas(self, name: str) -> int:
        replicas, announced = self.peaks[name].replicas, self.announced.get(name)
        return announced[0].limits(replicas) if announced is not None else replicas


_Value = TypeVar("_Value")


def _kept(names: Container[str], before: Mapping[str, _Value], now: Mapping[str, _Value]) -> dict[str, _Value]:
    """The newest values of these names."""
    return {name: value for name, value in {**before, **now}.items() if name in names}


def _counted(index: WorkloadIndex) -> WorkloadIndex:
    """With the replicas that are present now, without the workloads that are gone for long."""
    counts, now = Counter(index.workloads[pod] for pod in index.present), index.now
    names = dict.fromkeys((*index.peaks, *counts))
    peaks = {name: index.peaks.get(name, Peak()).after(counts[name], now) for name in names}
    kept = {name: peak for name, peak in peaks.items() if counts[name] or now - peak.since < GONE_S}
    announced = {name: (limits, at) for name, (limits, at) in index.announced.items() if now - at < PEAK_S}
    return replace(index, peaks=kept, announced=announced)


def learned(weights: Weights, between: Weights, index: WorkloadIndex) -> dict[str, dict[str, float]]:
    """Weights by pod present, for each pod present and for each known workload's next replica. weights: of pairs of
    pods; between: of pairs of workloads.
    """
    by_pod, by_workload = neighbours(weights), neighbours(between)
    replicas: dict[str, list[str]] = defaultdict(list)
    for pod in sorted(index.present):
        replicas[index.workloads[pod]].append(pod)
    rows = {
        pod: {peer: weight for peer, weight in by_pod.get(pod, {}).items() if peer in index.present}
        for pod in index.present
    }
    for name, peers in by_workload.items():
        rows[name] = with_replicas(peers, lambda workload: replicas.get(workload, ()))
    return {key: weights for key, weights in rows.items() if weights}
