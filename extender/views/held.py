"""Room of a node that is held for pods which are not there yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from extender.state.node_view import NodeView


@dataclass(frozen=True, slots=True)
class Held:
    """By NUMA node. cpu (millicores) and memory (bytes): of what is requested, that of expected pods, which were scored
    best here or are bound here and are not reported yet, and of groups whose pods wait for a node. kept: millicores
    beside it, for the rest of groups that say how many they will be.
    """

    cpu: Mapping[int, int]
    memory: Mapping[int, int]
    kept: Mapping[int, int]


def held(view: NodeView) -> Held:
    machine, occupancy = view.machine, view.occupancy
    kept = dict.fromkeys((node.id for node in machine.numa_nodes), 0) | occupancy.kept(machine)
    without = view.holding({})
    for pod in view.assumed:
        without = without.without_assumed(pod)
    return Held(
        _more(occupancy.cpu_load(machine), without.occupancy.cpu_load(machine)),
        _more(occupancy.memory_load(machine), without.occupancy.memory_load(machine)),
        kept,
    )


def _more(now: Mapping[int, int], without: Mapping[int, int]) -> dict[int, int]:
    """A pod that was resized may be reported with more than is assumed of it."""
    return {numa_node: max(0, load - without[numa_node]) for numa_node, load in now.items()}
