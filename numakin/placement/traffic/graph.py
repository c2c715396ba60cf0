"""Who talks to whom, and how much: the graph that placement works from.

A `TrafficTally` belongs to one owner, who feeds it flows (differences of counters) with the time at which they were
taken; nothing here reads a clock. In it old traffic fades by half with every half-life, and it has at most so many
edges: over that the lightest go first, and are counted. A `Graph` is what the tally hands to readers: immutable, and
rolled up to workloads when asked, so that a new replica starts with what its siblings learned.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nlargest, nsmallest
from math import exp2, inf, isfinite, log
from typing import Generic, NamedTuple, Protocol, TypeVar

from numakin.placement.model.errors import BadTraffic

KINDS = ("tcp", "udp", "unix", "wake", "shm")

MOST_EDGES = 20_000
"""Edges that a tally holds unless set otherwise: some 6 MB."""

HALF_LIFE_S = 600.0
"""Seconds in which traffic counts for half: long against a lull, short against a day."""

SHED = 0.1
"""Share of the cap that is made free at once, so that the lightest are not searched for at each count."""

EPOCHS = 32
"""Half-lives after which the epoch is moved on."""

FORGOTTEN = 960
"""Half-lives without news after which a tally forgets an edge: 16 hours of a node's, so that what was learned in the
evening still ranks in the morning. With an epoch's it is less than the 1,022 after which numbers run out, and weights
would be wrong and then 0.
"""

LONGEST_NAME = 400
"""Characters of an endpoint's name: NAMESPACE/KIND/NAME of a workload is at most 63 + 1 + 63 + 1 + 253 by Kubernetes'
rules.
"""

REMOTE_LINE_NS = 124.0
"""What a cache line from another socket costs over a local one: 242 - 118 ns, Intel MLC's idle latencies on a
two-socket Xeon.
"""

REMOTE_BYTE_NS = 0.0205
"""What a streamed byte costs more from another socket: 1/34 - 1/112 ns, a Xeon Platinum 8160's remote and local read
GB/s per socket (J. McCalpin).
"""

LINES: Mapping[str, float] = {"tcp": 16, "udp": 12, "unix": 10, "wake": 6, "shm": 1}
"""Cache lines that one message moves between its two ends besides its payload (socket, buffer head, wait queue, woken
task). An estimate: what matters for placement is their ratio to the bytes, and that a TCP message costs more than a
bare wake-up.
"""


class Flow(NamedTuple):
    """Counts from one endpoint to another since the last time. Endpoints: pod uids, workloads or addresses; kind: one
    of KINDS.

    by_server: counted where one end serves the other, which is an address then: of what two nodes report of a pair, the
    server's word is the one to trust.
    """

    source: str
    target: str
    kind: str
    bytes: int
    messages: int
    by_server: bool = False


class Key(NamedTuple):
    """A directed edge's two ends and its kind."""

    source: str
    target: str
    kind: str


class Amount(NamedTuple):
    """What goes one way: in all, or in a second."""

    bytes: float = 0
    messages: float = 0

    def plus(self, other: Amount) -> Amount:
        return Amount(self.bytes + other.bytes, self.messages + other.messages)

    def times(self, factor: float) -> Amount:
        return Amount(factor * self.bytes, factor * self.messages)


@dataclass(frozen=True, slots=True)
class Costs:
    """Nanoseconds that a message and a byte cost when they cross NUMA nodes, by kind: the weight of an edge is its
    cost a second.
    """

    per_message: Mapping[str, float] = field(
        default_factory=lambda: {kind: LINES[kind] * REMOTE_LINE_NS for kind in KINDS},
        hash=False,
    )
    per_byte: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, REMOTE_BYTE_NS), hash=False)

    def __post_init__(self) -> None:
        for name, table in (("message", self.per_message), ("byte", self.per_byte)):
            for kind in KINDS:
                cost = table.get(kind)
                if cost is None or not isfinite(cost) or cost < 0:
                    raise BadTraffic(f"the cost of a {kind} {name} must be a number of nanoseconds, not {cost}")

    def weight(self, kind: str, rate: Amount) -> float:
        """Nanoseconds a second."""
        return rate.messages * self.per_message[kind] + rate.bytes * self.per_byte[kind]


