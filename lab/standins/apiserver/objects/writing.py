"""POST, PUT, PATCH and DELETE, with their preconditions and generations."""

from __future__ import annotations

import random
import string
import uuid
from collections.abc import Mapping
from typing import Any

from lab.standins.apiserver.model import refusals
from lab.standins.apiserver.model.kinds import Kind
from lab.standins.apiserver.model.requests import Request
from lab.standins.apiserver.objects import apply, bodies, pods
from lab.standins.apiserver.objects.store import Name, Store, Stored, compact

LARGEST_BODY = 3_145_728
LARGEST_OBJECT = 1_572_864
"""etcd's --max-request-bytes: an object over it is refused with 500, as recorded."""
_SYSTEM_FIELDS = ("uid", "creationTimestamp", "generation", "resourceVersion")

Result = tuple[int, bytes]
"""Status code and body."""


def create(store: Store, request: Request) -> Result:
    body = bodies.whole_object(request)
    metadata = body["metadata"]
    name = metadata.get("name") or _generated(metadata)
    if not name:
        raise refusals.invalid(
            request.kind.kind,
            request.kind.group,
            "",
            [("FieldValueRequired", "Required value: name or generateName is required", "metadata.name")],
        )
    bodies.check_namespace(store, request)
    if store.get(request.kind, (request.namespace, name)) is not None:
        raise refusals.already_exists(request.kind, name)
    fresh = _fresh(request, {**body, "metadata": {**metadata, "name": name}})
    return 201, _written(store, request, (request.namespace, name), None, fresh)


def update(store: Store, request: Request) -> Result:
    body = bodies.whole_object(request)
    key = (request.namespace, request.name)
    old = store.get(request.kind, key)
    if old is None:
        if not request.kind.create_on_update:
            raise refusals.not_found(request.kind, request.name)
        return 201, _written(store, request, key, None, _fresh(request, body))
    if not body["metadata"].get("resourceVersion"):
        message = "Invalid value: 0: must be specified for an update"
        cause = ("FieldValueInvalid", message, "metadata.resourceVersion")
        raise refusals.invalid(request.kind.plural, request.kind.group, request.name, [cause])
    bodies.check_uid(request, old, body)
    bodies.check_revision(request, old, body)
    return 200, _written(store, request, key, old, _changed(request, old.object, body))


def patch(store: Store, request: Request) -> Result:
    key = (request.namespace, request.name)
    old = store.get(request.kind, key)
    if request.content_type == bodies.APPLY:
        return _apply(store, request, old)
    if request.content_type != bodies.MERGE:
        raise refusals.unsupported_media_type(f"{bodies.MERGE}, {bodies.APPLY}")
    if old is None:
        raise refusals.not_found(request.kind, request.name)
    body = bodies.merged(old.object, request.json())
    bodies.check_revision(request, old, body)
    return 200, _written(store, request, key, old, _changed(request, old.object, body))


def delete(store: Store, request: Request) -> Result:
    key = (request.namespace, request.name)
    old = store.get(request.kind, key)
    if old is None:
        raise refusals.not_found(request.kind, request.name)
    options = request.json() if request.body else {}
    bodies.check_preconditions(request, old, options.get("preconditions") or {})
    if request.kind.kind == "Pod":
        return 200, pods.delete(store, request, old, options)
    store.delete(request.kind, key)
    details = {"name": request.name, "group": request.kind.group, "kind": request.kind.plural}
    details = {name: detail for name, detail in details.items() if detail}
    details["uid"] = old.object["metadata"]["uid"]
    return 200, compact({**SUCCESS, "details": details}) + b"\n"


SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def bind(store: Store, request: Request) -> Result:
    """The Binding subresource: answers with a Status, not with the Binding."""
    body = request.json()
    name = request.name or body["metadata"]["name"]
    if body.get("metadata", {}).get("name") not in (None, name):
        raise refusals.bad_request("name in URL does not match name in Binding object")
    kind = pods.KIND
    old = store.get(kind, (request.namespace, name))
    if old is None:
        raise refusals.not_found(kind, name)
    bound = pods.bound(kind, old, body)
    store.put(kind, (request.namespace, name), bound)
    return 201, compact({**SUCCESS, "code": 201}) + b"\n"


def _apply(store: Store, request: Request, old: Stored | None) -> Result:
    config = request.json()
    if old is None and request.subresource:
        raise refusals.not_found(request.kind, request.name)
    if old is None:
        bodies.check_namespace(store, request)
    current = old.object if old else _fresh(request, {"metadata": config["metadata"]})
    part = ("status",) if request.subresource else tuple(name for name in config if name != "status")
    key, manager = (request.namespace, request.name), f"{request.query['fieldManager']} {request.subresource}".strip()
    owners = store.owners(request.kind, key)
    relevant = {name: config[name] for name in part if name in config}
    body = apply.applied(current, relevant, manager, owners, force=request.flag("force"))
    return (200 if old else 201), _written(store, request, key, old, body)


def _written(store: Store, request: Request, key: Name, old: Stored | None, body: dict[str, Any]) -> bytes:
    """Stores what a write made of an object; nothing is stored, and nothing happens, when it is as it was."""
    bodies.check_event(request, body)
    if old is not None and _without_revision(body) == _without_revision(old.object):
        return old.text + b"\n"
    if old is not None and _generation_parts(request.kind, body) != _generation_parts(request.kind, old.object):
        generation = old.object["metadata"].get("generation", 1) + 1
        body = {**body, "metadata": {**body["metadata"], "generation": generation}}
    if len(compact(body)) >= LARGEST_OBJECT:
        raise refusals.Refused(500, "etcdserver: request is too large")
    return store.put(request.kind, key, body).text + b"\n"


def _changed(request: Request, old: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """The object after a PUT or PATCH: the server's own fields stay, and a subresource changes its own part only."""
    metadata = {**body["metadata"]}
    for name in (*_SYSTEM_FIELDS, "name", "namespace"):
        metadata.pop(name, None)
        if name in old["metadata"]:
            metadata[name] = old["metadata"][name]
    if request.subresource == "status":
        return {**old, "status": body.get("status", {})}
    kept = {"status": old["status"]} if "status" in request.kind.subresources and "status" in old else {}
    return {**body, **kept, "metadata": metadata}


def _fresh(request: Request, body: Mapping[str, Any]) -> dict[str, Any]:
    """A new object with what the server gives it."""
    metadata = {name: value for name, value in body["metadata"].items() if name not in _SYSTEM_FIELDS}
    metadata |= {"name": body["metadata"].get("name") or request.name, "uid": str(uuid.uuid4())}
    if request.namespace:
        metadata["namespace"] = request.namespace
    metadata |= {"generation": 1} if request.kind.custom or request.kind.kind == "Pod" else {}
    metadata["creationTimestamp"] = pods.now_text()
    if request.kind.custom and "status" in request.kind.subresources:
        body = {name: value for name, value in body.items() if name != "status"}
    fresh = {"kind": request.kind.kind, "apiVersion": request.kind.api_version, **body, "metadata": metadata}
    return pods.filled_in(fresh)


def _generation_parts(kind: Kind, body: Mapping[str, Any]) -> dict[str, Any]:
    apart = {"metadata", "apiVersion", "kind"} | ({"status"} if "status" in kind.subresources else set())
    return (
        {name: value for name, value in body.items() if name not in apart} if kind.custom or kind.kind == "Pod" else {}
    )


def _without_revision(body: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in body["metadata"].items() if name != "resourceVersion"}
    return {**body, "metadata": metadata}


def _generated(metadata: Mapping[str, Any]) -> str:
    prefix = metadata.get("generateName", "")
    return prefix + "".join(random.choices(string.ascii_lowercase + string.digits, k=5)) if prefix else ""
