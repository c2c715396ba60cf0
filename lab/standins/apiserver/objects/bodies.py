"""What is checked of a request's body before anything is stored, in the real server's words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import yaml

from lab.standins.apiserver.model import declared, definitions, refusals, schema
from lab.standins.apiserver.model.kinds import Kind
from lab.standins.apiserver.model.requests import Request
from lab.standins.apiserver.objects import pods
from lab.standins.apiserver.objects.store import Store, Stored

LARGEST_ANNOTATIONS = 262_144

_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_MICRO_TIMES = {"Lease": ("acquireTime", "renewTime")}


def applied_config(request: Request) -> dict[str, Any]:
    if not request.query.get("fieldManager"):
        message = "Required value: is required for apply patch"
        raise refusals.invalid_options("PatchOptions", message, "FieldValueRequired", message, "fieldManager")
    config = _json_or_yaml(request.body)
    kind = request.kind
    if (config.get("apiVersion"), config.get("kind")) != (kind.api_version, kind.kind):
        raise refusals.bad_request(f"invalid object type: {config.get('apiVersion')}, Kind={config.get('kind')}")
    name = config.setdefault("metadata", {}).setdefault("name", request.name)
    if name != request.name:
        raise refusals.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({request.name})"
        )
    if config["metadata"].get("managedFields"):
        raise refusals.bad_request("metadata.managedFields must be nil")
    checked: dict[str, Any] = config
    return checked


def _json_or_yaml(body: bytes) -> Any:
    """JSON is YAML too, and what clients send; PyYAML takes a hundred times as long to read it."""
    with suppress(ValueError):
        return json.loads(body)
    try:
        return yaml.safe_load(body)
    except yaml.YAMLError as bad:
        why = str(bad).replace("\n", " ")
        raise refusals.bad_request(f"error decoding YAML: error converting YAML to JSON: yaml: {why}") from bad


def whole_object(request: Request) -> dict[str, Any]:
    kind = request.kind
    if request.content_type not in ("application/json", ""):
        raise refusals.unsupported_media_type("application/json, application/yaml, application/vnd.kubernetes.protobuf")
    body = request.json()
    if not isinstance(body, dict) or body.get("kind", kind.kind) != kind.kind:
        kind_name = body.get("kind") if isinstance(body, dict) else type(body).__name__
        raise refusals.bad_request(
            f'{kind_name} in version "{kind.version}" cannot be handled as a {kind.kind}: unknown conversion'
        )
    metadata = body.setdefault("metadata", {})
    if not isinstance(metadata.get("name", ""), str):
        raise _not_handled(
            kind, "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string"
        )
    if metadata.get("namespace", request.namespace) != request.namespace:
        raise refusals.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    check_types(kind, body)
    check_times(kind, body, patching=False)
    return body


def check_times(kind: Kind, body: Mapping[str, Any], *, patching: bool) -> None:
    """MicroTime fields have exactly six digits after the point: all else is refused."""
    for name in _MICRO_TIMES.get(kind.kind, ()):
        text = body.get("spec", {}).get(name)
        if text is None:
            continue
        if _MICRO_TIME.fullmatch(text):
            utc = datetime.fromisoformat(text).astimezone(UTC)
            body["spec"][name] = utc.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            continue
        why = f'parsing time "{text}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "{text}"'
        if patching:
            raise refusals.Refused(422, f"cannot restore struct from: {why}", "Invalid", {})
        raise _not_handled(kind, why)


def validated(request: Request, body: Mapping[str, Any]) -> Mapping[str, Any]:
    kind = request.kind
    name = body["metadata"].get("name", "")
    annotations = body["metadata"].get("annotations") or {}
    if sum(len(key) + len(value) for key, value in annotations.items()) > LARGEST_ANNOTATIONS:
        message = f"Too long: may not be more than {LARGEST_ANNOTATIONS} bytes"
        raise refusals.invalid(kind.kind, kind.group, name, [("FieldValueTooLong", message, "metadata.annotations")])
    if kind.schema is not None:
        body = schema.defaulted(schema_of(kind), body)
        causes = schema.violations(schema_of(kind), body)
    elif kind.kind == definitions.KIND:
        causes = schema.violations(schema_of(kind), body) or definitions.violations(body)
    else:
        causes = pods.violations(kind, body, request.namespace)
    if causes:
        raise refusals.invalid(kind.kind, kind.group, name, causes)
    return body


def pruned(request: Request, body: dict[str, Any]) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Without the fields that the kind doesn't have; refused when validation is strict, else a warning in a header."""
    kind = request.kind
    kept, dropped = schema.pruned(schema_of(kind), body)
    how = request.query.get("fieldValidation", "Warn")
    if dropped and how == "Strict":
        fields = ", ".join(f'unknown field "{field}"' for field in dropped)
        raise _not_handled(kind, f"strict decoding error: {fields}")
    warning = ", ".join(f'299 - "unknown field \\"{field}\\""' for field in dropped) if how == "Warn" else ""
    return kept, {"Warning": warning} if warning else {}


def check_types(kind: Kind, body: Mapping[str, Any]) -> None:
    """A built-in kind's fields are decoded into Go's; a custom one's are validated (422)."""
    if kind.custom:
        return
    for reason, _, path in schema.violations(schema_of(kind), body):
        if reason == "FieldValueTypeInvalid":
            raise _not_handled(kind, f"json: cannot unmarshal value into Go struct field {kind.kind}.{path}")


def _not_handled(kind: Kind, why: str) -> refusals.Refused:
    return refusals.bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}')


def check_namespace(store: Store, request: Request) -> None:
    if request.namespace and store.get(pods.NAMESPACE, ("", request.namespace)) is None:
        raise refusals.not_found(pods.NAMESPACE, request.namespace)


def check_revision(request: Request, old: Stored, body: Mapping[str, Any]) -> None:
    revision = body["metadata"].get("resourceVersion")
    if revision and revision != str(old.revision):
        raise refusals.conflict(request.kind, request.name)


def check_uid(request: Request, old: Stored, body: Mapping[str, Any]) -> None:
    precondition, uid = body["metadata"].get("uid"), old.object["metadata"]["uid"]
    if precondition and precondition != uid:
        raise refusals.conflict(
            request.kind, request.name, pods.uid_precondition(request.kind, request, precondition, uid)
        )


def check_preconditions(request: Request, old: Stored, preconditions: Mapping[str, str]) -> None:
    for field, words, now, after in (
        ("uid", "UID", old.object["metadata"]["uid"], "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", str(old.revision), "modified"),
    ):
        if preconditions.get(field, now) != now:
            why = (
                f"the {words} in the precondition ({preconditions[field]}) does not match "
                f"the {words} in record ({now}). "
                f"The object might have been {after}"
            )
            raise refusals.precondition(request.kind, request.name, why)


def schema_of(kind: Kind) -> schema.Schema:
    return schema.of_object(kind.schema) if kind.schema is not None else declared.schema_of(kind)
