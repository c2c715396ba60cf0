"""Which nodes have labels alike: the hosts, zones and whatever else pods name by which they are kept apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from sys import intern
from typing import NamedTuple

from extender.state.pod_terms import HOST, SpreadTerm
from extender.state.pods import NOT_SAID, Allocatable, NodeRow
from numakin.placement.model.node_terms import NO_TERMS, NodeTerms, Taint

MOST_COUNTED = 256
"""Distinct terms whose domains are remembered; past it they are forgotten and found anew."""


class AdmittingNode(NamedTuple):
    """Of a node. at: by its labels' keys, which nodes of one pool share, where in values. allocatable: as `NodeRow` has
    it.
    """

    at: Mapping[str, int]
    values: tuple[str, ...]
    taints: tuple[Taint, ...]
    allocatable: Allocatable = NOT_SAID

    def get(self, key: str, /) -> str | None:
        """As `node_terms.Labels` has it."""
        at = self.at.get(key)
        return self.values[at] if at is not None else None


def node_facts(rows: Iterable[NodeRow]) -> dict[str, AdmittingNode]:
    """By node."""
    return {
        row.name: AdmittingNode(
            _positions(tuple(map(intern, row.labels))),
            tuple(map(intern, row.labels.values())),
            row.taints,
            row.allocatable,
        )
        for row in rows
    }


@lru_cache(maxsize=1_000)
def _positions(keys: tuple[str, ...]) -> Mapping[str, int]:
    return {key: at for at, key in enumerate(keys)}


class CountedDomains(NamedTuple):
    """of_node: the domain of each node that counts. total: how many domains there are."""

    of_node: Mapping[str, str]
    total: int


class LabelDomains:
    """Of the nodes that the API server has sent, by name. One without a host's name by label is a host of its own."""

    def __init__(self, of_node: Mapping[str, AdmittingNode]) -> None:
        self._of_node = of_node
        self._values: dict[str, Mapping[str, str]] = {}
        self._counted: dict[tuple[str, frozenset[str], NodeTerms, bool], CountedDomains] = {}
        self._alike: dict[frozenset[str], list[frozenset[str]]] = {}

    def value(self, key: str, node: str) -> str | None:
        return self.values(key).get(node, node if key == HOST else None)

    def values(self, key: str) -> Mapping[str, str]:
        """By the nodes that have the label."""
        found = self._values.get(key)
        if found is None:
            labels = {name: facts.get(key) for name, facts in self._of_node.items()}
            hosts = {name: name for name, value in labels.items() if value is None} if key == HOST else {}
            found = {name: value for name, value in labels.items() if value is not None} | hosts
            self._values[key] = found
        return found

    def counted(self, spread: SpreadTerm, keys: Collection[str], terms: NodeTerms) -> CountedDomains:
        """Over which pods are spread that say this of nodes. keys: of all that they are spread over: nodes without one
        do not count.
        """
        said = terms if spread.by_terms else NO_TERMS
        said = said._replace(tolerations=terms.tolerations if spread.by_taints else frozenset())
        known = spread.key, frozenset(keys), said, spread.by_taints
        found = self._counted.get(known)
        if found is None:
            if len(self._counted) >= MOST_COUNTED:
                self._counted.clear()
            found = self._counted[known] = self._count(*known[:3], by_taints=spread.by_taints)
        return found

    def _count(self, key: str, keys: Collection[str], said: NodeTerms, *, by_taints: bool) -> CountedDomains:
        of_node = {
            node: value
            for node, value in self.values(key).items()
            if all(node in self.values(other) for other in keys)
            and said.admits(node, (facts := self._of_node[node]), facts.taints if by_taints else ())
        }
        return CountedDomains(of_node, len({*of_node.values()}))

    def alike(self, keys: Collection[str]) -> list[frozenset[str]]:
        """The nodes, those together that have all of these labels alike, or lack the same."""
        found = self._alike.get(known := frozenset(keys))
        if found is None:
            by_values: dict[tuple[str | None, ...], set[str]] = defaultdict(set)
            for node in self._of_node:
                by_values[tuple(self.value(key, node) for key in sorted(known))].add(node)
            found = self._alike[known] = [frozenset(nodes) for nodes in by_values.values()]
        return found
