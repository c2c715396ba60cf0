"""A recording as it is written: a line of JSON with pods and machines, then one for each node's window of traffic."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from numakin.kubectl.lean import lean

VERSION = 1


def header(pods: Iterable[Mapping[str, Any]], nodes: Iterable[Mapping[str, Any]], places: Mapping[str, str]) -> str:
    """The first line. pods: the API server's objects; nodes: the extender's; places: NUMA nodes by pod uid."""
    return json.dumps(
        {"numakin_recording": VERSION, "pods": [*map(lean, pods)], "nodes": [*nodes], "places": dict(places)}
    )


def line(node: str, window: str) -> str:
    """One window, as `numakin-enforcer record` writes it."""
    return json.dumps({"node": node, "window": json.loads(window)})
