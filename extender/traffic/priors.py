"""Who is expected to talk to whom before any traffic is seen: what an operator wrote into a group's object, which
Services containers' environment and arguments name, and which workloads NetworkPolicies let talk to each other.

Expected edges are weak, and fade as traffic comes. All that is expected of a namespace's workloads weighs alike (but
for an operator's weights): SHARE of what its median pair of workloads is seen to exchange, so that it stays comparable
with the pairs that are seen already. Once both ends of an edge are known to talk, what is expected of them halves with
every HALF_LIFE_S: what they exchange is seen by then, and what was named but is not used is forgotten.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import exp2
from statistics import median
from typing import TypeVar

from extender.state.group_spec import Specs
from extender.state.pods import Changes, PodRow, ServiceRow
from extender.traffic import permitted
from extender.traffic.exchanged import namespace_of
from extender.traffic.limits import EXPECTED_EDGES
from extender.traffic.policies import PolicyRow, with_labels
from extender.traffic.selected import SelectedWorkloads
from numakin.placement.model.demand import Demand
from numakin.placement.model.errors import PlacementError
from numakin.placement.namespaces import Namespaces
from numakin.placement.optin.parsing import opted_in
from numakin.placement.traffic.graph import Amount, Costs
from numakin.placement.traffic.mentions import Mentions, mention
from numakin.placement.traffic.silent import Pair
from numakin.process.log import Log

SHARE = 0.5
"""Of the median pair's weight that an expected edge weighs."""

UNSEEN = Costs().weight("tcp", Amount(1_000, 2))
"""The median pair's weight where no pair of the namespace was seen: one request and its answer in a second."""

HALF_LIFE_S = 120.0
"""Seconds: a dozen of the enforcers' windows, in which an edge that is used shows itself even to probes that are on
for a tenth of the time.
"""

FADED = 8
"""Half-lives after which nothing is expected of an edge any more."""

_log = Log("learning")

Named = TypeVar("Named", ServiceRow, PolicyRow)


@dataclass(frozen=True, slots=True)
class _Written:
    """What the newest pod of a workload shows."""

    namespace: str
    labels: Mapping[str, str]
    mentions: Mentions
    demand: Demand | None


