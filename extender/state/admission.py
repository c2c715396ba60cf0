"""Which nodes a pod may go to, by what it says of them and by their labels and taints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from extender.state.label_domains import AdmittingNode, LabelDomains
from extender.state.pods import Allocatable
from numakin.placement.model.node_terms import NodeTerms

MOST_TERMS = 256
"""Distinct terms whose nodes are remembered; past it they are forgotten and found anew, some 10 ms each at 5,000 nodes.
"""


class NodeSet(NamedTuple):
    """These nodes alone; or all nodes but these, those too that nothing is known of."""

    names: frozenset[str] = frozenset()
    alone: bool = False

    def has(self, node: str) -> bool:
        return (node in self.names) is self.alone

    def among(self, nodes: frozenset[str]) -> NodeSet:
        """Those of them that are among these."""
        return NodeSet(nodes & self.names if self.alone else nodes - self.names, alone=True)


ANYWHERE = NodeSet()
NOWHERE = NodeSet(alone=True)


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

    def allocatable(self, node: str) -> Allocatable:
        return self.of_node.get(node, _NOTHING).allocatable

    @cached_property
    def domains(self) -> LabelDomains:
        return LabelDomains(self.of_node)

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
