"""Edges and leftovers as they add up while counters are attributed."""

from collections import defaultdict

from enforcer.observe.attribution.edges import Amount, Attribution, Edge, End, Kind, Unattributed
from enforcer.observe.bpf.counters import Volume


class EdgeTally:
    """Sums by edge. Nothing is an edge that carried no message."""

    def __init__(self) -> None:
        self._edges: dict[tuple[Kind, End, End, int, bool], Amount] = defaultdict(Amount)
        self._left: dict[tuple[Kind, Unattributed], Amount] = defaultdict(Amount)

    def both(self, kind: Kind, here: End, there: End, volume: Volume, port: int, *, by_server: bool) -> None:
        """What `here` sent to `there`, and what it received."""
        self._add((kind, here, there, port, by_server), Amount(volume.tx_bytes, volume.tx_messages))
        self._add((kind, there, here, port, by_server), Amount(volume.rx_bytes, volume.rx_messages))

    def sent(self, kind: Kind, source: End, target: End, volume: Volume) -> None:
        self._add((kind, source, target, 0, False), Amount(volume.tx_bytes, volume.tx_messages))

    def leave(self, kind: Kind, reason: Unattributed, volume: Volume) -> None:
        size, messages = volume.tx_bytes + volume.rx_bytes, volume.tx_messages + volume.rx_messages
        self._left[kind, reason] += Amount(size, messages)

    def _add(self, edge: tuple[Kind, End, End, int, bool], amount: Amount) -> None:
        if amount.messages:
            self._edges[edge] += amount

    def result(self) -> Attribution:
        """A packet wakes its receiver too, so wake-ups say something new only where there is no other edge."""
        joined = {frozenset(edge[1:3]) for edge in self._edges if edge[0] != "wake"}
        edges = tuple(
            Edge(kind, source, target, amount.bytes, amount.messages, port, by_server)
            for (kind, source, target, port, by_server), amount in self._edges.items()
            if kind != "wake" or frozenset((source, target)) not in joined
        )
        return Attribution(edges, dict(self._left))