@dataclass(frozen=True, slots=True)
class Graph:
    """Directed edges with their rates at one moment. dropped: edges that the cap has cost so far."""

    edges: Mapping[Key, Amount] = field(default_factory=dict, hash=False)
    costs: Costs = field(default_factory=Costs)
    dropped: int = 0

    def weights(self) -> dict[tuple[str, str], float]:
        """Weight of each pair that talks, both directions and all kinds together; pairs are in ascending order."""
        weights: dict[tuple[str, str], float] = defaultdict(float)
        for key, rate in self.edges.items():
            weights[min(key[:2]), max(key[:2])] += self.costs.weight(key.kind, rate)
        return dict(weights)

    def rolled_up(self, owners: Mapping[str, str]) -> Graph:
        """The same traffic between owners: pod uids become workloads; endpoints without an owner (addresses) fall
        out.

        Pods that are gone should stay in `owners` for a few half-lives, so that a workload whose pods are replaced
        keeps what they showed.
        """
        edges: dict[Key, Amount] = {}
        for key, rate in self.edges.items():
            source, target = owners.get(key.source), owners.get(key.target)
            if source is None or target is None:
                continue
            owned = Key(source, target, key.kind)
            edges[owned] = edges.get(owned, Amount()).plus(rate)
        return Graph(edges, self.costs, self.dropped)


class Sum(NamedTuple):
    """In the units of its `Fading`, and the time of the latest count."""

    bytes: float
    messages: float
    at: float


class _HasKind(Protocol):
    @property
    def kind(self) -> str: ...


EdgeKey = TypeVar("EdgeKey", bound=_HasKind)


class Fading(Generic[EdgeKey]):
    """Counts by edge that fade by half with every half-life; one owner. dropped: edges that the cap has cost so far.

    An edge's rate is the sum of its counts, each weighted by ln 2 / half-life x 2^(-age / half-life): steady traffic
    is shown at its true rate once it has lasted a few half-lives, and a young edge counts for what it has shown so
    far. Rather than fading each sum as time goes, each count is made heavier the later it comes: 2^((time - epoch) /
    half-life). So sums don't depend on the order in which counts arrive, and their ranking by weight not on when it is
    asked for.
    """

    def __init__(
        self, half_life: float = HALF_LIFE_S, most_edges: int = MOST_EDGES, costs: Costs | None = None
    ) -> None:
        if not (isfinite(half_life) and half_life > 0):
            raise BadTraffic(f"a half-life must be a positive number of seconds, not {half_life}")
        if most_edges < 1:
            raise BadTraffic(f"the cap on edges must be at least 1, not {most_edges}")
        self.half_life = half_life
        self.costs = costs or Costs()
        self.dropped = 0
        self._most = most_edges
        self._epoch = self._latest = -inf
        self._sums: dict[EdgeKey, Sum] = {}

    def __len__(self) -> int:
        return len(self._sums)

    def count(self, edge: EdgeKey, size: float, messages: float, at: float) -> None:
        """Of some seconds before `at`."""
        if at - self._epoch > EPOCHS * self.half_life:
            self._move_epoch(at)
        self._latest = max(self._latest, at)
        gain = log(2) / self.half_life * exp2((at - self._epoch) / self.half_life)
        old = self._sums.get(edge)
        if old is not None:
            self._sums[edge] = Sum(old.bytes + gain * size, old.messages + gain * messages, max(old.at, at))
            return
        self._sums[edge] = Sum(gain * size, gain * messages, at)
        if len(self) > self._most:
            self._shed()

    def in_a_second(self, now: float) -> float:
        """What a unit of the sums is of a count's a second, now."""
        return exp2((self._epoch - max(now, self._latest)) / self.half_life)

    def _shed(self) -> None:
        """Drops the lightest, and to some more than the cap asks for."""
        over = len(self) - self._most + int(SHED * self._most)
        weights = {
            edge: self.costs.weight(edge.kind, Amount(total.bytes, total.messages))
            for edge, total in self._sums.items()
        }
        for edge in nsmallest(over, weights, key=lambda edge: (weights[edge], edge)):
            del self._sums[edge]
        self.dropped += over

    def _move_epoch(self, to: float) -> None:
        factor = exp2((self._epoch - to) / self.half_life)
        self._sums = {
            edge: Sum(factor * total.bytes, factor * total.messages, total.at) for edge, total in self._sums.items()
        }
        self._epoch = to


