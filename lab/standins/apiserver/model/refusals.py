"""The API server's refusals: `Status` objects, with the codes, reasons and wording of kube-apiserver
1.34.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.standins.apiserver.model.kinds import Kind

TOO_OLD_LIST = "The resourceVersion for the provided list is too old."
TOO_OLD_TOKEN = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


@dataclass(eq=False)
class Refused(Exception):
    """A request that is answered with a Status. `text` set: answered as plain text instead, without a Status."""

    code: int
    message: str
    reason: str = ""
    details: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    text: bool = False

    def status(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": dict(self.metadata),
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = dict(self.details)
        return body | {"code": self.code}


def _named(kind: Kind, name: str, **more: Any) -> dict[str, Any]:
    group = {"group": kind.group} if kind.group else {}
    return {"name": name, **group, "kind": kind.plural, **more}


def page_not_found() -> Refused:
    return Refused(404, "404 page not found", text=True)


def no_such_resource() -> Refused:
    return Refused(404, "the server could not find the requested resource", "NotFound", {})


def method_not_allowed() -> Refused:
    return Refused(405, "the server does not allow this method on the requested resource", "MethodNotAllowed", {})


def not_found(kind: Kind, name: str) -> Refused:
    return Refused(404, f'{kind.qualified} "{name}" not found', "NotFound", _named(kind, name))


def unavailable(message: str) -> Refused:
    """Who would answer is not there."""
    return Refused(503, message, "ServiceUnavailable")


def already_exists(kind: Kind, name: str) -> Refused:
    return Refused(409, f'{kind.qualified} "{name}" already exists', "AlreadyExists", _named(kind, name))


def conflict(kind: Kind, name: str, why: str = MODIFIED, subresource: str = "") -> Refused:
    what = f"{kind.qualified}/{subresource}" if subresource else kind.qualified
    details = _named(kind, name)
    if subresource:
        details["kind"] = f"{kind.plural}/{subresource}"
    return Refused(409, f'Operation cannot be fulfilled on {what} "{name}": {why}', "Conflict", details)


def precondition(kind: Kind, name: str, why: str) -> Refused:
    """A DELETE whose precondition fails: its details name the kind, where all others name the resource."""
    qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    message = f'Operation cannot be fulfilled on {qualified} "{name}": {why}'
    return Refused(409, message, "Conflict", _named(kind, name) | {"kind": kind.kind})


def bad_request(message: str) -> Refused:
    return Refused(400, message, "BadRequest")


def unsupported_media_type(accepted: str) -> Refused:
    return Refused(
        415,
        f"the body of the request was in an unknown format - accepted media types include: {accepted}",
        "UnsupportedMediaType",
    )


def invalid(kind: str, group: str, name: str, causes: list[tuple[str, str, str]]) -> Refused:
    """causes: (reason, message, field)."""
    messages = [f"{field}: {message}" for _, message, field in causes]
    words = messages[0] if len(messages) == 1 else "[" + ", ".join(messages) + "]"
    qualified = f"{kind}.{group}" if group else kind
    details: dict[str, Any] = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = kind
    details["causes"] = [{"reason": reason, "message": message, "field": field} for reason, message, field in causes]
    return Refused(422, f'{qualified} "{name}" is invalid: {words}', "Invalid", details)


def expired(message: str, fresh_token: str = "") -> Refused:
    return Refused(410, message, "Expired", metadata={"continue": fresh_token} if fresh_token else {})


def future_revision(asked: int, current: int) -> Refused:
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return Refused(
        504,
        f"Timeout: Too large resource version: {asked}, current: {current}",
        "Timeout",
        {"causes": causes, "retryAfterSeconds": 1},
        headers={"Retry-After": "1"},
    )


def too_large(limit: int) -> Refused:
    return Refused(413, f"Request entity too large: limit is {limit}", "RequestEntityTooLarge")


def unauthorized() -> Refused:
    return Refused(401, "Unauthorized", "Unauthorized")


def forbidden(user: str, verb: str, kind: Kind, *, subresource: str, namespace: str, name: str) -> Refused:
    resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
    scope = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    subject = f'{kind.qualified} "{name}"' if name else kind.qualified
    details = _named(kind, name)
    if not name:
        del details["name"]
    return Refused(
        403,
        f'{subject} is forbidden: User "{user}" cannot {verb} resource "{resource}" '
        f'in API group "{kind.group}" {scope}',
        "Forbidden",
        details,
    )


def apply_conflict(taken: list[tuple[str, tuple[str, ...]]]) -> Refused:
    """taken: other owners, and the paths of their fields."""
    causes = [
        {"reason": "FieldManagerConflict", "message": f'conflict with "{owner}"', "field": "." + ".".join(path)}
        for owner, path in taken
    ]
    shown = "; ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
    plural = "s" * (len(taken) > 1)
    return Refused(409, f"Apply failed with {len(taken)} conflict{plural}: {shown}", "Conflict", {"causes": causes})
