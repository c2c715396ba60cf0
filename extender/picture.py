"""The cluster's state at one moment, for readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from extender.scoring.node_table import NodeState
from extender.state.admission import Admission
from extender.state.node_view import Assumption
from extender.state.pods import PodRow


@dataclass(frozen=True, slots=True)
class Figures:
    """What is had without looking at each pod. bindings, unscored, splits: as the ledger counts them. faults: how
    often each node could not be weighed. held_milli: what is held for groups; given_back: how often such room was.
    """

    nodes: tuple[NodeState, ...]
    assumed: tuple[Assumption, ...]
    groups: Mapping[str, str]
    """By workload, found ones too."""
    expired: int
    bindings: Mapping[str, int]
    unscored: Mapping[str, int]
    splits: int
    faults: Mapping[str, int]
    held_milli: int
    given_back: int


@dataclass(frozen=True, slots=True)
class Picture(Figures):
    """nodes: by name. By pod uid: names, NAMESPACE/NAME; workloads, NAMESPACE/KIND/NAME; rows, as the API server has
    them. admission: what it says of nodes.
    """

    names: Mapping[str, str]
    workloads: Mapping[str, str]
    rows: Mapping[str, PodRow]
    admission: Admission

    @classmethod
    def of(
        cls,
        figures: Figures,
        names: Mapping[str, str],
        workloads: Mapping[str, str],
        rows: Mapping[str, PodRow],
        admission: Admission,
    ) -> Picture:
        nodes = tuple(sorted(figures.nodes, key=lambda state: state.view.name))
        counts = figures.expired, figures.bindings, figures.unscored, figures.splits, figures.faults
        held = figures.held_milli, figures.given_back
        return cls(nodes, figures.assumed, figures.groups, *counts, *held, names, workloads, rows, admission)
