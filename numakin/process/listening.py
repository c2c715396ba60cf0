"""Where a program listens. `0.0.0.0` and `::` are both every address of the host, of IPv4 and of IPv6, as they are to
gRPC and to Kubernetes' own programs: in a cluster of IPv6 alone nothing comes to another.
"""

from __future__ import annotations

import socket

EVERY = frozenset({"", "0.0.0.0", "::"})


def both_families(host: str) -> str:
    """The host to listen at; `::` is of both families once `take_both` was called."""
    if host not in EVERY:
        return host
    return "::" if socket.has_dualstack_ipv6() else "0.0.0.0"


def take_both(listening: socket.socket) -> None:
    """Before it is bound; whatever net.ipv6.bindv6only says."""
    if listening.family == socket.AF_INET6:
        listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)


def plain(peer: str) -> str:
    """A peer's address; one of IPv4 as it is written, though it came to a socket of both families."""
    mapped = peer.removeprefix("::ffff:")
    return mapped if "." in mapped else peer
