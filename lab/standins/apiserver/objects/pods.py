"""What the API server does for pods in particular: defaults, binding, graceful deletion."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from lab.standins.apiserver.model import refusals
from lab.standins.apiserver.model.kinds import BUILT_IN, Kind
from lab.standins.apiserver.model.requests import Request
from lab.standins.apiserver.objects.store import Store, Stored

KIND = next(kind for kind in BUILT_IN if kind.kind == "Pod")
NAMESPACE = next(kind for kind in BUILT_IN if kind.kind == "Namespace")

GRACE_S = 30


def filled_in(body: dict[str, Any]) -> dict[str, Any]:
    """A new object of a built-in kind with the defaults that matter to its readers."""
    if body["kind"] == "Event":
        return {"eventTime": None, "reportingComponent": "", "reportingInstance": "", **body}
    return _pod_filled_in(body) if body["kind"] == "Pod" else body


def _pod_filled_in(pod: dict[str, Any]) -> dict[str, Any]:
    spec = {"restartPolicy": "Always", "schedulerName": "default-scheduler", **pod.get("spec", {})}
    spec.setdefault("terminationGracePeriodSeconds", GRACE_S)
    for name in ("containers", "initContainers"):
        if isinstance(spec.get(name), list):
            spec[name] = [_container_filled_in(container) for container in spec[name]]
    return {**pod, "spec": spec, "status": {"phase": "Pending", "qosClass": "BestEffort", **pod.get("status", {})}}


def _container_filled_in(container: Any) -> Any:
    """A limit without a request is the request too."""
    resources = container.get("resources") if isinstance(container, dict) else None
    if not isinstance(resources, dict) or not isinstance(resources.get("limits"), dict):
        return container
    requests = {**resources["limits"], **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "requests": requests}}


def bound(kind: Kind, old: Stored, binding: Mapping[str, Any]) -> dict[str, Any]:
    """The pod with its node, and with the Binding's annotations; refused when it cannot be bound."""
    pod, name = old.object, old.object["metadata"]["name"]
    target = (binding.get("target") or {}).get("name")
    if not target:
        raise refusals.Refused(500, "target.name: Required value")
    uid, asked = pod["metadata"]["uid"], binding.get("metadata", {}).get("uid")
    if asked and asked != uid:
        key = f"/registry/pods/{pod['metadata']['namespace']}/{name}"
        raise refusals.conflict(kind, name, precondition(key, asked, uid))
    for stands, why in (
        (pod["metadata"].get("deletionTimestamp"), f"pod {name} is being deleted, cannot be assigned to a host"),
        (pod["spec"].get("nodeName"), f'pod {name} is already assigned to node "{pod["spec"].get("nodeName")}"'),
        (pod["spec"].get("schedulingGates"), f"pod {name} has non-empty .spec.schedulingGates"),
    ):
        if stands:
            raise refusals.conflict(kind, name, why, "binding")
    annotations = {**(pod["metadata"].get("annotations") or {}), **(binding["metadata"].get("annotations") or {})}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now_text()}
    return {
        **pod,
        "metadata": {**pod["metadata"], **({"annotations": annotations} if annotations else {})},
        "spec": {**pod["spec"], "nodeName": target},
        "status": {**pod["status"], "conditions": [*pod["status"].get("conditions", ()), scheduled]},
    }


def delete(store: Store, request: Request, old: Stored, options: Mapping[str, Any]) -> bytes:
    """Grace and all: first only marked, then, with grace 0 or without a node, gone at once, which is two changes."""
    asked = request.query.get("gracePeriodSeconds", options.get("gracePeriodSeconds"))
    grace = old.object["spec"].get("terminationGracePeriodSeconds", GRACE_S) if asked is None else int(asked)
    if not old.object["spec"].get("nodeName") or old.object.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        grace = 0
    key = (request.namespace, request.name)
    with store.changed:
        if old.object["metadata"].get("deletionTimestamp") and grace:
            return old.text + b"\n"
        marked = store.put(request.kind, key, _marked(old.object, grace))
        if grace or marked.object["metadata"].get("finalizers"):
            return marked.text + b"\n"
        return store.delete(request.kind, key).text + b"\n"


def now_text(later: timedelta = timedelta()) -> str:
    return (datetime.now(UTC) + later).strftime("%Y-%m-%dT%H:%M:%SZ")


def precondition(key: str, asked: str, uid: str) -> str:
    return (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {asked}, UID in object meta: {uid}"
    )


def _marked(pod: Mapping[str, Any], grace: int) -> dict[str, Any]:
    metadata = {
        **pod["metadata"],
        "deletionTimestamp": now_text(timedelta(seconds=grace)),
        "deletionGracePeriodSeconds": grace,
    }
    if "deletionTimestamp" not in pod["metadata"]:
        metadata["generation"] = metadata.get("generation", 1) + 1
    return {**pod, "metadata": metadata}
