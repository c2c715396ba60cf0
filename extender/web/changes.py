"""What has changed in the cluster, as one part of a stream of server-sent events.

`extender.serving.streams` asks for the next part when it is time; where it does not, or the stream ends, the browser
comes again itself. Both name the last event, which is a version of the overview.
"""

from __future__ import annotations

import msgspec

from extender.views.page.overview import Overview

RETRY_MS = 2_000
"""How long a browser waits before it comes again."""


def events(overview: Overview, version: int) -> bytes:
    """What has changed since a version; a comment when nothing has, which shows each end that the other is there."""
    changes = overview.since(version)
    if changes["version"] == version:
        return b":\n\n"
    return b"retry: %d\nid: %d\ndata: %b\n\n" % (RETRY_MS, changes["version"], msgspec.json.encode(changes))
