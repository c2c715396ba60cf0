"""Which nodes a pod may go to, by what it says of them and by their labels and taints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern
from typing import NamedTuple

from extender.state.pods import NodeRow
from numakin.placement.model.node_terms import NodeTerms, Taint

MOST_TERMS = 256
"""Distinct terms whose nodes are remembered; past it they are forgotten and found anew, some 10 ms each at 5,000 nodes.
"""


class NodeSet(NamedTuple):
    """These nodes alone; or all nodes but these, those too that nothing is known of."""

    names: frozenset[str] = frozenset()
    alone: bool = False

    def has(self, node: str) -> bool:
        return (node in self.names) is self.alone


ANYWHERE = NodeSet()


class AdmittingNode(NamedTuple):
    """Of a node. at: by its labels' keys, which nodes of one pool share, where in values."""

    at: Mapping[str, int]
    values: tuple[str, ...]
    taints: tuple[Taint, ...]

    def get(self, key: str, /) -> str | None:
        """As `node_terms.Labels` has it."""
        at = self.at.get(key)
        return self.values[at] if at is not None else None


@dataclass(frozen=True)
class Admission:
    """of_node: by the nodes that the API server has sent."""

    of_node: Mapping[str, AdmittingNode] = field(default_factory=dict)
    _found: dict[NodeTerms, tuple[NodeSet, frozenset[str]]] = field(default_factory=dict)
    """By terms, and the nodes that have changed since."""

    def after(self, new: Mapping[str, AdmittingNode], gone: Iterable[str]) -> Admission:
        """new: by node. Itself where nothing has changed."""
        changed = {name for name, facts in new.items() if facts != self.of_node.get(name)}
        left = self.of_node.keys() & ({*gone} - new.keys())
        if not changed and not left:
            return self
        of_node = {**self.of_node, **new}
        for name in left:
            del of_node[name]
        found = {terms: (where, old | changed | left) for terms, (where, old) in [*self._found.items()]}
        return Admission(of_node, found)

    def admits(self, terms: NodeTerms, node: str) -> bool:
        facts = self.of_node.get(node, _NOTHING)
        return terms.admits(node, facts, facts.taints)

    def where(self, terms: NodeTerms) -> NodeSet:
        """The nodes that the pod may go to. Of a node that the API server has not sent no label is known."""
        found, changed = self._found.get(terms) or (None, self.of_node.keys())
        if found is not None and not changed:
            return found
        alone, names = (found.alone, found.names) if found is not None else (not terms.admits("", _NOTHING, ()), ())
        there = (node for node in changed if node in self.of_node)
        names = frozenset(names).difference(changed).union(node for node in there if self.admits(terms, node) is alone)
        found = NodeSet(names, alone) if names or alone else ANYWHERE
        found = next((known for known, _ in [*self._found.values()] if known == found), found)
        if len(self._found) >= MOST_TERMS:
            self._found.clear()
        self._found[terms] = found, frozenset()
        return found


_NOTHING = AdmittingNode({}, (), ())

EVERY_NODE = Admission()
"""Nothing is known of any node."""


def node_facts(rows: Iterable[NodeRow]) -> dict[str, AdmittingNode]:
    """By node."""
    return {
        row.name: AdmittingNode(
            _positions(tuple(map(intern, row.labels))), tuple(map(intern, row.labels.values())), row.taints
        )
        for row in rows
    }


@lru_cache(maxsize=1_000)
def _positions(keys: tuple[str, ...]) -> Mapping[str, int]:
    return {key: at for at, key in enumerate(keys)}
