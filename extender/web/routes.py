"""The JSON behind the page. Every answer is bounded, and read from one immutable scene."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import msgspec
from flask import Flask, Response, request

from extender.cluster import Cluster
from extender.state.enforcer_health import EnforcerHealths
from extender.views.explain import unknown
from extender.views.locality_history import LocalityHistory
from extender.views.page.baselines import Comparisons
from extender.views.page.group import group
from extender.views.page.machine import node
from extender.views.page.overview import Overview
from extender.views.page.pod import pod, pod_of_uid
from extender.views.page.pods import pods
from extender.views.page.rooms import MOST_ROOMS, rooms
from extender.views.page.scene import Scenes
from extender.web.page import add_page

WORTH_PACKING = 10_000
"""Bytes of an answer from which packing it is worth its time."""


RETRY_MS = 2_000
"""How long a browser waits before it comes again."""


class Web:
    """scenes, history: also for what samples the localities."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.scenes = Scenes(cluster)
        self.history, self.comparisons = LocalityHistory(), Comparisons()
        self.healths = EnforcerHealths()
        self.overview = Overview(self.scenes, cluster.live, self.healths)

    def add_to(self, app: Flask, namespace: str) -> None:
        """namespace: where numakin runs."""
        add_page(app, namespace)
        routes: dict[str, Callable[[], Response]] = {
            "overview": self._overview,
            "changes": self._changes,
            "rooms": self._rooms,
            "pod": self._pod,
            "pods": self._pods,
            "group": self._group,
            "node": self._node,
        }
        for name, answer in routes.items():
            app.add_url_rule(f"/api/v1/{name}", f"page_{name}", answer)

    def _overview(self) -> Response:
        return _json(self.overview.since(_version(request.args.get("since"))))

    def _changes(self) -> Response:
        version = _version(request.headers.get("Last-Event-ID") or request.args.get("since"))
        response = Response(events(self.overview, version), mimetype="text/event-stream")
        response.headers.update({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        return response

    def _rooms(self) -> Response:
        names = request.args.getlist("node")
        if len(names) > MOST_ROOMS:
            return _json({"error": f"{len(names)} nodes are asked for; the bound is {MOST_ROOMS}"}, 400)
        return _json(rooms(self.scenes.current(), names))

    def _pod(self) -> Response:
        uid = request.args.get("uid", "")
        if uid:
            answer = pod_of_uid(self.cluster, self.scenes.current(), uid)
            return _known(answer, f"no opted-in pod has the uid {uid}")
        namespace, name = request.args.get("namespace", "default"), request.args.get("pod", "")
        answer = pod(self.cluster, self.scenes.current(), namespace, name)
        return _json(answer) if answer is not None else _json({"error": unknown(self.cluster, namespace, name)}, 404)

    def _pods(self) -> Response:
        return _json(pods(self.cluster, self.scenes.current(), request.args.get("text", "")))

    def _group(self) -> Response:
        name = request.args.get("group", "")
        scene, cluster = self.scenes.current(), self.cluster
        answer = group(scene, name, cluster.live, self.history, self.comparisons, regroupings=cluster.regroupings)
        return _known(answer, f"no pod is in a group {name}: it is NAMESPACE/NAME")

    def _node(self) -> Response:
        name = request.args.get("node", "")
        answer = node(self.scenes.current(), name, self.cluster.live, self.healths.of(name))
        return _known(answer, f"no enforcer has reported a node {name}")


def _version(text: str | None) -> int:
    """0, everything, for what is no number."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 19 else 0


def _known(answer: object | None, otherwise: str) -> Response:
    return _json({"error": otherwise}, 404) if answer is None else _json(answer)


def _json(value: object, status: int = 200) -> Response:
    body = msgspec.json.encode(value)
    packed = len(body) > WORTH_PACKING and "gzip" in request.headers.get("Accept-Encoding", "")
    response = Response(gzip.compress(body, 1) if packed else body, status=status, mimetype="application/json")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.vary.add("Accept-Encoding")
    if packed:
        response.headers["Content-Encoding"] = "gzip"
    return response


def events(overview: Overview, version: int) -> bytes:
    """What has changed since a version, as one part of a stream of server-sent events; a comment when nothing has,
    which shows each end that the other is there.

    `extender.serving.streams` asks for the next part when it is time; where it does not, or the stream ends, the
    browser comes again itself. Both name the last event, which is a version of the overview.
    """
    changes = overview.since(version)
    if changes["version"] == version:
        return b":\n\n"
    return b"retry: %d\nid: %d\ndata: %b\n\n" % (RETRY_MS, changes["version"], msgspec.json.encode(changes))
