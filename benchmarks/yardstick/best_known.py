"""The best known placement of a scenario's members, all of them at once, with the true traffic."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.quality.scenario import Scenario
from benchmarks.yardstick.bound import upper_bound
from numakin.placement.decide.memory import capacity
from numakin.placement.plan.partition import PartitionProblem, PartitionState
from numakin.placement.plan.search import LEAST_STEPS, anneal, solve

STORED = Path(__file__).with_name("best_known.json")
"""What `python -m benchmarks.yardstick --store` found, by scenario digest."""

EFFORT, HEATS = 400, (2.0, 3.0, 2.0, 1.0, 2.0, 0.5)
"""Of the search for what is stored: some twenty times that of a plan. A tenth of it comes within one per cent."""

SHORT = 40
"""Of the search for a scenario that is not stored."""


@dataclass(frozen=True, slots=True)
class BestKnown:
    """Shares of all traffic: reached, and proven to be more than anyone can reach."""

    locality: float
    bound: float


def known(scenario: Scenario) -> BestKnown:
    """What is stored, or else what a shorter search finds."""
    stored = _stored().get(scenario.digest)
    return BestKnown(*stored) if stored else best_known(scenario, SHORT)


def best_known(scenario: Scenario, effort: int = EFFORT) -> BestKnown:
    problem = problem_of(scenario)
    best = searched(problem, effort)
    return BestKnown(best.locality(), upper_bound(problem))


def searched(problem: PartitionProblem, effort: int) -> PartitionState:
    """The best of several annealings, one after another."""
    best = solve(problem, effort=0)
    steps = max(LEAST_STEPS, effort * sum(problem.counts) * problem.bins)
    for seed, hottest in enumerate(HEATS):
        best = max(best, anneal(best, steps, seed, hottest), key=PartitionState.score)
    return best


@cache
def _stored() -> dict[str, list[float]]:
    return dict(json.loads(STORED.read_text())) if STORED.exists() else {}


def problem_of(scenario: Scenario) -> PartitionProblem:
    """Locality alone counts here: a neighbour is as far as any other NUMA node."""
    services = [service for service in scenario.services if service.replicas]
    index = {service.name: kind for kind, service in enumerate(services)}
    pulls: list[dict[int, float]] = [{} for _ in services]
    for (a, b), weight in scenario.weights.items():
        if a not in index or b not in index:
            continue
        source, target = index[a], index[b]
        mine, theirs = services[source].replicas, services[target].replicas
        pairs = mine * theirs if source != target else mine * (mine - 1) // 2
        if pairs:
            pulls[source][target] = pulls[target][source] = weight / pairs
    nodes = scenario.machine.numa_nodes
    return PartitionProblem(
        sizes=[(service.demand.cpu_milli, service.demand.memory) for service in services],
        counts=[service.replicas for service in services],
        pulls=pulls,
        capacity=[(len(node.cpus) * 1000, capacity(scenario.machine, node.id)) for node in nodes],
        nearness=[[float(a == b) for b in range(len(nodes))] for a in range(len(nodes))],
        pinned=[[0] * len(nodes) for _ in services],
    )
