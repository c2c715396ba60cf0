"""From the node's traffic graph to what the hook decides by: kin weights for each opted-in pod and for the next
replica of each workload, and the workloads that a plan should have seats for. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from placement.demand import Demand
from placement.known import Weights, Workload
from placement.occupancy import Occupancy
from proto import local_pb2 as local

MOST_PAST = 2048
"""Pods that are gone and still stand for their workload's traffic; the oldest go first."""

FAINT = 1e-3
"""A workload without a pod keeps its seats while it had this share of all known traffic: with a tenth of it, for some
seven half-lives after its last pod has gone.
"""


@dataclass(frozen=True, slots=True)
class Roster:
    """Which pods are here and opted in, which workload each belongs or belonged to, and of each workload the most
    replicas seen and what the newest one asked for.
    """

    present: frozenset[str] = frozenset()
    workloads: Mapping[str, str] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)
    demands: Mapping[str, Demand] = field(default_factory=dict)

    def after(self, containers: Iterable[local.LocalContainer]) -> Roster:
        """With the containers of now; pods that are gone keep their workload for a while."""
        now = {one.pod: one.workload for one in containers if one.opted_in}
        past = [(pod, name) for pod, name in self.workloads.items() if pod not in now]
        workloads = {**dict(past[-MOST_PAST:]), **now}
        counts = Counter(now.values())
        known = set(workloads.values())
        most = {name: max(counts[name], self.most.get(name, 0)) for name in known}
        demands = {name: demand for name, demand in self.demands.items() if name in known}
        return Roster(frozenset(now), workloads, most, demands)

    def seated(self, occupancy: Occupancy) -> Roster:
        """With what the members ask for that sit there; workloads without one keep what theirs asked for."""
        asked = {seat.workload: seat.demand for seat in occupancy.seats.values() if seat.workload in self.most}
        return replace(self, demands={**self.demands, **asked})

    def expected(self, weights: Weights) -> list[Workload]:
        """The workloads whose traffic is known: those that are here, and those that are gone but not long ago. Of the
        others nothing is known but their group, which is decide()'s to look at.
        """
        traffic: defaultdict[str, float] = defaultdict(float)
        for pair, weight in weights.items():
            for name in set(pair):
                traffic[name] += weight
        least = FAINT * sum(weights.values())
        here = {self.workloads[pod] for pod in self.present}
        return [
            Workload(name, demand, self.most[name])
            for name, demand in self.demands.items()
            if traffic[name] > (0 if name in here else least)
        ]


def learned(weights: Weights, between: Weights, roster: Roster) -> dict[str, dict[str, float]]:
    """Weights by pod present, for each pod present and for each known workload's next replica. weights: of pairs of
    pods; between: of pairs of workloads.

    A replica that comes is expected to talk with every replica of its workload's peers alike.
    """
    by_pod, by_workload = _neighbours(weights), _neighbours(between)
    replicas = Counter(roster.workloads[pod] for pod in roster.present)
    found = {
        pod: {peer: weight for peer, weight in by_pod.get(pod, {}).items() if peer in roster.present}
        for pod in roster.present
    }
    for name, peers in by_workload.items():
        found[name] = {
            pod: peers[roster.workloads[pod]] / replicas[roster.workloads[pod]]
            for pod in roster.present
            if roster.workloads[pod] in peers
        }
    return {key: weights for key, weights in found.items() if weights}


def members(occupancy: Occupancy) -> dict[str, str]:
    """The workload of each seat key that belongs to one."""
    return {key: seat.workload for key, seat in occupancy.seats.items() if seat.workload}


def _neighbours(pairs: Mapping[tuple[str, str], float]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for (one, other), weight in pairs.items():
        found[one][other] = found[other][one] = weight
    return found
