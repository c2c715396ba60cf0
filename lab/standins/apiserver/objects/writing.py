"""POST, PUT, PATCH and DELETE, with their preconditions, ownership and generations."""

from __future__ import annotations

import json
import random
import string
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from lab.standins.apiserver.model import refusals, schema
from lab.standins.apiserver.model.kinds import Kind
from lab.standins.apiserver.model.requests import Request
from lab.standins.apiserver.objects import apply, bodies, patches, pods
from lab.standins.apiserver.objects.store import Name, Store, Stored

LARGEST_BODY = 3_145_728
LARGEST_OBJECT = 1_572_864
"""etcd's --max-request-bytes: an object over it is refused with 500, as recorded."""
_SYSTEM_FIELDS = ("uid", "creationTimestamp", "generation", "managedFields", "resourceVersion")

Result = tuple[int, bytes, Mapping[str, str]]
"""Status code, body, further headers."""


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
    body, warnings = bodies.pruned(request, body)
    fresh = _fresh(request, {**body, "metadata": {**metadata, "name": name}})
    return 201, _written(store, request, (request.namespace, name), {}, fresh), warnings


def update(store: Store, request: Request) -> Result:
    body = bodies.whole_object(request)
    key = (request.namespace, request.name)
    old = store.get(request.kind, key)
    if old is None:
        if not request.kind.create_on_update:
            raise refusals.not_found(request.kind, request.name)
        return 201, _written(store, request, key, {}, _fresh(request, body)), {}
    if not body["metadata"].get("resourceVersion"):
        message = "Invalid value: 0: must be specified for an update"
        cause = ("FieldValueInvalid", message, "metadata.resourceVersion")
        refused = refusals.invalid(request.kind.plural, request.kind.group, request.name, [cause])
        raise refused
    bodies.check_uid(request, old, body)
    bodies.check_revision(request, old, body)
    body, warnings = bodies.pruned(request, body)
    return 200, _written(store, request, key, old.object, _changed(request, old.object, body)), warnings


def patch(store: Store, request: Request) -> Result:
    accepted = (
        (patches.JSON, patches.MERGE) if request.kind.custom else (patches.JSON, patches.MERGE, patches.STRATEGIC)
    )
    if request.content_type == patches.APPLY:
        return _apply(store, request)
    if request.content_type not in accepted:
        raise refusals.unsupported_media_type(", ".join((*accepted, patches.APPLY)))
    key = (request.namespace, request.name)
    old = store.get(request.kind, key)
    if old is None:
        raise refusals.not_found(request.kind, request.name)
    body = patches.patched(request.content_type, old.object, request.json())
    bodies.check_revision(request, old, body)
    bodies.check_types(request.kind, body)
    bodies.check_times(request.kind, body, patching=True)
    body, warnings = bodies.pruned(request, body)
    return 200, _written(store, request, key, old.object, _changed(request, old.object, body)), warnings


def delete(store: Store, request: Request) -> Result:
    key = (request.namespace, request.name)
    old = store.get(request.kind, key)
    if old is None:
        raise refusals.not_found(request.kind, request.name)
    options = request.json() if request.body else {}
    bodies.check_preconditions(request, old, options.get("preconditions") or {})
    if request.kind.kind == "Pod":
        return 200, pods.delete(store, request, old, options), {}
    store.delete(request.kind, key)
    details = {"name": request.name, "group": request.kind.group, "kind": request.kind.plural}
    details = {name: detail for name, detail in details.items() if detail}
    details["uid"] = old.object["metadata"]["uid"]
    return 200, _text({**_SUCCESS, "details": details}), {}


_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


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
    return 201, _text({**_SUCCESS, "code": 201}), {}


def _apply(store: Store, request: Request) -> Result:
    config = bodies.applied_config(request)
    key = (request.namespace, request.name)
    old = store.get(request.kind, key)
    if old is None and request.subresource:
        raise refusals.not_found(request.kind, request.name)
    if old is not None:
        bodies.check_revision(request, old, config)
    described = bodies.schema_of(request.kind)
    why = schema.untyped(described, config)
    if why:
        name = "/".join(("", *filter(None, (request.namespace if not request.kind.custom else "", request.name))))
        shown = f"({name}; {request.kind.api_version}, Kind={request.kind.kind})"
        raise refusals.Refused(500, f"failed to create typed patch object {shown}: {why}")
    current = dict(old.object) if old else _fresh(request, {"metadata": config["metadata"]})
    config = _relevant(request, config)
    mine = apply.Owner(
        request.query["fieldManager"], "Apply", request.subresource, apply.paths(described, config), _now()
    )
    owners = [apply.from_managed(entry) for entry in current["metadata"].get("managedFields", ())]
    conflicts = apply.conflicts(current, config, mine, owners)
    if conflicts and not request.flag("force"):
        raise refusals.apply_conflict(
            [(owner.described(request.kind.api_version), apply.shown(path)) for owner, path in conflicts]
        )
    result, now = apply.applied(described, current, config, mine, owners)
    if old is None:
        bodies.check_namespace(store, request)
    body = _store(store, request, old, bodies.validated(request, result), now)
    return (200 if old else 201), body, {}


