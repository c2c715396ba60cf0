"""Limits of the extender's HTTP ports. Whatever is over one is refused and counted by its name (lower case)."""

from __future__ import annotations

HANDSHAKE_S = 5.0
"""Seconds until the first bytes of a new connection, and then for its TLS handshake."""

HEADER_S = 5.0
"""Seconds from a connection's first byte, or that of its next request, to the end of the headers. Without TLS also
until the first byte of a new connection.
"""

BODY_S = 10.0
"""Seconds for a request's body. kube-scheduler waits 5 s for an answer unless it is configured otherwise."""

REQUEST_S = 60.0
"""Seconds from a request's headers until its answer is written; a caller that does not read it is cut off."""

KEEPALIVE_S = 120
"""Seconds that an idle connection stays open: over the 90 s of Go's http.DefaultTransport, so that kube-scheduler's
client closes first. A server that closes earlier loses calls that cross the close on their way.
"""

TLS_READ_BYTES = 32 << 10
"""Bytes that a TLS connection has room for at each read, two records. asyncio's own 256 KiB, filled with zeros, are
256 MiB for CONNECTIONS handshakes.
"""

HEADER_BYTES = 16 << 10
"""Bytes of a request line with its headers while they are not complete; what comes in one read may be up to 256 KiB."""

CONNECTIONS = 1_000
"""Open connections of one port, handshakes included. When all are taken, the client address that has most gives up one
that is without a request, last one with a certificate; where all have as few as the newcomer's, it is refused.
"""

CONNECTIONS_PER_PEER = 32
"""Open connections of one client address; kube-scheduler, Prometheus and a probe have a few each."""

IN_FLIGHT = 64
"""Requests that are being read, wait for a thread, or have one. kube-scheduler sends one after the other."""

IN_FLIGHT_PER_PEER = 16
"""Of them, those of one client address."""

BODY_BYTES = 64 << 20
"""Bytes of one body: 5,000 Node objects with 50 images each are 58 MB."""

READER_BODY_BYTES = 1 << 20
"""Bytes of a body that is not kube-scheduler's, as of a manifest that is asked about."""

HELD_BYTES = 128 << 20
"""Bytes of all bodies that are held at one time."""

READERS = 2
"""Threads for what people read (`/api/v1`); kube-scheduler's requests have threads of their own (--threads)."""

PROBES = 2
"""Threads for probes and metrics."""

STREAMS = 16
"""Readers of the stream of changes (`/api/v1/changes`); a reader over that is answered once, and comes again itself."""

STREAM_S = 50.0
"""Seconds after which a stream ends, so that it is no request that lasts too long; its reader comes again itself."""
