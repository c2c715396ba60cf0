"""Fifth in the chain: no BPF at all. Each network namespace is asked over netlink for its TCP sockets and their bytes.

Sees neither UDP nor connections that begin and end between two readings, and of any connection not what it moved after
the last reading. Costs nothing on the data path and about 9 us a socket at each reading.
"""

import ctypes
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from enforcer.observe.bpf.contract import EPHEMERAL_FLOOR, ROOT_CGROUP
from enforcer.observe.bpf.counters import TCP, CounterKey, CounterSnapshot, FlowKey, Missed, Volume, by_address
from enforcer.observe.bpf.idle import Idle
from enforcer.observe.collectors import diag_wire
from enforcer.observe.collectors.diag_wire import LISTEN, TcpConnection

NAME = "inet_diag"
NETLINK_SOCK_DIAG = 4
CLONE_NEWNET = 0x40000000
ANSWER_MAX = 1 << 18
TIMEOUT_S = 5.0
FLOWS = 8192
"""Flows remembered at once; what belongs to one more is counted as missed."""

OWN = Path("/proc/thread-self/ns/net")
_libc = ctypes.CDLL(None, use_errno=True)


def open_collector(namespaces: Callable[[], Iterable[Path]], flows: int = FLOWS) -> "InetDiag":
    """`namespaces` gives the files (/proc/PID/ns/net) to look into at each reading (OSError if it cannot)."""
    return InetDiag(namespaces, flows)


class InetDiag:
    """Counts what connections moved while attached."""

    def __init__(self, namespaces: Callable[[], Iterable[Path]], flows: int) -> None:
        self.name = NAME
        self._namespaces = namespaces
        self._sockets: dict[int, socket.socket] = {}
        self._open: dict[tuple[int, int], TcpConnection] = {}
        self._totals: dict[CounterKey, Volume] = {}
        self._missed = Missed()
        self._capacity = flows
        self._idle: Idle[CounterKey] = Idle(flows)
        self._attached = False

    def attach(self) -> None:
        if not self._attached:
            self._open = dict(self._connections())
            self._attached = True

    def detach(self) -> None:
        if self._attached:
            self._count()
            self._attached = False

    def drain(self) -> CounterSnapshot:
        if self._attached:
            self._count()
        events = {key: volume.tx_messages + volume.rx_messages for key, volume in self._totals.items()}
        forgotten = frozenset(self._idle.after(events))
        snapshot = CounterSnapshot(dict(self._totals), self._missed, forgotten)
        for key in forgotten:
            del self._totals[key]
        return snapshot

    def close(self) -> None:
        self._attached = False
        while self._sockets:
            self._sockets.popitem()[1].close()

    def _count(self) -> None:
        """Of a namespace that is new here nothing yet: its connections may be old."""
        known = frozenset(self._sockets)
        now = dict(self._connections())
        listening = {connection.local_port for connection in now.values() if connection.state == LISTEN}
        for where, connection in now.items():
            if connection.state != LISTEN and where[0] in known:
                self._add(connection, where[0], self._open.get(where), listening)
        self._open = now

    def _add(
        self, connection: TcpConnection, namespace: int, before: TcpConnection | None, listening: set[int]
    ) -> None:
        moved = since(connection, before) if before else volume(connection)
        key = replace(flow(connection, listening), namespace=namespace)
        if key in self._totals or len(self._totals) < self._capacity:
            self._totals[key] = self._totals.get(key, Volume()) + moved
        else:
            self._missed += Missed(moved.tx_bytes + moved.rx_bytes, moved.tx_messages + moved.rx_messages)

    def _connections(self) -> Iterator[tuple[tuple[int, int], TcpConnection]]:
        """((namespace's inode, cookie), connection) of every namespace."""
        self._follow_namespaces()
        for namespace, netlink in self._sockets.items():
            for family in (socket.AF_INET, socket.AF_INET6):
                for connection in dump(netlink, family):
                    yield (namespace, connection.cookie), connection

    def _follow_namespaces(self) -> None:
        current = set()
        for path in (OWN, *self._namespaces()):
            try:
                inode = path.stat().st_ino
                if inode not in self._sockets:
                    self._sockets[inode] = diag_socket(path)
            except FileNotFoundError:
                continue  # the process has ended
            current.add(inode)
        for inode in self._sockets.keys() - current:
            self._sockets.pop(inode).close()


def flow(connection: TcpConnection, listening: set[int]) -> FlowKey:
    """Which end serves is decided as account.h does, with the listening sockets seen rather than learned."""
    local, remote = connection.local_port, connection.remote_port
    server = local < remote if local != remote else connection.local < connection.remote
    same_side = (local >= EPHEMERAL_FLOOR) == (remote >= EPHEMERAL_FLOOR)
    if same_side and local != remote and (local in listening) != (remote in listening):
        server = local in listening
    cgroup = by_address(connection.local) if connection.cgroup <= ROOT_CGROUP else connection.cgroup
    return FlowKey(cgroup, connection.remote, local if server else remote, server, TCP)


def volume(connection: TcpConnection) -> Volume:
    return Volume(connection.sent, connection.segments_sent, connection.received, connection.segments_received)


SEGMENTS = 1 << 32
"""The kernel counts them in 32 bits: at 100 Gbit/s they begin anew after eight minutes."""


def since(connection: TcpConnection, before: TcpConnection) -> Volume:
    """What one connection has moved. Its bytes may step back: what is sent again counts as that before it is sent."""
    return Volume(
        max(0, connection.sent - before.sent),
        (connection.segments_sent - before.segments_sent) % SEGMENTS,
        max(0, connection.received - before.received),
        (connection.segments_received - before.segments_received) % SEGMENTS,
    )


def dump(netlink: socket.socket, family: int) -> Iterator[TcpConnection]:
    netlink.send(diag_wire.request(family))
    last = False
    while not last:
        connections, last = diag_wire.parse(netlink.recv(ANSWER_MAX))
        yield from connections


def diag_socket(namespace: Path) -> socket.socket:
    """A socket that asks about `namespace` for as long as it is open; this thread is back in its own on return."""
    own = os.open(OWN, os.O_RDONLY | os.O_CLOEXEC)
    other = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        set_namespace(other)
        try:
            made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG)
        finally:
            set_namespace(own)
    finally:
        os.close(own)
        os.close(other)
    made.settimeout(TIMEOUT_S)
    return made


def set_namespace(descriptor: int) -> None:
    if _libc.setns(descriptor, CLONE_NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, f"setns: {os.strerror(error)}")