def _store(
    store: Store, request: Request, old: Stored | None, body: Mapping[str, Any], owners: list[apply.Owner]
) -> bytes:
    """Stores the object with its owners; nothing is stored, and nothing happens, when it is as it was."""
    managed = [apply.to_managed(owner, request.kind.api_version) for owner in owners]
    metadata = {**body["metadata"], **({"managedFields": managed} if managed else {})}
    body = _ordered(request.kind, {**body, "metadata": metadata})
    if old is not None and _without_revision(body) == _without_revision(old.object):
        return old.text + b"\n"
    if old is not None and _generation_parts(request.kind, body) != _generation_parts(request.kind, old.object):
        body["metadata"]["generation"] = old.object["metadata"].get("generation", 1) + 1
    text = _text(body)
    if len(text) > LARGEST_OBJECT:
        raise refusals.Refused(500, "etcdserver: request is too large")
    if request.query.get("dryRun") == "All":
        return text
    return store.put(request.kind, (request.namespace, body["metadata"]["name"]), body).text + b"\n"


def _written(store: Store, request: Request, key: Name, before: Mapping[str, Any], body: Mapping[str, Any]) -> bytes:
    """Stores what a plain write made of an object."""
    with store.changed:
        old = store.get(request.kind, key)
        if old is not None and old.object is not before and not before:
            raise refusals.already_exists(request.kind, request.name or key[1])
        if old is not None and before and old.object is not before:
            raise refusals.conflict(request.kind, key[1])
        body = bodies.validated(request, body)
        owners: list[apply.Owner] = []
        if request.kind.custom:
            mine = apply.Owner(request.manager, "Update", request.subresource, frozenset(), _now())
            known = [apply.from_managed(entry) for entry in before.get("metadata", {}).get("managedFields", ())]
            owners = apply.updated(bodies.schema_of(request.kind), before, body, mine, known)
        return _store(store, request, old, body, owners)


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
    changed = {**body, **kept, "metadata": metadata}
    if request.kind.kind == "Pod":
        pods.check_immutable(request.kind, old, changed)
    return changed


def _relevant(request: Request, config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an applied object that the main resource, or its status, takes."""
    identity = {"apiVersion": config["apiVersion"], "kind": config["kind"], "metadata": dict(config["metadata"])}
    identity["metadata"].pop("resourceVersion", None)
    if request.subresource == "status":
        return {**identity, "metadata": {"name": request.name}, "status": config.get("status", {})}
    dropped = ("status",) if "status" in request.kind.subresources else ()
    rest = {name: value for name, value in config.items() if name not in dropped}
    return {**rest, **identity}


def _fresh(request: Request, body: Mapping[str, Any]) -> dict[str, Any]:
    """A new object with what the server gives it."""
    metadata = {name: value for name, value in body["metadata"].items() if name not in _SYSTEM_FIELDS}
    metadata |= {"name": body["metadata"].get("name") or request.name, "uid": str(uuid.uuid4())}
    if request.namespace:
        metadata["namespace"] = request.namespace
    metadata |= {"generation": 1} if request.kind.custom or request.kind.kind == "Pod" else {}
    metadata["creationTimestamp"] = _now()
    if request.kind.custom and "status" in request.kind.subresources:
        body = {name: value for name, value in body.items() if name != "status"}
    fresh = {"kind": request.kind.kind, "apiVersion": request.kind.api_version, **body, "metadata": metadata}
    return pods.filled_in(fresh)


def _ordered(kind: Kind, body: Mapping[str, Any]) -> dict[str, Any]:
    """Custom resources have their keys in alphabetical order."""
    if not kind.custom:
        return dict(body)
    ordered: dict[str, Any] = json.loads(json.dumps(body, sort_keys=True))
    return ordered


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


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
