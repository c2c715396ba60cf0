"""How local the same pods could be at best, as far as a long search knows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cache

from benchmarks.cluster.load import Instance, Replica
from benchmarks.cluster.nodes.population import NodeSpec
from benchmarks.quality.scenario import Pair, Scenario, Service
from benchmarks.yardstick.best_known import SHORT, best_known
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.topology import Machine, NumaNode
from numakin.placement.traffic.graph import Amount

ROOMIEST = 16
"""So many NUMA nodes of the whole cluster may hold an application: more would make none of them more local."""

Room = tuple[int, int]
"""Of a NUMA node: CPUs, and bytes of memory."""


def reachable(specs: Iterable[NodeSpec], replicas: Iterable[Replica]) -> float:
    """The share of these replicas' calls that could be inside NUMA nodes, 0 to 1.

    Each application is placed as if the cluster, with what ran there before, was its own, so that what several of them
    can reach side by side may be less.
    """
    rooms = tuple(sorted((room for spec in specs for room in _rooms(spec)), reverse=True)[:ROOMIEST])
    counts: dict[Instance, Counter[str]] = defaultdict(Counter)
    for replica in replicas:
        counts[replica.instance][replica.service.name] += 1
    inside = total = 0.0
    for instance, there in counts.items():
        calls = sum(_traffic(instance, there).values())
        inside += calls * _best(instance, frozenset(there.items()), rooms)
        total += calls
    return inside / total if total else 1.0


def _rooms(spec: NodeSpec) -> Iterable[Room]:
    taken: Counter[int] = Counter()
    for other in spec.others:
        taken[other.numa_node] += other.cpu_milli
    for numa_node in spec.machine.numa_nodes:
        yield len(numa_node.cpus) - -(-taken[numa_node.id] // 1000), numa_node.memory


def _traffic(instance: Instance, there: Mapping[str, int]) -> dict[Pair, float]:
    """Calls between services that have replicas."""
    result: dict[Pair, float] = defaultdict(float)
    for call in instance.app.calls:
        if there.get(call.source) and there.get(call.target):
            result[min(call.source, call.target), max(call.source, call.target)] += call.calls
    return dict(result)


@cache
def _best(instance: Instance, there: frozenset[tuple[str, int]], rooms: tuple[Room, ...]) -> float:
    example = {replica.service.name: replica for replica in instance.replicas()}
    demands = {name: Demand(replica.cpu_milli, replica.memory, replica.memory) for name, replica in example.items()}
    counts = dict(there)
    services = tuple(Service(name, demand, counts[name]) for name, demand in demands.items() if name in counts)
    traffic = {pair: Amount(0.0, calls) for pair, calls in _traffic(instance, counts).items()}
    return best_known(Scenario(instance.app.name, _machine(rooms), services, traffic), SHORT).locality


def _machine(rooms: tuple[Room, ...]) -> Machine:
    """NUMA nodes with these rooms, all as far from each other."""
    nodes, first = [], 0
    for index, (cpus, memory) in enumerate(rooms):
        distances = {other: 10 if other == index else 20 for other in range(len(rooms))}
        nodes.append(NumaNode(index, CpuSet.of(range(first, first + cpus)), memory, distances))
        first += cpus
    return Machine(tuple(nodes), name="the cluster's roomiest NUMA nodes")
