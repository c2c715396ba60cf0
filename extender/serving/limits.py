"""Limits of the extender's HTTP ports. Whatever is over one is refused and counted by its name (lower case)."""

from __future__ import annotations

HANDSHAKE_S = 5.0
"""Seconds from a new connection to the end of its TLS handshake; without TLS, to its first byte."""

HEADER_S = 5.0
"""Seconds from a request's first byte to the end of its headers."""

BODY_S = 10.0
"""Seconds for a request's body. kube-scheduler waits 5 s for an answer unless it is configured otherwise."""

ANSWER_S = 60.0
"""Seconds for the writing of an answer; a caller that does not read it is cut off."""

KEEPALIVE_S = 120
"""Seconds that an idle connection stays open: over the 90 s of Go's http.DefaultTransport, so that kube-scheduler's
client closes first. A server that closes earlier loses calls that cross the close on their way.
"""

HEADER_BYTES = 16 << 10
"""Bytes of a request line with its headers; what comes in one read may be up to 64 KiB."""

WAITING = 1_000
"""Connections of one port that have not shaken hands yet. Where all places are taken, the client address that has most
gives up its oldest; where all have as few as the newcomer's, the newcomer is refused.
"""

CONNECTIONS = 128
"""Connections of one port that were let in, each with a thread. Where all places are taken it is as with WAITING."""

CONNECTIONS_PER_PEER = 32
"""Open connections of one client address; kube-scheduler, Prometheus and a probe have a few each."""

BODY_BYTES = 64 << 20
"""Bytes of one body: 5,000 Node objects with 50 images each are 58 MB."""

READER_BODY_BYTES = 1 << 20
"""Bytes of a body that is not kube-scheduler's, as of a manifest that is asked about."""

HELD_BYTES = 128 << 20
"""Bytes of all bodies of one port that are held at one time."""

READERS = 2
"""Answers to people (`/api/v1`) that are worked out at one time, and as many to probes and Prometheus; others wait."""

STREAMS = 16
"""Readers of the stream of changes (`/api/v1/changes`); a reader over that is answered once, and comes again itself."""

STREAM_S = 50.0
"""Seconds after which a stream ends, so that it is no request that lasts too long; its reader comes again itself."""
