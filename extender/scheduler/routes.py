"""The Flask routes: kube-scheduler's verbs, and what people and Prometheus read."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import msgspec
import structlog
from flask import Flask, Response, request
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from werkzeug.exceptions import HTTPException

from extender.cluster import Cluster
from extender.scheduler import wire
from extender.scheduler.metrics import Metrics
from extender.scoring.strict import NodeRefusal
from extender.state.pods import PodRow
from extender.views import plan, readout, traffic_view
from extender.views.explain import explain
from placement.model.errors import PlacementError

_log = structlog.get_logger("scheduler")

JSON = "application/json"

LOGGED_NODES = 20
"""Nodes that one log line names."""

LOGGED_BEST = 3
"""Of the scores, the best; explain has them all."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """missing: why nothing should be asked here now. degraded: what gets nowhere, though there are answers. For people;
    empty when there is nothing.
    """

    missing: str = ""
    degraded: str = ""


def create_app(cluster: Cluster, metrics: Metrics, ready: Callable[[], Readiness], *, refuse: bool) -> Flask:
    """refuse: /filter may refuse nodes."""
    app = Flask("numakin-extender", static_folder=None)
    verbs = Verbs(cluster, metrics, refuse=refuse)
    for name, answer in verbs.table.items():
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

    def __init__(self, cluster: Cluster, metrics: Metrics, *, refuse: bool) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._refuse = refuse
        self.table = {"filter": self.filter, "prioritize": self.prioritize, "preempt": self.preempt}

    def filter(self, body: bytes) -> bytes:
        asked = wire.arguments(body)
        want = self._cluster.wanted(asked.pod)
        if want is None:
            return wire.filter_answer(asked, wire.FilterRefusals())
        refused = self._cluster.refusals(want, asked.names) if self._refuse and want.strict else {}
        left = [name for name in asked.names if name not in refused]
        if len(left) == 1:
            # kube-scheduler does not ask for a score where there is no choice; the pod's room is held all the same.
            self._cluster.score(want, left)
        if refused:
            self._count(asked.pod, refused)
        return wire.filter_answer(
            asked,
            wire.FilterRefusals(
                failed={name: one.why for name, one in refused.items() if not one.hopeless},
                hopeless={name: one.why for name, one in refused.items() if one.hopeless},
            ),
        )

    def _count(self, pod: PodRow, refused: Mapping[str, NodeRefusal]) -> None:
        for one in refused.values():
            self._metrics.refusals.labels(one.why).inc()
        _log.info("refused", pod=_named(pod), nodes=sorted(refused)[:LOGGED_NODES], count=len(refused))

    def preempt(self, body: bytes) -> bytes:
        asked = wire.preempt_arguments(body)
        want = self._cluster.wanted(asked.pod)
        if want is None or not (self._refuse and want.strict):
            return wire.preempt_answer(asked.victims)
        chosen = self._cluster.victims(want, {node: victims.pods for node, victims in asked.victims.items()})
        changed = [node for node, pods in chosen.items() if set(pods) != set(asked.victims[node].pods)]
        _log.info(
            "preempted", pod=_named(asked.pod), nodes=len(asked.victims), helpful=len(chosen),
            other_victims_on=sorted(changed)[:LOGGED_NODES],
        )  # fmt: skip
        return wire.preempt_answer({node: _replaced(asked.victims[node], pods) for node, pods in chosen.items()})

    def prioritize(self, body: bytes) -> bytes:
        asked = wire.arguments(body)
        want = self._cluster.wanted(asked.pod)
        if want is None:
            return wire.prioritize_answer(asked.names, [0] * len(asked.names))
        offer = self._cluster.score(want, asked.names)
        if offer.kin_hidden:
            self._metrics.kin_hidden.inc()
            _log.warning(
                "kin's nodes were not offered", pod=_named(asked.pod), group=want.group, nodes=len(asked.names)
            )
        _log.info(
            "scored", pod=_named(asked.pod), group=want.group, nodes=len(asked.names),
            best={row.node: row.score for row in offer.best(LOGGED_BEST)},
        )  # fmt: skip
        return wire.prioritize_answer(asked.names, offer.scores)


def _replaced(named: wire.Victims, pods: Sequence[str]) -> wire.Victims:
    """Each pod that kube-scheduler had not named counts as a broken disruption budget: budgets are not known here, and
    so a node with kube-scheduler's own victims is preferred.
    """
    return wire.Victims(tuple(pods), named.budgets_broken + len(set(pods) - set(named.pods)))


def _named(pod: PodRow) -> str:
    return f"{pod.namespace}/{pod.name}"


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
        except Exception:  # noqa: BLE001 - it is answered, logged and counted
            _log.exception("a request could not be answered", verb=verb)
            response = _error(500, "a fault of the extender's own; its log says which")
        seconds.observe(time.perf_counter() - begin)
        metrics.requests.labels(verb, str(response.status_code)).inc()
        return response

    return view


def _add_views(app: Flask, cluster: Cluster) -> None:
    @app.get("/api/v1/explain")
    def explain_pod() -> Response:
        namespace, pod = request.args.get("namespace", "default"), request.args.get("pod", "")
        if not pod:
            return _error(400, "the query has no pod: /api/v1/explain?namespace=NAMESPACE&pod=NAME")
        found = explain(cluster, namespace, pod)
        if found is None:
            return _error(404, f"pod {namespace}/{pod} was neither scored nor reported lately")
        return _json(found)

    @app.get("/api/v1/nodes")
    def nodes() -> Response:
        return _json({"nodes": readout.nodes(cluster.picture(), cluster.live)})

    @app.get("/api/v1/groups")
    def groups() -> Response:
        return _json({"groups": readout.groups(cluster.picture())})

    @app.get("/api/v1/plans")
    def plans() -> Response:
        return _json({"workloads": readout.plans(cluster.plans)})

    planning = Lock()

    @app.post("/api/v1/plan")
    def plan_pods() -> Response:
        try:
            questions = wire.questions(request.get_data(cache=False), plan.MOST_PODS)
        except wire.BadRequest as bad:
            return _error(400, str(bad))
        if not planning.acquire(blocking=False):
            return _error(429, "somebody else's plan is being made: ask again")
        try:
            return _json(plan.plan(cluster, [(one.pods, one.names) for one in questions]))
        finally:
            planning.release()

    @app.get("/api/v1/graph")
    def graph() -> Response:
        return _json(traffic_view.graph(cluster.known))


def _readiness(now: Readiness) -> Response:
    text = "; degraded: ".join(filter(None, (now.missing or "ok", now.degraded)))
    return Response(f"{text}\n", status=503 if now.missing else 200, mimetype="text/plain")


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status=status, mimetype=JSON)


def _error(status: int, text: str) -> Response:
    return _json({"error": text}, status)


def _http_error(bad: HTTPException) -> Response:
    status = bad.code or 500
    return _error(status, bad.description or bad.name)
