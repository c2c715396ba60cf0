"""Where kube-scheduler lets pods of a group go by what they say of each other: NodeAffinity and taints aside, as its
plugins InterPodAffinity and PodTopologySpread have it.

It takes one pod after the other, and so does this: who may go somewhere depends on who is there by then. Only the
group's own pods are known here: others that they say something of are met as kube-scheduler asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from extender.state.label_domains import CountedDomains, LabelDomains
from extender.state.pod_terms import HOST, DomainTerm, PodKind, PodLabels, SpreadTerm


@dataclass(slots=True)
class _Tally:
    """How many pods there are by domain. domain: of a node."""

    domain: Callable[[str], str | None]
    counts: Callable[[PodKind], bool]
    found: Counter[str] = field(default_factory=Counter)

    def add(self, kind: PodKind, node: str) -> None:
        if self.counts(kind) and (domain := self.domain(node)) is not None:
            self.found[domain] += 1


class AllowedNodes:
    """there: by node, of the pods that are there."""

    def __init__(self, domains: LabelDomains, there: Mapping[str, Sequence[PodKind]]) -> None:
        self._domains = domains
        self._there: Counter[tuple[PodKind, str]] = Counter()
        self._tallies: dict[object, _Tally] = {}
        self._away: dict[DomainTerm, Counter[str]] = {}
        self._matches: dict[tuple[DomainTerm, PodLabels], bool] = {}
        for node, kinds in there.items():
            for kind in kinds:
                self.add(kind, node)

    def add(self, kind: PodKind, node: str) -> None:
        """One more is there."""
        self._there[kind, node] += 1
        for tally in self._tallies.values():
            tally.add(kind, node)
        for term in kind.said.away:
            if (domain := self._domains.value(term.key, node)) is not None:
                self._away.setdefault(term, Counter())[domain] += 1

    def admits(self, kind: PodKind, node: str, *, but_hosts: bool = False) -> bool:
        """Whether one more may be there. but_hosts: by all but what is said of hosts."""
        return (
            all(self._keeps_away(term, node) for term in kind.said.away if not (but_hosts and term.key == HOST))
            and not self._kept_away(kind, node, but_hosts=but_hosts)
            and self._beside(kind, [term for term in kind.said.beside if not (but_hosts and term.key == HOST)], node)
            and all(self._spread(kind, term, node) for term in kind.said.spread if not (but_hosts and term.key == HOST))
        )

    def _keeps_away(self, term: DomainTerm, node: str) -> bool:
        domain = self._domains.value(term.key, node)
        return domain is None or not self._tally_of(term, (term,))[domain]

    def _kept_away(self, kind: PodKind, node: str, *, but_hosts: bool) -> bool:
        """By what those say that are there."""
        for term, where in self._away.items():
            if but_hosts and term.key == HOST:
                continue
            domain = self._domains.value(term.key, node)
            if domain is not None and where[domain] and self._selects(term, kind.labels):
                return True
        return False

    def _beside(self, kind: PodKind, terms: Sequence[DomainTerm], node: str) -> bool:
        """The first of those that are beside each other goes anywhere."""
        found = [(self._domains.value(term.key, node), self._tally_of(term, kind.said.beside)) for term in terms]
        if any(domain is None for domain, _ in found):
            return False
        if all(domain is not None and tally[domain] for domain, tally in found):
            return True
        return not any(tally for _, tally in found) and all(
            self._selects(term, kind.labels) for term in kind.said.beside
        )

    def _spread(self, kind: PodKind, term: SpreadTerm, node: str) -> bool:
        counted = self._domains.counted(term, [other.key for other in kind.said.spread], kind.terms)
        domain = _counted_domain(term, counted, node)
        if domain is None:
            return False
        found = self._tally(
            (term.selector, id(counted)),
            lambda node: _counted_domain(term, counted, node),
            lambda other: not other.ending and term.selector.matches(other.labels),
        )
        few = counted.total < term.least_domains or len(found) < counted.total or not counted.total
        return found[domain] + 1 - (0 if few else min(found.values())) <= term.most

    def _tally_of(self, term: DomainTerm, terms: Sequence[DomainTerm]) -> Counter[str]:
        """Of pods that all of these select, by the domains of the first."""
        return self._tally(
            (term.key, tuple(terms)),
            lambda node: self._domains.value(term.key, node),
            lambda other: all(self._selects(each, other.labels) for each in terms),
        )

    def _selects(self, term: DomainTerm, labels: PodLabels) -> bool:
        found = self._matches.get((term, labels))
        if found is None:
            found = self._matches[term, labels] = term.selector.matches(labels)
        return found

    def _tally(
        self, key: object, domain: Callable[[str], str | None], counts: Callable[[PodKind], bool]
    ) -> Counter[str]:
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = _Tally(domain, counts)
            for (kind, node), count in self._there.items():
                for _ in range(count):
                    tally.add(kind, node)
        return tally.found


def _counted_domain(term: SpreadTerm, counted: CountedDomains, node: str) -> str | None:
    return counted.of_node.get(node, node if term.key == HOST and not counted.total else None)
