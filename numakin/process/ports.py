"""Ports for who has to know one before it is taken, or to take the same again."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import cycle
from random import SystemRandom

FIRST, LAST = 20_000, 29_999
"""Below those that Linux gives to connections and to who asks for any (net.ipv4.ip_local_port_range): a port from there
may be another program's by the time that it is used. And below those of Kubernetes' Services (30000 to 32767), which
nothing may listen on and which lead elsewhere all the same.
"""

PART = "FREE_PORTS"
"""The environment variable FIRST-LAST: the ports that this process and all that it starts may draw. Processes beside
each other may draw the same one, and each takes its own only a while later.
"""


def part() -> range:
    """All that may be drawn here."""
    first, last = os.environ.get(PART, f"{FIRST}-{LAST}").split("-")
    return range(int(first), int(last) + 1)


@cache
def _all() -> Iterator[int]:
    """In an order of this process's own, over and over: none comes again before all the others have."""
    return cycle(SystemRandom().sample(part(), len(part())))


def free_port() -> int:
    """A port of loopback that nothing listens on now, and that was not given out here: who got it may not have taken it
    yet.
    """
    while True:
        port = next(_all())
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def free_address() -> str:
    """HOST:PORT with a free port of this process's part."""
    return f"127.0.0.1:{free_port()}"
