"""The workloads that selectors mean, by the labels of their pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from extender.traffic.exchanged import namespace_of
from extender.traffic.limits import WORKLOADS_SEARCHED, WORKLOADS_SELECTED
from extender.traffic.policies import IN, Requirement, Selector

NO_WORKLOADS: frozenset[str] = frozenset()


class SelectedWorkloads:
    """labels: by workload, NAMESPACE/KIND/NAME. wide: namespaces and selectors that select too many."""

    def __init__(self, labels: Mapping[str, Mapping[str, str]]) -> None:
        self.wide: set[tuple[str, Selector]] = set()
        self._labels = labels
        self._selected: dict[tuple[str, Selector], frozenset[str]] = {}
        self._having: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for workload, own in labels.items():
            namespace = namespace_of(workload)
            for key, value in own.items():
                self._having[namespace, key].add(workload)
                self._having[namespace, key, value].add(workload)

    @property
    def namespaces(self) -> Collection[str]:
        """Those that have workloads with labels."""
        return {key[0] for key in self._having}

    def few(self, namespace: str, selector: Selector) -> frozenset[str]:
        """Those that it selects in a namespace; none where they are too many, or all but those with some label."""
        at = namespace, selector
        if at not in self._selected:
            self._selected[at] = self._search(namespace, selector)
        return self._selected[at]

    def _search(self, namespace: str, selector: Selector) -> frozenset[str]:
        candidates = [self._having_one(namespace, requirement) for requirement in selector.narrowing]
        if not candidates:
            return NO_WORKLOADS
        rarest = min(candidates, key=lambda sets: sum(map(len, sets)))
        if sum(map(len, rarest)) <= WORKLOADS_SEARCHED:
            selected = frozenset(name for name in set().union(*rarest) if selector.selects(self._labels[name]))
            if len(selected) <= WORKLOADS_SELECTED:
                return selected
        self.wide.add((namespace, selector))
        return NO_WORKLOADS

    def _having_one(self, namespace: str, requirement: Requirement) -> list[Collection[str]]:
        """The workloads with each value of a label that is asked for, or with any."""
        key = requirement.key
        if requirement.operator == IN:
            return [self._having.get((namespace, key, value), NO_WORKLOADS) for value in requirement.values]
        return [self._having.get((namespace, key), NO_WORKLOADS)]
