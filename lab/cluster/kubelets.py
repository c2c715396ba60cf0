"""Plays the kubelets of many nodes: one watch of bound pods, run by their nodes, their status written back."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import Any, Protocol

from extender.kube.api import MERGE_PATCH, Api, ApiError, Unreachable

WORKERS = 8
"""Pods that are started at the same time."""

MOUNT_S = 0.3
"""From a pod's coming to its first container: a real kubelet looks so often whether a pod's volumes are mounted
(podAttachAndMountRetryInterval), and then makes its sandbox. By that time a nomination is there.
"""

WATCH_S = 60
RETRY_S = 0.2
FINAL = (404, 409, 422)
"""Refusals that will not change: gone, another pod of that name, invalid. 403 passes: an API server that has just
started has not read its roles yet.
"""


class PlayedNode(Protocol):
    """Where pods run; methods are called from several threads."""

    def run(self, pod: dict[str, Any]) -> None: ...

    def end(self, uid: str) -> None: ...


class Kubelets:
    """nodes: by name; pods of other nodes are left alone. errors: what went wrong with which pod, or with the watch."""

    def __init__(self, api: Api, nodes: Mapping[str, PlayedNode]) -> None:
        self.errors: list[str] = []
        self._api, self._nodes = api, nodes
        self._running: dict[str, str] = {}
        self._phases: dict[str, tuple[str, str]] = {}
        self._ended: set[str] = set()
        self._addresses = itertools.count(1)
        self._pool = ThreadPoolExecutor(WORKERS, "kubelet")
        self._mounting: SimpleQueue[tuple[float, dict[str, Any]]] = SimpleQueue()
        self._stopping = threading.Event()
        self._follower = threading.Thread(target=self._follow, name="kubelets", daemon=True)
        self._starter = threading.Thread(target=self._start_mounted, name="kubelets' volumes", daemon=True)

    def start(self) -> None:
        self._follower.start()
        self._starter.start()

    def stop(self) -> None:
        self._stopping.set()
        self._mounting.put((0.0, {}))
        if self._starter.is_alive():
            self._starter.join()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def phases(self, namespace: str) -> list[str]:
        """Of all its pods, as the watch has told: the past, but no question to the API server."""
        return [phase for where, phase in list(self._phases.values()) if where == namespace]

    def _follow(self) -> None:
        while not self._stopping.is_set():
            try:
                for pod in self._pods():
                    self._seen(pod)
            except (ApiError, Unreachable):
                self._stopping.wait(RETRY_S)
            except Exception as error:  # noqa: BLE001 - whatever it is, the watch begins again
                self.errors.append(f"the watch of pods: {type(error).__name__}: {error}")
                self._stopping.wait(RETRY_S)

    def _pods(self) -> Iterator[dict[str, Any]]:
        """All there are, then each that changes, until the watch ends."""
        listed = self._api.get("/api/v1/pods").json()
        here = {pod["metadata"]["uid"] for pod in listed["items"]}
        yield from listed["items"]
        for uid in [uid for uid in self._phases if uid not in here]:
            self._gone(uid)
        query = {
            "watch": "true",
            "resourceVersion": listed["metadata"]["resourceVersion"],
            "timeoutSeconds": str(WATCH_S),
        }
        with self._api.stream("/api/v1/pods", query, WATCH_S + 5) as response:
            rest = b""
            for data in response.stream(65536, decode_content=False):
                *lines, rest = (rest + data).split(b"\n")
                for event in map(json.loads, lines):
                    if event["type"] == "ERROR":
                        raise Unreachable(event["object"].get("message", "watch error"))
                    if event["type"] == "DELETED":
                        self._gone(event["object"]["metadata"]["uid"])
                    else:
                        yield event["object"]

    def _seen(self, pod: dict[str, Any]) -> None:
        node, uid = pod["spec"].get("nodeName", ""), pod["metadata"]["uid"]
        self._phases[uid] = (pod["metadata"]["namespace"], pod.get("status", {}).get("phase", ""))
        if node not in self._nodes:
            return
        if pod["metadata"].get("deletionTimestamp"):
            if uid not in self._ended:
                self._ended.add(uid)
                self._pool.submit(self._carefully, _name(pod), self._end, pod)
        elif uid not in self._running:
            self._running[uid] = node
            self._mounting.put((time.monotonic() + MOUNT_S, pod))

    def _start_mounted(self) -> None:
        """Until all is stopped: each pod when it is due, but those that have ended meanwhile."""
        while True:
            due, pod = self._mounting.get()
            if self._stopping.wait(max(0.0, due - time.monotonic())):
                return
            uid = pod["metadata"]["uid"]
            if uid in self._running and uid not in self._ended:
                self._pool.submit(self._carefully, _name(pod), self._run, pod)

    def _gone(self, uid: str) -> None:
        """Its object is no more, as after a deletion by force."""
        self._phases.pop(uid, None)
        node = self._running.pop(uid, "")
        if node and not self._stopping.is_set():
            self._pool.submit(self._carefully, uid, self._nodes[node].end, uid)

    def _carefully(self, pod: str, action: Callable[..., None], argument: object) -> None:
        try:
            action(argument)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other pods go on
            self.errors.append(f"{pod}: {type(error).__name__}: {error}")

    def _run(self, pod: dict[str, Any]) -> None:
        self._nodes[pod["spec"]["nodeName"]].run(pod)
        number = next(self._addresses)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = [{"type": kind, "status": "True"} for kind in ("Initialized", "Ready", "ContainersReady")]
        containers = [
            {
                "name": container["name"], "image": container["image"], "imageID": "", "ready": True,
                "restartCount": 0, "state": {"running": {"startedAt": now}},
            }
            for container in pod["spec"]["containers"]
        ]  # fmt: skip
        status = {
            "phase": "Running",
            "podIP": f"10.{64 + (number >> 16)}.{number >> 8 & 255}.{number & 255}",
            "startTime": now,
            "conditions": [*ready, {"type": "PodScheduled", "status": "True"}],
            "containerStatuses": containers,
        }
        self._answered("PATCH", f"{_path(pod)}/status", {"status": status}, MERGE_PATCH)

    def _end(self, pod: dict[str, Any]) -> None:
        self._nodes[pod["spec"]["nodeName"]].end(pod["metadata"]["uid"])
        now = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        self._answered("DELETE", _path(pod), {"apiVersion": "v1", "kind": "DeleteOptions", **now})

    def _answered(self, method: str, path: str, body: dict[str, Any], content_type: str = "application/json") -> None:
        """Again and again until the API server has done it, or says that it never will: the pod is gone."""
        while not self._stopping.is_set():
            try:
                self._api.request(method, path, None, body, content_type)
            except Unreachable:
                self._stopping.wait(RETRY_S)
            except ApiError as refused:
                if refused.code in FINAL:
                    return
                self._stopping.wait(RETRY_S)
            else:
                return


def _name(pod: dict[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _path(pod: dict[str, Any]) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
