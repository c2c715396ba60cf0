"""What is free in a small cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from extender.state.columns.free_room import FreeDevices, FreeRoom, NumaPlace

WIDE = 1 << 40
"""Bytes: enough for all."""


def room(
    *nodes: list[int],
    memory: int = WIDE,
    groups: dict[NumaPlace, int] | None = None,
    left: Sequence[float] | None = None,
    pods: Sequence[float] | None = None,
) -> FreeRoom:
    """Nodes n0, n1 and so on with so many free millicores on each of their NUMA nodes. left: millicores that
    kube-scheduler has left to give on each; pods: how many more each takes.
    """
    width = max(map(len, nodes))
    cpu, ids = np.zeros((len(nodes), width)), np.full((len(nodes), width), -1.0)
    there = np.zeros((len(nodes), width))
    for at, node in enumerate(nodes):
        cpu[at, : len(node)], ids[at, : len(node)] = node, range(len(node))
    for place, count in (groups or {}).items():
        there[int(place.node[1:]), place.numa_node] = count
    return FreeRoom(
        [f"n{at}" for at in range(len(nodes))],
        ids,
        cpu,
        np.where(ids >= 0, float(memory), 0.0),
        there,
        np.array([given or [np.inf] * len(nodes) for given in (left, None, pods)], dtype=np.float64),
    )


def devices(width: int, *nodes: Mapping[int, int]) -> FreeDevices:
    """Of one resource, on each node by the mask of the NUMA nodes that they are near to."""
    kinds = max(map(len, nodes))
    free, near = np.zeros((len(nodes), kinds)), np.zeros((len(nodes), kinds, width))
    for at, node in enumerate(nodes):
        for kind, (mask, count) in enumerate(node.items()):
            free[at, kind] = count
            near[at, kind] = [not mask or mask >> numa_node & 1 for numa_node in range(width)]
    return FreeDevices.of(free, near)
