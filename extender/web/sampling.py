"""A thread that keeps what the page shows over time, and forgets nodes that have gone; it costs next to nothing."""

from __future__ import annotations

import time

from extender.views.page.shares import group_shares
from extender.web.routes import Web
from numakin.process.threads import Threaded, Threads

EVERY_S = 10.0
"""Seconds between two samples."""

SHARE = 0.01
"""Of its time that the thread may spend on sampling: on large clusters samples come less often."""


class Sampling(Threaded):
    def __init__(self, web: Web, *, threads: Threads) -> None:
        self._web = web
        self._thread = threads.thread("locality", self._round, stale_after_s=300.0)

    def _round(self) -> None:
        began = time.monotonic()
        scene = self._web.scenes.current()
        self._web.history.sample(time.time(), group_shares(scene))
        self._web.healths.keep({state.view.name for state in scene.picture.nodes})
        self._thread.stopping.wait(max(EVERY_S, (time.monotonic() - began) / SHARE))
