"""Which nodes are near each other, by their labels: those of one rack, one zone, one region, or whatever an operator
names.

Kin on another node pull less than on any NUMA node of the pod's own node: NEAREST of their weight where the nodes have
the first of the labels alike, half of that at each wider one, and nothing where they have none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from extender.state.kins import Kins

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"

NEAREST = 0.05
"""Of their weight at home. NUMA nodes of one machine pull 10 / SLIT distance of it, 0.1 and more: 0.7 x NEAREST / 0.1
stays below what kin lead by over room and emptiness.
"""

NodeDomain = tuple[int, tuple[str, ...]]
"""A label by its place in the order, and the values from there on: two zones may both have a rack of one name."""

ALONE: tuple[NodeDomain | None, ...] = ()


def label_keys(near_labels: Iterable[str]) -> tuple[str, ...]:
    """The nearest first. near_labels: what an operator puts before zone and region."""
    return tuple(dict.fromkeys((*near_labels, ZONE, REGION)))


def values(labels: Mapping[str, str], keys: Sequence[str]) -> tuple[str, ...]:
    """Of a node, in the order of the keys, empty where it lacks one; nothing where it has none of them."""
    found = tuple(labels.get(key, "") for key in keys)
    return found if any(found) else ()


def pull(level: int) -> float:
    """What kin weigh that share the label of this place in the order, as a share of those at home."""
    return NEAREST * 0.5**level


def domains(found: Sequence[str]) -> tuple[NodeDomain | None, ...]:
    """One for each label. A node without one of them is there only beside those that it shares a nearer one with."""
    known: list[NodeDomain | None] = []
    for level, value in enumerate(found):
        before = known[-1] if known else None
        known.append((level, tuple(found[level:])) if value else before)
    return tuple(known)


@dataclass(frozen=True, slots=True)
class NodeDomains:
    """keys: the labels, the nearest first. of_node: by the nodes that have any of them, as `domains` has them."""

    keys: tuple[str, ...] = ()
    of_node: Mapping[str, tuple[NodeDomain | None, ...]] = field(default_factory=dict)

    def of(self, node: str) -> tuple[NodeDomain | None, ...]:
        return self.of_node.get(node, ALONE)

    def after(self, found: Mapping[str, Sequence[str]], gone: Iterable[str]) -> NodeDomains:
        """found: as `values` has them, by node. Itself where nothing is new."""
        new = {node: domains(texts) for node, texts in found.items()}
        changed = {node: known for node, known in new.items() if known != self.of(node)}
        left = self.of_node.keys() & ({*gone} - found.keys())
        if not changed and not left:
            return self
        merged = {**self.of_node, **changed}
        return NodeDomains(self.keys, {node: known for node, known in merged.items() if known and node not in left})

    def nearness(self, one: str, other: str) -> float:
        """What kin on the one weigh for a pod on the other, as a share of those at home; 0: they are far."""
        pairs = zip(self.of(one), self.of(other), strict=False)
        return next((pull(level) for level, (a, b) in enumerate(pairs) if a is not None and a == b), 0.0)

    def beside(self, node: str, kins: Kins) -> list[str]:
        """Where kin are that pull the pod to this node from others, in words, the nearest first."""
        total, there = kins.no_kin.elsewhere, self.of(node)
        weights: defaultdict[int, float] = defaultdict(float)
        for other, kin in kins.near.items():
            alike = (level for level, (a, b) in enumerate(zip(there, self.of(other), strict=False)) if a and a == b)
            if other != node and (level := next(alike, None)) is not None:
                weights[level] += total - kin.elsewhere
        return [
            f"{weights[level] / total:.0%} of its kin are on other nodes of {self._words(there[level])}"
            for level in sorted(weights)
            if weights[level] > 0
        ]

    def _words(self, domain: NodeDomain | None) -> str:
        assert domain is not None
        level, texts = domain
        return f"{self.keys[level]}={texts[0]}"


NO_DOMAINS = NodeDomains()
"""All nodes are far from each other."""
