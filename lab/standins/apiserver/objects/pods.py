"""What the API server does for pods in particular: binding, graceful deletion, fields that can't change; and of the
other built-in kinds' rules, events'.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from lab.standins.apiserver.model import refusals
from lab.standins.apiserver.model.kinds import BUILT_IN, Kind
from lab.standins.apiserver.model.requests import Request
from lab.standins.apiserver.model.schema import Cause
from lab.standins.apiserver.objects import pod_resources
from lab.standins.apiserver.objects.store import Store, Stored

KIND = next(kind for kind in BUILT_IN if kind.kind == "Pod")
NAMESPACE = next(kind for kind in BUILT_IN if kind.kind == "Namespace")

GRACE_S = 30
_QUANTITY = re.compile(r"[+-]?[0-9.]+[eEinumkKMGTP]*[-+]?[0-9]*")
_IMMUTABLE = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


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
    if isinstance(spec.get("resources"), dict):
        spec["resources"] = pod_resources.filled_in(spec)
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
    uid, precondition = pod["metadata"]["uid"], binding.get("metadata", {}).get("uid")
    if precondition and precondition != uid:
        key = f"/registry/pods/{pod['metadata']['namespace']}/{name}"
        raise refusals.conflict(kind, name, _precondition(key, precondition, uid))
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


def check_immutable(kind: Kind, old: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    if _frozen_part(old["spec"]) == _frozen_part(now["spec"]):
        return
    name = old["metadata"]["name"]
    raise refusals.invalid(kind.kind, kind.group, name, [("FieldValueForbidden", _IMMUTABLE, "spec")])


def violations(kind: Kind, body: Mapping[str, Any], namespace: str) -> list[Cause]:
    """What is wrong with a built-in object, as far as it is checked."""
    if kind.kind == "Pod":
        return _pod_violations(kind, body)
    if kind.kind == "Event":
        involved = body.get("involvedObject", {}).get("namespace", "")
        if involved != namespace and (involved or namespace != "default"):
            message = f'Invalid value: "{involved}": does not match event.namespace'
            return [("FieldValueInvalid", message, "involvedObject.namespace")]
    return []


def _pod_violations(kind: Kind, body: Mapping[str, Any]) -> list[Cause]:
    containers = body["spec"].get("containers")
    if not containers:
        return [("FieldValueRequired", "Required value", "spec.containers")]
    for resources in (body["spec"].get("resources"), *(container.get("resources") for container in containers)):
        amounts = [(resources or {}).get(name) or {} for name in ("requests", "limits")]
        if any(not _QUANTITY.fullmatch(str(text)) for each in amounts for text in each.values()):
            raise refusals.bad_request(
                f'{kind.kind} in version "v1" cannot be handled as a {kind.kind}: '
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            )
    return pod_resources.violations(body["spec"]) if body["spec"].get("resources") else []


def uid_precondition(kind: Kind, request: Request, precondition: str, uid: str) -> str:
    return _precondition(f"/registry/{kind.plural}/{request.namespace}/{request.name}", precondition, uid)


def now_text(later: timedelta = timedelta()) -> str:
    return (datetime.now(UTC) + later).strftime("%Y-%m-%dT%H:%M:%SZ")


def _precondition(key: str, precondition: str, uid: str) -> str:
    return (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {precondition}, UID in object meta: {uid}"
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


def _frozen_part(spec: Mapping[str, Any]) -> dict[str, Any]:
    part = {
        name: value
        for name, value in spec.items()
        if name not in ("tolerations", "activeDeadlineSeconds", "terminationGracePeriodSeconds")
    }
    for name in ("containers", "initContainers"):
        part[name] = [
            {key: value for key, value in container.items() if key != "image"} for container in spec.get(name) or ()
        ]
    return part
