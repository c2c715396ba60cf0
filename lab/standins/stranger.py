"""What a caller that never goes on sends first."""

from __future__ import annotations

import ssl
from contextlib import suppress

HALF_A_REQUEST = b"POST /prioritize HTTP/1.1\r\nHost: x\r\nContent-Le"


def half_a_handshake() -> bytes:
    """What a TLS client says first: for it the server computes a key and signs."""
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()
