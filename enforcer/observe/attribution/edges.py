"""Directed edges: what attribution makes of counters, and what it could not. Pure values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from enforcer.observe.attribution.containers import Address, LocalContainer
from enforcer.observe.attribution.services import Target
from enforcer.observe.bpf.counters import TCP, FlowKey

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
class Amount:
    """Of traffic, one way."""

    bytes: int = 0
    messages: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.bytes + other.bytes, self.messages + other.messages)


@dataclass(frozen=True, slots=True)
class Attribution:
    """Edges, and what is left over by kind and reason, both directions together. `services`: those that were asked,
    whose traffic only the servers' ends show.
    """

    edges: tuple[Edge, ...] = ()
    unattributed: Mapping[tuple[Kind, Unattributed], Amount] = field(default_factory=dict)
    services: frozenset[Target] = frozenset()


def local(container: LocalContainer) -> Local:
    return Local(container.pod_uid, container.container_id)


def kind(flow: FlowKey) -> Kind:
    return "tcp" if flow.protocol == TCP else "udp"
