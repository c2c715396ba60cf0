"""How much of the talk stays inside one NUMA node: the number that the product exists to raise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lab.demo.shop import Pod, calls
from numakin.placement.model.cpuset import NumaSet


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod's containers may run: a node, and its NUMA nodes."""

    node: str
    numa_nodes: NumaSet


NOWHERE = Place("", NumaSet())
"""Of a pod that stays Pending: near to nobody."""


@dataclass(frozen=True, slots=True)
class Locality:
    """Shares of the calls, 0 to 1: inside one NUMA node, inside one node."""

    numa: float
    node: float


def locality(places: Mapping[Pod, Place], shops: Iterable[str]) -> Locality:
    """Of these shops' calls. A pair is local only when both lie wholly inside one same NUMA node: a wide cpuset does
    not count.
    """
    wanted = set(shops)
    edges = [edge for edge in calls(list(places)) if edge[0].shop in wanted]
    total = sum(weight for _, _, weight in edges)
    together = [(places[a], places[b], weight) for a, b, weight in edges]
    same_node = sum(weight for a, b, weight in together if a.node and a.node == b.node)
    same_numa = sum(weight for a, b, weight in together if a == b and len(a.numa_nodes) == 1)
    return Locality(same_numa / total, same_node / total) if total else Locality(0, 0)
