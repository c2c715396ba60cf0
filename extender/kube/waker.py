"""Wakes pods that were refused everywhere, once a node would take them.

kube-scheduler tries a refused pod again when something changes that it watches, such as the pod's own annotations;
what enforcers report is nothing of that kind. So the pod is touched: one annotation, by a patch of its metadata.
"""

from __future__ import annotations

import queue
from contextlib import suppress
from datetime import UTC, datetime

from extender.kube.api import MERGE_PATCH, Api, ApiError, Unreachable
from extender.state.pods import PodRow
from numakin.process.log import Log
from numakin.process.threads import IDLE, IDLE_S, Backoff, Threaded, Threads

ANNOTATION = "numakin-woken-at"
"""Outside of the domain of the annotations that people write, each of which means something."""

WAITING = 1_000

BACKOFF = Backoff(longest_s=5.0)
"""While the API server takes no patch."""

_log = Log("waking")


class Waker(Threaded):
    """Wakes pods in a thread of its own, so that no call waits for a patch. Each replica wakes what it
    has refused itself, also one that does not hold the Lease.
    """

    def __init__(self, api: Api, *, threads: Threads) -> None:
        self._api = api
        self._pods: queue.Queue[PodRow | None] = queue.Queue(WAITING)
        self._failures = 0
        self._thread = threads.thread("waking", self._round, wake=lambda: self._put(None))

    def wake(self, pod: PodRow) -> None:
        """Never waits; where too many are waiting, kube-scheduler's own flush after minutes has to do."""
        self._put(pod)

    def _put(self, pod: PodRow | None) -> None:
        with suppress(queue.Full):  # then the thread does not wait
            self._pods.put_nowait(pod)

    def _round(self) -> object:
        try:
            pod = self._pods.get(timeout=IDLE_S)
        except queue.Empty:
            return IDLE
        if pod is None:
            return IDLE
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        patch = {"metadata": {"uid": pod.uid, "annotations": {ANNOTATION: now}}}
        try:
            self._api.request("PATCH", path, body=patch, content_type=MERGE_PATCH)
        except (ApiError, Unreachable) as bad:
            self._not_woken(pod, bad)
        else:
            self._failures = 0
            _log.info("refused pod woken", pod=f"{pod.namespace}/{pod.name}")
        return None

    def _not_woken(self, pod: PodRow, bad: ApiError | Unreachable) -> None:
        """Tries again after a while, but for a pod that is no more, or may not be touched."""
        _log.warning("refused pod not woken", pod=f"{pod.namespace}/{pod.name}", error=str(bad), again=bad.passing)
        if bad.passing:
            self._failures += 1
            self.wake(pod)
            self._thread.stopping.wait(max(bad.retry_after_s, BACKOFF.wait_s(self._failures)))
