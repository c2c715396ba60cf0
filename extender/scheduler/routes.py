"""The Flask routes: what people and Prometheus read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

import msgspec
from flask import Flask, Response, abort, request
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from werkzeug.exceptions import HTTPException

from extender.cluster import Cluster
from extender.scheduler import wire
from extender.scheduler.metrics import Metrics
from extender.scheduler.pod_body import BadRequest
from extender.views import plan, readout, regroup, traffic_view
from extender.views.explain import explain, unknown
from numakin.process.log import Log

_log = Log("scheduler")


@dataclass(frozen=True, slots=True)
class Readiness:
    """missing: why nothing should be asked here now. degraded: what gets nowhere, though there are answers. For people;
    empty when there is nothing. unreported: tells the nodes whose enforcer has a pod there, and has sent nothing yet;
    asked by who wants them, since probes do not.
    """

    missing: str = ""
    degraded: str = ""
    unreported: Callable[[], Sequence[str]] = tuple


def create_app(cluster: Cluster, metrics: Metrics, ready: Callable[[], Readiness]) -> Flask:
    """What people read; also what probes do, for who asks over TLS."""
    app = create_health_app(metrics, ready)
    _add_views(app, cluster, ready)
    return app


def create_health_app(metrics: Metrics, ready: Callable[[], Readiness]) -> Flask:
    """What probes and Prometheus ask."""
    app = Flask("numakin-extender", static_folder=None)
    app.add_url_rule("/healthz", "healthz", lambda: Response("ok\n", mimetype="text/plain"))
    app.add_url_rule("/readyz", "readyz", lambda: _readiness(ready()))
    app.add_url_rule(
        "/metrics", "metrics", lambda: Response(generate_latest(metrics.registry), content_type=CONTENT_TYPE_LATEST)
    )
    app.register_error_handler(HTTPException, _http_error)
    return app


def _add_views(app: Flask, cluster: Cluster, ready: Callable[[], Readiness]) -> None:
    @app.get("/api/v1/explain")
    def explain_pod() -> Response:
        namespace, pod = request.args.get("namespace", "default"), request.args.get("pod", "")
        if not pod:
            return _error(400, "the query has no pod: /api/v1/explain?namespace=NAMESPACE&pod=NAME")
        most = request.args.get("nodes", "")
        if not re.fullmatch("[0-9]{0,9}", most):
            return _error(400, f"nodes must be a whole number, not {most!r}")
        explained = explain(cluster, namespace, pod, int(most) if most else None)
        if explained is None:
            return _error(404, unknown(cluster, namespace, pod))
        return _json(explained)

    @app.get("/api/v1/nodes")
    def nodes() -> Response:
        page = readout.nodes(cluster.picture(), cluster.live, *_asked_page())
        return _json({"nodes": page.rows, "unreported": ready().unreported()} | page.rest)

    @app.get("/api/v1/groups")
    def groups() -> Response:
        page = readout.groups(cluster.picture(), *_asked_page())
        return _json({"groups": page.rows} | page.rest)

    @app.get("/api/v1/plans")
    def plans() -> Response:
        groups = {group: readout.group_room(places) for group, places in cluster.held().items()}
        return _json({"workloads": readout.plans(cluster.plans), "held": groups})

    @app.get("/api/v1/regroup")
    def regroup_groups() -> Response:
        group = request.args.get("group", "")
        answer = regroup.regroup(cluster.regroupings, cluster.clock(), group)
        return _json(answer | ({"evictions": regroup.evictions(cluster, group)} if group else {}))

    planning = Lock()

    @app.post("/api/v1/plan")
    def plan_pods() -> Response:
        try:
            questions = wire.questions(request.get_data(cache=False), plan.MOST_PODS)
        except BadRequest as bad:
            return _error(400, str(bad))
        if not planning.acquire(blocking=False):
            return _error(429, "somebody else's plan is being made: ask again")
        try:
            return _json(plan.plan(cluster, [(question.pods, question.names) for question in questions]))
        finally:
            planning.release()

    @app.get("/api/v1/graph")
    def graph() -> Response:
        return _json(traffic_view.graph(cluster.known, request.args.get("namespace", "")))


def _asked_page() -> tuple[int, str]:
    """How many rows at most, and the name that they come after."""
    limit = request.args.get("limit", str(readout.MOST_ROWS))
    if not re.fullmatch("[0-9]{1,9}", limit) or not 1 <= int(limit) <= readout.MOST_ROWS:
        abort(400, f"limit must be a whole number from 1 to {readout.MOST_ROWS}, not {limit!r}")
    return int(limit), request.args.get("continue", "")


def _readiness(now: Readiness) -> Response:
    text = "; degraded: ".join(filter(None, (now.missing or "ok", now.degraded)))
    return Response(f"{text}\n", status=503 if now.missing else 200, mimetype="text/plain")


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status=status, mimetype="application/json")


def _error(status: int, text: str) -> Response:
    return _json({"error": text}, status)


def _http_error(bad: HTTPException) -> Response:
    status = bad.code or 500
    return _error(status, bad.description or bad.name)
