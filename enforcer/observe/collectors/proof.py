"""Does a collector count? Bytes are sent over a connection of our own and looked for.

A hook that loads and attaches can still see nothing: a private cgroup namespace, a socket layer by another name.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from enforcer.observe.bpf.counters import FlowKey
from enforcer.observe.bpf.loader import LoadRefused
from enforcer.observe.collectors.collector import Collector

BYTES = 4099
"""Sent in one piece. A prime, as its sums are not mistaken for others."""

TIMEOUT_S = 5.0


@contextmanager
def exchange() -> Iterator[set[int]]:
    """The two ports of a loopback connection that has carried BYTES, open as long as the context."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        server.settimeout(TIMEOUT_S)
        client = stack.enter_context(socket.create_connection(server.getsockname(), TIMEOUT_S))
        accepted, _ = server.accept()
        stack.enter_context(accepted)
        accepted.settimeout(TIMEOUT_S)
        client.sendall(bytes(BYTES))
        left = BYTES
        while left:
            left -= len(accepted.recv(left))
        yield {server.getsockname()[1], client.getsockname()[1]}


def prove(collector: Collector) -> None:
    """Refused, with what was seen, unless the attached collector counts both ends of a connection exactly."""
    with exchange() as ports:
        flows = {
            key: volume
            for key, volume in collector.drain().counters.items()
            if isinstance(key, FlowKey) and key.port in ports
        }
    sent = sum(volume.tx_bytes for volume in flows.values())
    received = sum(volume.rx_bytes for volume in flows.values())
    if (sent, received) != (BYTES, BYTES):
        raise LoadRefused(f"of {BYTES} bytes over loopback it saw {sent} sent and {received} received")