class Priors:
    """One owner. Times are seconds of any clock that never runs backwards. Changes return whether anything that is
    expected may have changed.
    """

    def __init__(self) -> None:
        self._workloads: dict[str, _Written] = {}
        self._services: dict[str, dict[str, ServiceRow]] = {}
        self._policies: dict[str, dict[str, PolicyRow]] = {}
        self._namespaces = Namespaces()
        self._specs: Specs = {}
        self._over: frozenset[tuple[str, str]] = frozenset()
        self._left_out: Mapping[str, int] = {}
        self._expected: dict[Pair, float] | None = None
        self._awaited: dict[str, dict[Pair, float]] = {}
        self._since: dict[Pair, float] = {}

    def pods(self, changes: Changes[PodRow]) -> bool:
        changed = [self._saw(row) for row in changes.rows if opted_in(row.annotations)]
        return self._noted(changed=any(changed))

    def services(self, changes: Changes[ServiceRow]) -> bool:
        _take(self._services, changes)
        return self._noted(changed=True)

    def policies(self, changes: Changes[PolicyRow]) -> bool:
        _take(self._policies, changes)
        return self._noted(changed=True)

    def set_namespaces(self, namespaces: Namespaces) -> bool:
        """Whose pods may be kin of whose from now on."""
        changed, self._namespaces = namespaces != self._namespaces, namespaces
        return self._noted(changed=changed)

    def set_group_specs(self, specs: Specs) -> bool:
        """What operators wrote into the groups' objects."""
        before = {group: spec.edges for group, spec in self._specs.items() if spec.edges}
        self._specs = specs
        return self._noted(changed=before != {group: spec.edges for group, spec in specs.items() if spec.edges})

    def demands(self) -> dict[str, Demand]:
        """What one replica asks for, by workload that has pods."""
        return {name: written.demand for name, written in self._workloads.items() if written.demand is not None}

    def left_out(self) -> dict[str, int]:
        """How often something written down exceeds a limit and says nothing, or less, by the limit's name."""
        return dict(self._left_out)

    def weights(self, seen: Mapping[Pair, float], live: Iterable[str], now: float) -> dict[Pair, float]:
        """What is expected between workloads that have pods, in nanoseconds a second. seen: what traffic shows of
        pairs. live: the workloads that have pods; the others are forgotten.
        """
        self._keep(frozenset(live))
        if self._expected is None:
            self._expected = dict(self._edges())
            self._awaited = self._without_pods()
        talking = {end for pair, weight in seen.items() if weight > 0 and pair[0] != pair[1] for end in pair}
        self._since = {
            pair: self._since.get(pair, now) for pair in self._expected if pair[0] in talking and pair[1] in talking
        }
        medians = _medians(seen)
        weights: dict[Pair, float] = {}
        for pair, strength in self._expected.items():
            half_lives = (now - self._since.get(pair, now)) / HALF_LIFE_S
            if half_lives < FADED:
                usual = medians.get(namespace_of(pair[0]), UNSEEN)
                weights[pair] = SHARE * strength * usual * exp2(-half_lives)
        return weights

    def awaited(self, seen: Mapping[Pair, float]) -> dict[str, dict[Pair, float]]:
        """As the last `weights`, by group, of the pairs in operators' objects of which an end has no pods yet."""
        medians = _medians(seen)
        pairs: dict[str, dict[Pair, float]] = {}
        for group, coming in self._awaited.items():
            usual = medians.get(namespace_of(group), UNSEEN)
            pairs[group] = {pair: SHARE * strength * usual for pair, strength in coming.items()}
        return pairs

    def _saw(self, row: PodRow) -> bool:
        try:
            demand: Demand | None = row.demand
        except PlacementError:
            demand = None
        written = _Written(row.namespace, row.labels, row.mentions, demand)
        before = self._workloads.get(row.workload)
        self._workloads[row.workload] = written
        return before != written

    def _noted(self, *, changed: bool) -> bool:
        if changed:
            self._expected = None
        return changed

    def _keep(self, live: frozenset[str]) -> None:
        gone = self._workloads.keys() - live
        self._noted(changed=bool(gone))
        for name in gone:
            del self._workloads[name]

    def _edges(self) -> Iterator[tuple[Pair, float]]:
        """Each pair once, with the largest strength that is written down for it."""
        workloads = SelectedWorkloads({name: written.labels for name, written in self._workloads.items()})
        strengths: dict[Pair, float] = defaultdict(float)
        for source, target, strength in (
            *self._from_objects(),
            *self._from_names(workloads),
            *permitted.permitted(self._policies, workloads, self._namespaces),
        ):
            pair = min(source, target), max(source, target)
            strengths[pair] = max(strengths[pair], strength)
        self._exceeds([*self._exceeded(workloads)], max(0, len(strengths) - EXPECTED_EDGES))
        yield from sorted(nlargest(EXPECTED_EDGES, strengths.items(), key=lambda edge: (edge[1], edge[0])))

    def _from_objects(self) -> Iterator[permitted.Talks]:
        for spec in self._specs.values():
            for (source, target), weight in spec.edges.items():
                if source in self._workloads and target in self._workloads:
                    yield source, target, float(weight)

    def _without_pods(self) -> dict[str, dict[Pair, float]]:
        """By group, the strengths of what operators wrote of workloads that have no pods yet."""
        pairs: dict[str, dict[Pair, float]] = {}
        for group, spec in self._specs.items():
            for (source, target), weight in spec.edges.items():
                if source not in self._workloads or target not in self._workloads:
                    pairs.setdefault(group, {})[min(source, target), max(source, target)] = float(weight)
        return pairs

    def _from_names(self, workloads: SelectedWorkloads) -> Iterator[permitted.Talks]:
        """A Service of several workloads is expected to be shared evenly among them."""
        names = {
            namespace: {mention(name): row for name, row in sorted(services.items())}
            for namespace, services in self._services.items()
        }
        for name, written in self._workloads.items():
            services = names.get(written.namespace, {})
            for at in written.mentions.names & services.keys():
                behind = workloads.few(written.namespace, with_labels(services[at].selector))
                for peer in behind - {name}:
                    yield name, peer, 1.0 / len(behind)

    def _exceeded(self, workloads: SelectedWorkloads) -> Iterator[tuple[str, str]]:
        """Limits, each with what exceeds it."""
        for name, written in self._workloads.items():
            if written.mentions.over:
                yield written.mentions.over, f"workload {name}"
        for namespace, selector in workloads.wide:
            labels = ", ".join(sorted({requirement.key for requirement in selector.requirements}))
            yield "workloads_selected", f"a selector by {labels} in namespace {namespace}"
        for row in permitted.in_force(self._policies):
            yield from ((limit, f"NetworkPolicy {row.key}") for limit in row.over)
        for row in permitted.left_out(self._policies):
            yield "policies_of_namespace", f"NetworkPolicy {row.key}"

    def _exceeds(self, over: Sequence[tuple[str, str]], edges: int) -> None:
        """edges: those that are left out."""
        self._left_out = Counter(limit for limit, _ in over) + Counter(expected_edges=edges)
        before, self._over = self._over, frozenset(over)
        for limit, what in sorted(self._over - before):
            _log.info("not all that is written down about who talks to whom counts", limit=limit, exceeds=what)


def _take(kept: dict[str, dict[str, Named]], changes: Changes[Named]) -> None:
    """Into what is kept by namespace and name."""
    if changes.whole:
        kept.clear()
    for row in changes.rows:
        kept.setdefault(row.namespace, {})[row.name] = row
    for key in changes.gone:
        namespace, _, name = key.partition("/")
        left = kept.get(namespace, {})
        left.pop(name, None)
        if not left:
            kept.pop(namespace, None)


def _medians(seen: Mapping[Pair, float]) -> dict[str, float]:
    """By namespace, of the pairs that are wholly there."""
    weights: dict[str, list[float]] = defaultdict(list)
    for (source, target), weight in seen.items():
        namespace = namespace_of(source)
        if weight > 0 and source != target and target.startswith(f"{namespace}/"):
            weights[namespace].append(weight)
    return {namespace: median(found) for namespace, found in weights.items()}
