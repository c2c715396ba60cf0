"""In which order members come and go. Same scenario and order, same events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from benchmarks.quality.scenario import Scenario

ORDERS = ("services", "random", "churn", "grown")
"""services: in the order of the manifests. random: shuffled. churn: random, then rounds of leaving and joining, in
which some services grow and others
shrink. grown: random, but in the life that was learned from, three services in ten had one replica more or less."""

ROUNDS = 3
LEAVING = 0.3
"""Share of the members that leave in a round."""

RESCALED = 0.15
"""Share of those for which a replica of another service comes."""


@dataclass(frozen=True, slots=True)
class Event:
    """A member of a workload joins, or leaves. A new round is when a planner that works by the clock would look
    again.
    """

    joins: bool
    pod: str
    workload: str
    round: int


def events(scenario: Scenario, order: str, seed: int = 0) -> list[Event]:
    random = Random(f"{scenario.name}/{order}/{seed}")
    members = [(f"{service.name}#{n}", service.name) for service in scenario.services for n in range(service.replicas)]
    if order != "services":
        random.shuffle(members)
    joins = [Event(joins=True, pod=pod, workload=workload, round=0) for pod, workload in members]
    return joins + _churn(scenario, dict(members), random) if order == "churn" else joins


def replicas_then(scenario: Scenario, order: str, seed: int = 0) -> dict[str, int]:
    """Replicas in the earlier life."""
    random = Random(f"{scenario.name}/{order}/then/{seed}")
    then = {service.name: service.replicas for service in scenario.services}
    if order == "grown":
        for name, count in then.items():
            if random.random() < 0.3:
                then[name] = max(1, count + random.choice((-1, 1)))
    return then


def remaining(scenario: Scenario, happened: list[Event]) -> dict[str, int]:
    """Replicas that are there in the end."""
    count: Counter[str] = Counter()
    for event in happened:
        count[event.workload] += 1 if event.joins else -1
    return {service.name: count[service.name] for service in scenario.services}


def replicas_by_round(happening: Iterable[Event]) -> dict[int, Counter[str]]:
    """Replicas that are there when each round has ended."""
    count: Counter[str] = Counter()
    ends = {}
    for event in happening:
        count[event.workload] += 1 if event.joins else -1
        ends[event.round] = count.copy()
    return ends


def _churn(scenario: Scenario, present: dict[str, str], random: Random) -> list[Event]:
    sizes = {service.name: service.demand.cpu_milli for service in scenario.services}
    churned = []
    for number in range(1, ROUNDS + 1):
        leaving = random.sample(sorted(present), round(LEAVING * len(present)))
        coming = []
        for pod in leaving:
            workload = present.pop(pod)
            churned.append(Event(joins=False, pod=pod, workload=workload, round=number))
            if random.random() < RESCALED:
                workload = random.choice([size for size in sorted(sizes) if sizes[size] <= sizes[workload]])
            coming.append(workload)
        random.shuffle(coming)
        for index, workload in enumerate(coming):
            pod = f"{workload}#{number}.{index}"
            present[pod] = workload
            churned.append(Event(joins=True, pod=pod, workload=workload, round=number))
    return churned
