"""The shops' calls as recordings of traffic, which enforcers replay as if they saw them: no program of a shop runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lab.demo.locality import Place
from lab.demo.shop import Pod, calls
from numakin.placement.traffic.graph import Flow
from numakin.placement.traffic.window import Window

USERS = 500
"""Of each shop; `CALLS` are by user and minute."""

CALL_BYTES = 2048
"""Of one call, both ways together."""

WINDOW_S = 10.0
WINDOWS = 360
"""An hour: what is replayed ends then, and fades."""


def record(places: Mapping[Pod, Place], uids: Mapping[Pod, str], node: str, file: Path) -> None:
    """What a node's observer would see of it: the calls to its pods."""
    flows = tuple(
        Flow(uids[source], uids[target], "tcp", messages * CALL_BYTES, messages, by_server=True)
        for source, target, weight in calls(list(places))
        if places[target].node == node and (messages := round(weight * USERS * WINDOW_S / 60))
    )
    line = Window(WINDOW_S, flows).to_json() + "\n"
    file.write_text(line * WINDOWS)
