"""The thread that learns: it owns the cluster graph, takes what enforcers and the API server tell, and hands out what
is known as one immutable value.

Nothing waits for it. Traffic that comes faster than it can be taken in is dropped and counted; what is known is made
anew no oftener than its making is worth, so that kube-scheduler's questions have the processor for themselves.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from functools import partial

import structlog

from extender.cluster import learned
from extender.cluster.known import Known, Learning
from extender.cluster.pods import PodChanges, PodRow
from placement.traffic import Flow

EVERY_S = 2.0
"""Seconds between two looks at what is known."""

SHARE = 0.05
"""Of its time that the thread may spend on making what is known."""

MOST_FLOWS = 500_000
"""Flows that wait to be taken in: some 150 MB."""

_log = structlog.get_logger("learning")


class Learner:
    """publish: called on its thread with what is known by now. Everything else may be called from any thread."""

    def __init__(self, publish: Callable[[Known], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.dropped_flows = 0
        self._publish = publish
        self._clock = clock
        self._learning = Learning()
        self._steps: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._flows = 0
        self._thread = threading.Thread(target=self._run, name="learning", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """What was told by now is part of what is known afterwards."""
        self._steps.put(None)
        self._thread.join(timeout_s)

    def traffic(self, node: str, flows: tuple[Flow, ...]) -> None:
        """What a node's enforcer tells."""
        with self._lock:
            if self._flows + len(flows) > MOST_FLOWS:
                self.dropped_flows += len(flows)
                return
            self._flows += len(flows)
        self._steps.put(partial(self._told, node, flows, self._clock()))

    def pods(self, changes: PodChanges) -> None:
        """What the API server tells."""
        now = self._clock()
        self._steps.put(lambda: self._learning.apply(changes, now))

    def asked(self, row: PodRow) -> None:
        """What kube-scheduler tells."""
        now = self._clock()
        self._steps.put(lambda: self._learning.asked(row, now))

    def restored(self, group: str, text: str) -> None:
        """What an extender before this one wrote down of a group."""
        now = self._clock()
        self._steps.put(lambda: self._learning.restored(group, learned.read(text, group), now))

    def _told(self, node: str, flows: tuple[Flow, ...], now: float) -> None:
        with self._lock:
            self._flows -= len(flows)
        self._learning.told(node, flows, now)

    def _run(self) -> None:
        due, news = time.monotonic() + EVERY_S, False
        while True:
            try:
                step = self._steps.get(timeout=max(0.0, due - time.monotonic()))
                if step is None:
                    break
                news = True
                _guarded(step)
            except queue.Empty:
                pass
            began = time.monotonic()
            if began >= due:
                if news:
                    _guarded(self._make)
                ended = time.monotonic()
                due, news = ended + max(EVERY_S, (ended - began) / SHARE), False
        _guarded(self._make)

    def _make(self) -> None:
        self._publish(self._learning.known(self._clock()))


def _guarded(step: Callable[[], None]) -> None:
    """What is learned is worth having and nothing depends on it: a bug must not end the thread."""
    try:
        step()
    except Exception:  # noqa: BLE001 - whatever it is, the thread goes on
        _log.exception("a step of learning failed")
