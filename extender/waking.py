"""Wakes pods that were refused everywhere, once a node would take them.

kube-scheduler looks at a refused pod again when something changes that it watches, such as the pod's own annotations;
what enforcers report is nothing of that kind. So the pod is touched: one annotation, by a patch of its metadata.
"""

from __future__ import annotations

import queue
import threading
from datetime import UTC, datetime

import structlog

from extender.cluster.pods import PodRow
from extender.kube.api import MERGE_PATCH, Api, ApiError, Unreachable

ANNOTATION = "numakin-woken-at"
"""Outside of the domain of the annotations that people write, each of which means something."""

WAITING = 1_000

_log = structlog.get_logger("waking")


class Waker:
    """A thread of its own: nobody waits for a patch. Each replica wakes what it has refused itself, also one that does
    not hold the Lease.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._pods: queue.Queue[PodRow | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._run, name="waking", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        self._pods.put(None)
        self._thread.join(timeout_s)

    def wake(self, pod: PodRow) -> None:
        """Never waits; where too many are waiting, kube-scheduler's own flush after minutes has to do."""
        if not self._pods.full():
            self._pods.put_nowait(pod)

    def _run(self) -> None:
        while (pod := self._pods.get()) is not None:
            path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            patch = {"metadata": {"uid": pod.uid, "annotations": {ANNOTATION: now}}}
            try:
                self._api.request("PATCH", path, body=patch, content_type=MERGE_PATCH)
            except (ApiError, Unreachable) as bad:
                _log.warning("refused pod not woken", pod=f"{pod.namespace}/{pod.name}", error=str(bad))
            else:
                _log.info("refused pod woken", pod=f"{pod.namespace}/{pod.name}")
