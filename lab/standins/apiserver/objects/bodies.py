"""What is checked of a request's body before anything is stored, in the real server's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.standins.apiserver.model import refusals
from lab.standins.apiserver.model.requests import Request
from lab.standins.apiserver.objects import pods
from lab.standins.apiserver.objects.store import Store, Stored

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


def merged(target: Any, patch: Any) -> Any:
    """A merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    old = target if isinstance(target, Mapping) else {}
    both = {**old, **{name: merged(old.get(name), value) for name, value in patch.items()}}
    return {name: value for name, value in both.items() if name not in patch or patch[name] is not None}


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
    if body.setdefault("metadata", {}).get("namespace", request.namespace) != request.namespace:
        raise refusals.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return body


def check_namespace(store: Store, request: Request) -> None:
    if request.namespace and store.get(pods.NAMESPACE, ("", request.namespace)) is None:
        raise refusals.not_found(pods.NAMESPACE, request.namespace)


def check_event(request: Request, body: Mapping[str, Any]) -> None:
    """An Event is in the namespace of its object; those of objects without one are in `default`."""
    involved = body.get("involvedObject", {}).get("namespace", "")
    if request.kind.kind == "Event" and involved != request.namespace and (involved or request.namespace != "default"):
        message = f'Invalid value: "{involved}": does not match event.namespace'
        cause = ("FieldValueInvalid", message, "involvedObject.namespace")
        raise refusals.invalid("Event", "", body["metadata"].get("name", ""), [cause])


def check_revision(request: Request, old: Stored, body: Mapping[str, Any]) -> None:
    revision = body["metadata"].get("resourceVersion")
    if revision and revision != str(old.revision):
        raise refusals.conflict(request.kind, request.name)


def check_uid(request: Request, old: Stored, body: Mapping[str, Any]) -> None:
    precondition, uid = body["metadata"].get("uid"), old.object["metadata"]["uid"]
    if precondition and precondition != uid:
        key = f"/registry/{request.kind.plural}/{request.namespace}/{request.name}"
        raise refusals.conflict(request.kind, request.name, pods.precondition(key, precondition, uid))


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
