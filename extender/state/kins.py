"""A pod's kin, node by node, for as many nodes as a cluster has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from numakin.placement.decide.decide import Kin
from numakin.placement.model.cpuset import NumaSet


@dataclass(frozen=True, slots=True)
class Kins:
    """The kin as each node's enforcer should weigh them. no_kin: of all nodes but those of `near`."""

    no_kin: Kin = field(default_factory=Kin)
    near: Mapping[str, Kin] = field(default_factory=dict)

    def of(self, node: str) -> Kin:
        return self.near.get(node, self.no_kin)

    def planned(self, node: str, numa_node: int) -> Kins:
        """With a slot for the pod there."""
        kin = replace(self.of(node), planned=NumaSet.of((numa_node,)))
        return Kins(self.no_kin, {**self.near, node: kin})
