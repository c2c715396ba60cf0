"""Which pods may share a node, as they say themselves."""

from __future__ import annotations

from typing import NamedTuple


class PodKind(NamedTuple):
    """Of pods alike. apart: the labels of those with which they share no node; empty: they say nothing of it."""

    labels: frozenset[tuple[str, str]]
    apart: frozenset[tuple[str, str]] = frozenset()

    def excludes(self, other: PodKind) -> bool:
        """kube-scheduler holds to what either of them says."""
        return bool((self.apart and self.apart <= other.labels) or (other.apart and other.apart <= self.labels))


NO_KIND = PodKind(frozenset())
