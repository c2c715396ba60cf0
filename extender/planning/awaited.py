"""Workloads that an operator's `spec.edges` name before they have pods: a plan keeps a slot for each, so that the
first pod is not placed as if no pod followed.

Nothing is known of them but with whom they will talk. Each is taken for one replica that asks for what the median
workload of its group does, until its own pods are seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from heapq import nsmallest
from statistics import median_low

from extender.traffic.known import ClusterTraffic
from numakin.placement.model.demand import Demand
from numakin.placement.plan.problem import Weights

MOST_OF_GROUP = 128
"""Workloads of one group that a plan keeps slots for so, the first by name: a plan's time grows with them."""


def awaited(known: ClusterTraffic) -> dict[str, str]:
    """The group of each."""
    names: dict[str, set[str]] = defaultdict(set)
    for group, pairs in known.awaited.items():
        names[group].update(end for pair in pairs for end in pair if end not in known.replicas)
    return {name: group for group in sorted(names) for name in nsmallest(MOST_OF_GROUP, names[group])}


def edges(known: ClusterTraffic, coming: Mapping[str, str]) -> Weights:
    """What the workloads that come (`awaited`) are expected to exchange, with each other and with those that have
    pods.
    """
    return {
        pair: weight
        for pairs in known.awaited.values()
        for pair, weight in pairs.items()
        if all(end in coming or end in known.replicas for end in pair)
    }


def usual(demands: Mapping[str, Demand], groups: Mapping[str, str]) -> dict[str, Demand]:
    """By group what its median workload asks for, or uses. demands: of one replica. groups: of each workload."""
    of_group: dict[str, list[Demand]] = defaultdict(list)
    for name, demand in demands.items():
        of_group[groups[name]].append(demand)
    return {
        group: Demand(
            cpu_milli=median_low(demand.expected_milli for demand in found),
            memory=median_low(demand.memory for demand in found),
        )
        for group, found in of_group.items()
    }
