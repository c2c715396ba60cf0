"""From the node's traffic graph to what the hook decides by: kin weights for each opted-in pod, and for the next
replica of each workload. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from placement.cpuset import NumaSet
from placement.known import Workload
from placement.occupancy import Occupancy
from placement.plan import Plan, make_plan
from placement.topology import Machine
from placement.traffic import Graph
from proto import local_pb2 as local

MOST_PAST = 2048
"""Pods that are gone and still stand for their workload's traffic; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Roster:
    """Which pods are here and opted in, which workload each belongs or belonged to, and the most replicas of each
    seen.
    """

    present: frozenset[str] = frozenset()
    workloads: Mapping[str, str] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)

    def after(self, containers: Iterable[local.LocalContainer]) -> Roster:
        """With the containers of now; pods that are gone keep their workload for a while."""
        now = {one.pod: one.workload for one in containers if one.opted_in}
        past = [(pod, name) for pod, name in self.workloads.items() if pod not in now]
        workloads = {**dict(past[-MOST_PAST:]), **now}
        counts = Counter(now.values())
        most = {name: max(counts[name], self.most.get(name, 0)) for name in set(workloads.values())}
        return Roster(frozenset(now), workloads, most)


def learned(graph: Graph, roster: Roster) -> dict[str, dict[str, float]]:
    """Weights by pod present, for each pod present and for each known workload's next replica.

    A replica that comes is expected to talk with every replica of its workload's peers alike.
    """
    by_pod = _neighbours(graph.weights())
    by_workload = _neighbours(graph.rolled_up(roster.workloads).weights())
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


def planned(
    machine: Machine, occupancy: Occupancy, graph: Graph, roster: Roster, previous: Plan | None
) -> tuple[Plan, dict[str, NumaSet]]:
    """A plan for the workloads that are here and whose traffic is known, and from it the seat of each one's next
    replica (absent: no advice). Of the others nothing is known but their group, which is decide()'s to look at.
    """
    weights = graph.rolled_up(roster.workloads).weights()
    talking = {name for pair, weight in weights.items() if weight > 0 for name in pair}
    members = {
        key: roster.workloads[seat.pod]
        for key, seat in occupancy.seats.items()
        if seat.opted_in and roster.workloads.get(seat.pod) in talking
    }
    demands = {name: occupancy.seats[key].demand for key, name in members.items()}
    expected = [Workload(name, demand, roster.most.get(name, 1)) for name, demand in demands.items()]
    plan = make_plan(machine, occupancy, members, expected, weights, previous=previous)
    seats = {
        name: plan.seat(machine, occupancy, members, workload=name, demand=demand) for name, demand in demands.items()
    }
    return plan, {name: seat for name, seat in seats.items() if seat}


def table(weights: Mapping[str, Mapping[str, float]], seats: Mapping[str, NumaSet]) -> local.KinTable:
    """For the hook; a row for whoever has kin or a planned seat."""
    made = local.KinTable()
    for key in sorted({*weights, *seats}):
        row = made.rows.add(pod=key, seat=str(seats.get(key, NumaSet())))
        for pod, weight in sorted(weights.get(key, {}).items()):
            row.kin.add(pod=pod, weight=weight)
    return made


def _neighbours(pairs: Mapping[tuple[str, str], float]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for (one, other), weight in pairs.items():
        found[one][other] = found[other][one] = weight
    return found
