"""Who is expected to talk to whom before any traffic is seen: what an operator wrote into a group's object, and the
Services that containers' environment and arguments name.

Expected edges are weak, and fade as traffic comes. All that is expected of a namespace's workloads weighs alike (but
for an operator's weights): SHARE of what its median pair of workloads is seen to exchange, so that it stays comparable
with the pairs that are seen already. Once both ends of an edge are known to talk, what is expected of them halves with
every HALF_LIFE_S: what they exchange is seen by then, and what was named but is not used is forgotten.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from math import exp2
from statistics import median

from extender.state.group_spec import Specs
from extender.state.pods import Changes, PodRow, ServiceRow
from placement.model.demand import Demand
from placement.model.errors import PlacementError
from placement.optin.parsing import opted_in
from placement.traffic.graph import Costs, Rate
from placement.traffic.mentions import Mentions, mention

SHARE = 0.5
"""Of the median pair's weight that an expected edge weighs."""

UNSEEN = Costs().weight("tcp", Rate(1_000, 2))
"""The median pair's weight where no pair of the namespace was seen: one request and its answer in a second."""

HALF_LIFE_S = 120.0
"""Seconds: a dozen of the enforcers' windows, in which an edge that is used shows itself even to probes that are on
for a tenth of the time.
"""

FADED = 8
"""Half-lives after which nothing is expected of an edge any more."""

MOST_BEHIND = 8
"""Workloads behind one Service; nothing is expected of one that selects more: its name does not show which is meant."""

MOST_EXPECTED = 20_000
"""Expected edges; over that those that weigh least are left out."""

Pair = tuple[str, str]
"""Two workloads in ascending order."""


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
        self._specs: Specs = {}
        self._expected: dict[Pair, float] | None = None
        self._since: dict[Pair, float] = {}

    def pods(self, changes: Changes[PodRow]) -> bool:
        changed = [self._saw(row) for row in changes.rows if opted_in(row.annotations)]
        return self._noted(changed=any(changed))

    def services(self, changes: Changes[ServiceRow]) -> bool:
        if changes.whole:
            self._services = {}
        for row in changes.rows:
            self._services.setdefault(row.namespace, {})[row.name] = row
        for key in changes.gone:
            namespace, _, name = key.partition("/")
            self._services.get(namespace, {}).pop(name, None)
        return self._noted(changed=True)

    def asked_for(self, specs: Specs) -> bool:
        """What operators wrote into the groups' objects."""
        before = {group: spec.edges for group, spec in self._specs.items() if spec.edges}
        self._specs = specs
        return self._noted(changed=before != {group: spec.edges for group, spec in specs.items() if spec.edges})

    def demands(self) -> dict[str, Demand]:
        """What one replica asks for, by workload that has pods."""
        return {name: written.demand for name, written in self._workloads.items() if written.demand is not None}

    def weights(self, seen: Mapping[Pair, float], live: Iterable[str], now: float) -> dict[Pair, float]:
        """What is expected between workloads that have pods, in nanoseconds a second. seen: what traffic shows of
        pairs. live: the workloads that have pods; the others are forgotten.
        """
        self._keep(frozenset(live))
        if self._expected is None:
            self._expected = dict(self._edges())
        talking = {end for pair, weight in seen.items() if weight > 0 and pair[0] != pair[1] for end in pair}
        self._since = {
            pair: self._since.get(pair, now) for pair in self._expected if pair[0] in talking and pair[1] in talking
        }
        medians = _medians(seen)
        weights: dict[Pair, float] = {}
        for pair, strength in self._expected.items():
            half_lives = (now - self._since.get(pair, now)) / HALF_LIFE_S
            if half_lives < FADED:
                usual = medians.get(pair[0].partition("/")[0], UNSEEN)
                weights[pair] = SHARE * strength * usual * exp2(-half_lives)
        return weights

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
        strengths: dict[Pair, float] = defaultdict(float)
        for pair, strength in (*self._from_objects(), *self._from_names()):
            strengths[pair] = max(strengths[pair], strength)
        yield from sorted(nlargest(MOST_EXPECTED, strengths.items(), key=lambda edge: (edge[1], edge[0])))

    def _from_objects(self) -> Iterator[tuple[Pair, float]]:
        for spec in self._specs.values():
            for (source, target), weight in spec.edges.items():
                if source in self._workloads and target in self._workloads:
                    yield _pair(source, target), float(weight)

    def _from_names(self) -> Iterator[tuple[Pair, float]]:
        """A Service of several workloads is expected to be shared evenly among them."""
        names = {
            namespace: {mention(name): row for name, row in sorted(services.items())}
            for namespace, services in self._services.items()
        }
        labelled: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        for name, written in self._workloads.items():
            for label in written.labels.items():
                labelled[written.namespace, *label].add(name)
        for name, written in self._workloads.items():
            services = names.get(written.namespace, {})
            for at in written.mentions & services.keys():
                behind = _behind(services[at], labelled)
                for peer in behind - {name}:
                    yield _pair(name, peer), 1.0 / len(behind)


def _behind(service: ServiceRow, labelled: Mapping[tuple[str, str, str], set[str]]) -> set[str]:
    """The workloads whose pods a Service selects; nobody where they are too many."""
    matches = [labelled.get((service.namespace, *label), set()) for label in service.selector.items()]
    behind = set.intersection(*matches) if matches else set()
    return behind if len(behind) <= MOST_BEHIND else set()


def _medians(seen: Mapping[Pair, float]) -> dict[str, float]:
    """By namespace, of the pairs that are wholly there."""
    weights: dict[str, list[float]] = defaultdict(list)
    for (source, target), weight in seen.items():
        namespace = source.partition("/")[0]
        if weight > 0 and source != target and target.startswith(f"{namespace}/"):
            weights[namespace].append(weight)
    return {namespace: median(found) for namespace, found in weights.items()}


def _pair(source: str, target: str) -> Pair:
    return min(source, target), max(source, target)
