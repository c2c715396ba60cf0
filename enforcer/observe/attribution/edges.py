"""Directed edges: what attribution makes of counters, what it could not, and how both add up. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from enforcer.observe.attribution.containers import Address, LocalContainer
from enforcer.observe.attribution.services import Target
from enforcer.observe.bpf.counters import TCP, FlowKey, Volume
from numakin.placement.traffic.graph import Amount

Kind: TypeAlias = Literal["tcp", "udp", "unix", "wake", "shm"]


@dataclass(frozen=True, slots=True)
class Local:
    """An end on this node. `container_id` is empty where only the pod is known: its peers see just its address."""

    pod_uid: str
    container_id: str = ""


@dataclass(frozen=True, slots=True)
class Remote:
    """An end elsewhere: a pod of another node, a Service's address, the outside world, or this node itself."""

    address: Address


End: TypeAlias = Local | Remote


@dataclass(frozen=True, slots=True)
class Edge:
    """What went from `source` to `target`.

    tcp and udp: payload bytes and messages. unix: bytes and messages sent. wake: wake-ups, as messages, only for pairs
    that nothing else connects. shm: resident bytes of shared writable memory; a state and not a flow, once for a pair.

    `port` is the server's. `by_server` says that the server's end is on this node and known. Between pods of two nodes
    only such an edge is to be believed: both nodes report the pair, and behind a Service the client's names that.
    """

    kind: Kind
    source: End
    target: End
    bytes: int
    messages: int
    port: int = 0
    by_server: bool = False


class Unattributed(StrEnum):
    """Why a counter became no edge."""

    NO_CONTAINER = "no container"
    """The local end is in no container known here: a daemon of the host, or a container that was never reported."""

    UNCONNECTED = "unconnected socket"
    """UDP without connect, counted at the socket, where its peer is not known."""

    LOOPBACK = "loopback"
    """Inside one pod or the host's network, without exactly one known server on that port."""

    PEER_GONE = "peer gone"
    """A unix socket whose peer had ended or was never connected."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """Edges, and what is left over by kind and reason, both directions together. `services`: those that were asked,
    whose traffic only the servers' ends show.
    """

    edges: tuple[Edge, ...] = ()
    unattributed: Mapping[tuple[Kind, Unattributed], Amount] = field(default_factory=dict)
    services: frozenset[Target] = frozenset()


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
        self._left[kind, reason] = self._left[kind, reason].plus(Amount(size, messages))

    def _add(self, edge: tuple[Kind, End, End, int, bool], amount: Amount) -> None:
        if amount.messages:
            self._edges[edge] = self._edges[edge].plus(amount)

    def result(self) -> Attribution:
        """A packet wakes its receiver too, so wake-ups say something new only where there is no other edge."""
        joined = {frozenset(edge[1:3]) for edge in self._edges if edge[0] != "wake"}
        edges = tuple(
            Edge(kind, source, target, int(amount.bytes), int(amount.messages), port, by_server)
            for (kind, source, target, port, by_server), amount in self._edges.items()
            if kind != "wake" or joined.isdisjoint(_pairs(source, target))
        )
        return Attribution(edges, dict(self._left))


def _pairs(source: End, target: End) -> Iterator[frozenset[End]]:
    """The two ends, and these where no more than the pod is known of one or both."""
    for first in (source, _pod(source)):
        for second in (target, _pod(target)):
            yield frozenset((first, second))


def _pod(end: End) -> End:
    return Local(end.pod_uid) if isinstance(end, Local) else end


def local(container: LocalContainer) -> Local:
    return Local(container.pod_uid, container.container_id)


def kind(flow: FlowKey) -> Kind:
    return "tcp" if flow.protocol == TCP else "udp"
