"""The Flask routes: kube-scheduler's verbs, and what people and Prometheus read."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
import structlog
from flask import Flask, Response, request
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from werkzeug.exceptions import HTTPException

from extender.cluster.predict import wanted
from extender.cluster.state import Cluster
from extender.scheduler import wire
from extender.scheduler.metrics import Metrics
from placement.errors import PlacementError
from placement.optin import opted_in

_log = structlog.get_logger("scheduler")

JSON = "application/json"


def create_app(cluster: Cluster, metrics: Metrics, ready: Callable[[], str]) -> Flask:
    """ready gives what is still missing, or the empty string."""
    app = Flask("numakin-extender", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = wire.BODY_BYTES
    verbs = Verbs(cluster)
    for name, answer in (("filter", verbs.filter), ("prioritize", verbs.prioritize)):
        app.add_url_rule(f"/{name}", name, _measured(name, answer, metrics), methods=["POST"])
    _add_views(app, cluster)
    app.add_url_rule("/healthz", "healthz", lambda: Response("ok\n", mimetype="text/plain"))
    app.add_url_rule("/readyz", "readyz", lambda: _readiness(ready()))
    app.add_url_rule(
        "/metrics", "metrics", lambda: Response(generate_latest(metrics.registry), content_type=CONTENT_TYPE_LATEST)
    )
    app.register_error_handler(HTTPException, _http_error)
    return app


class Verbs:
    """Each verb is a function from a request's body to an answer's."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def filter(self, body: bytes) -> bytes:
        return wire.filter_answer(wire.arguments(body), wire.Refusals())

    def prioritize(self, body: bytes) -> bytes:
        asked = wire.arguments(body)
        want = wanted(asked.pod) if opted_in(asked.pod.annotations) else None
        if want is None:
            return wire.prioritize_answer(asked.names, [0] * len(asked.names))
        offer = self._cluster.score(want, asked.names)
        scores = [row.score for row in offer.rows]
        best = max(offer.rows, key=lambda row: row.score, default=None)
        _log.info(
            "scored",
            pod=f"{asked.pod.namespace}/{asked.pod.name}",
            group=want.group,
            nodes=len(scores),
            best=best.node if best else None,
            score=best.score if best else None,
        )
        _log.debug("scores", pod=asked.pod.uid, scores={row.node: row.score for row in offer.rows})
        return wire.prioritize_answer(asked.names, scores)


def _measured(verb: str, answer: Callable[[bytes], bytes], metrics: Metrics) -> Callable[[], Response]:
    seconds = metrics.seconds.labels(verb)

    def view() -> Response:
        begin = time.perf_counter()
        try:
            response = Response(answer(request.get_data(cache=False)), mimetype=JSON)
        except (wire.BadRequest, PlacementError) as bad:
            response = _error(400, str(bad))
        except HTTPException as bad:
            response = _http_error(bad)
        seconds.observe(time.perf_counter() - begin)
        metrics.requests.labels(verb, str(response.status_code)).inc()
        return response

    return view


def _add_views(app: Flask, cluster: Cluster) -> None:
    @app.get("/api/v1/explain")
    def explain() -> Response:
        namespace, pod = request.args.get("namespace", "default"), request.args.get("pod", "")
        if not pod:
            return _error(400, "the query has no pod: /api/v1/explain?namespace=NAMESPACE&pod=NAME")
        found = cluster.explain(namespace, pod)
        if found is None:
            return _error(404, f"pod {namespace}/{pod} was neither scored nor reported lately")
        return _json(found)

    @app.get("/api/v1/nodes")
    def nodes() -> Response:
        return _json({"nodes": cluster.nodes()})

    @app.get("/api/v1/groups")
    def groups() -> Response:
        return _json({"groups": cluster.groups()})


def _readiness(missing: str) -> Response:
    return Response(f"{missing or 'ok'}\n", status=503 if missing else 200, mimetype="text/plain")


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status=status, mimetype=JSON)


def _error(status: int, text: str) -> Response:
    return _json({"error": text}, status)


def _http_error(bad: HTTPException) -> Response:
    status = bad.code or 500
    text = bad.description or bad.name
    if status == 413:
        text = f"the body is over the bound of {wire.BODY_BYTES} bytes"
    return _error(status, text)
