"""The cluster's state at one moment, for readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from extender.scoring.node_table import NodeState
from extender.state.node_view import Assumption


@dataclass(frozen=True, slots=True)
class Picture:
    """By pod uid: names, NAMESPACE/NAME; workloads, NAMESPACE/KIND/NAME. groups: by workload, found ones too. bindings,
    splits: as the ledger counts them. faults: how often each node could not be weighed.
    """

    nodes: tuple[NodeState, ...]
    assumed: tuple[Assumption, ...]
    names: dict[str, str]
    workloads: dict[str, str]
    groups: dict[str, str]
    expired: int
    bindings: Mapping[str, int]
    splits: int
    faults: Mapping[str, int]
