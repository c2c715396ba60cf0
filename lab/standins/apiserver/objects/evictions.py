"""The pods/eviction subresource: a deletion that PodDisruptionBudgets rule. What a budget allows is what its status
says, which the disruption controller writes on a real cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lab.standins.apiserver.model import refusals
from lab.standins.apiserver.model.kinds import BUILT_IN
from lab.standins.apiserver.model.requests import Request
from lab.standins.apiserver.objects import bodies, pods, writing
from lab.standins.apiserver.objects.store import Store, Stored, compact

BUDGET = next(kind for kind in BUILT_IN if kind.kind == "PodDisruptionBudget")
VERSION = "policy/v1"

_BLOCKED = "Cannot evict pod as it would violate the pod's disruption budget."


def evict(store: Store, request: Request) -> bytes:
    """Answers with a Status, not with the pod."""
    body = request.json()
    if body.get("apiVersion") != VERSION or body.get("kind") != "Eviction":
        raise refusals.bad_request(f'no kind "{body.get("kind")}" is registered for version "{body.get("apiVersion")}"')
    with store.changed:
        old = store.get(request.kind, (request.namespace, request.name))
        if old is None:
            raise refusals.not_found(request.kind, request.name)
        options = body.get("deleteOptions") or {}
        bodies.check_preconditions(request, old, options.get("preconditions") or {})
        if old.object["status"].get("phase") == "Running" and not old.object["metadata"].get("deletionTimestamp"):
            _spend(store, request, old)
        pods.delete(store, replace(request, subresource="", query={}), old, options)
    return compact({**writing.SUCCESS, "code": 201}) + b"\n"


def _spend(store: Store, request: Request, pod: Stored) -> None:
    """One disruption of the pod's budget."""
    listed = store.snapshot(BUDGET, store.revision) or []
    labels = pod.object["metadata"].get("labels") or {}
    found = [(name, budget) for name, budget in listed if name[0] == request.namespace and _selects(budget, labels)]
    if len(found) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise refusals.Refused(500, f"Internal error occurred: {message}", "InternalError")
    for name, budget in found:
        status = budget.object.get("status") or {}
        allowed = status.get("disruptionsAllowed", 0)
        if allowed <= 0:
            wanted, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
            why = f"The disruption budget {name[1]} needs {wanted} healthy pods and has {healthy} currently"
            cause = {"reason": "DisruptionBudget", "message": why}
            raise refusals.Refused(429, _BLOCKED, "TooManyRequests", {"causes": [cause]})
        store.put(BUDGET, name, {**budget.object, "status": {**status, "disruptionsAllowed": allowed - 1}})


def _selects(budget: Stored, labels: Mapping[str, Any]) -> bool:
    wanted = (budget.object["spec"].get("selector") or {}).get("matchLabels") or {}
    return bool(wanted) and all(labels.get(name) == value for name, value in wanted.items())