class TrafficTally(Fading[Key]):
    """Flows in, rates out. One owner; readers get `graph()`."""

    def add(self, flows: Iterable[Flow], now: float, scale: float = 1.0) -> None:
        """Counts taken at `now` (seconds of any clock that never runs backwards). scale: 1 / duty cycle where counts
        are samples.
        """
        if not (isfinite(scale) and scale > 0):
            raise BadTraffic(f"a scale must be a positive number, not {scale}")
        for flow in flows:
            _check(flow)
            if flow.source != flow.target:
                key = Key(flow.source, flow.target, flow.kind)
                self.count(key, scale * flow.bytes, scale * flow.messages, now)

    def forget(self, endpoints: Collection[str]) -> None:
        """Without the edges of these endpoints, which are gone for good or were no endpoints."""
        if endpoints:
            self._sums = {
                key: total
                for key, total in self._sums.items()
                if key.source not in endpoints and key.target not in endpoints
            }

    def graph(self, now: float) -> Graph:
        """Without what is forgotten by then."""
        oldest = now - FORGOTTEN * self.half_life
        self._sums = {key: total for key, total in self._sums.items() if total.at >= oldest}
        left = self.in_a_second(now)
        rates = {key: Amount(left * total.bytes, left * total.messages) for key, total in self._sums.items()}
        return Graph(rates, self.costs, self.dropped)


class Deltas:
    """Flows that wait to be reported: summed by edge, handed out heaviest first so that a report has a bound; what is
    left waits and adds up.
    """

    def __init__(self, most_edges: int = MOST_EDGES) -> None:
        self.dropped = 0
        self._costs = Costs()
        self._most_edges = most_edges
        self._waiting: dict[tuple[Key, bool], Amount] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, flows: Iterable[Flow]) -> None:
        for flow in flows:
            _check(flow)
            key = Key(flow.source, flow.target, flow.kind), flow.by_server
            self._waiting[key] = self._waiting.get(key, Amount()).plus(Amount(flow.bytes, flow.messages))
        over = len(self._waiting) - self._most_edges
        if over > 0:
            for key in nsmallest(over, self._waiting, key=self._rank):
                del self._waiting[key]
                self.dropped += 1

    def take(self, most: int) -> list[Flow]:
        """The heaviest `most` flows; they wait no longer."""
        heaviest = nlargest(most, self._waiting, key=self._rank)
        taken = ((ends, by_server, self._waiting.pop((ends, by_server))) for ends, by_server in heaviest)
        return [Flow(*ends, int(rate.bytes), int(rate.messages), by_server) for ends, by_server, rate in taken]

    def _rank(self, key: tuple[Key, bool]) -> tuple[float, Key, bool]:
        return self._costs.weight(key[0].kind, self._waiting[key]), *key


def _check(flow: Flow) -> None:
    if flow.kind not in KINDS:
        raise BadTraffic(f"{flow.kind[:40]!r} is not a kind of traffic; allowed: {', '.join(KINDS)}")
    if flow.bytes < 0 or flow.messages < 0:
        raise BadTraffic(
            f"a flow from {flow.source[:40]} has negative counts: {flow.bytes} bytes, {flow.messages} messages"
        )
    for end in (flow.source, flow.target):
        if not 0 < len(end) <= LONGEST_NAME:
            raise BadTraffic(f"a flow's end must have a name of 1 to {LONGEST_NAME} characters, not {len(end)}")
