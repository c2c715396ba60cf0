"""One request, as the routes see it: which kind and object, what for, and by whom."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from lab.standins.apiserver.model import refusals
from lab.standins.apiserver.model.kinds import Kind

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
_TRUE = frozenset({"true", "1", "t", "T", "TRUE", "True"})


@dataclass(frozen=True)
class User:
    name: str
    groups: tuple[str, ...] = ("system:authenticated",)


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


@dataclass(frozen=True)
class Request:
    """`verb` is the authorisation verb (get, list, watch, create, update, patch, delete), `at` when it came in
    (monotonic).
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    kind: Kind
    namespace: str
    name: str
    subresource: str
    user: User
    at: float

    @property
    def verb(self) -> str:
        if self.method == "GET" and not self.name:
            return "watch" if self.watching else "list"
        if self.method == "DELETE" and not self.name:
            return "deletecollection"
        return _VERBS[self.method]

    @property
    def watching(self) -> bool:
        return self.flag("watch")

    def flag(self, name: str) -> bool:
        return self.query.get(name, "") in _TRUE

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip()

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError as bad:
            shown = self.body[:60].decode(errors="replace") or "<empty>"
            raise refusals.bad_request(
                f"the object provided is unrecognized (must be of type {self.kind.kind}): couldn't get version/kind; "
                f"json parse error: {bad} ({shown})"
            ) from bad


@dataclass(frozen=True)
class Target:
    """Where a path leads."""

    group: str
    version: str
    namespace: str
    plural: str
    name: str
    subresource: str


def target(path: str) -> Target | None:
    """The resource that a path names; None when it is not an API path."""
    parts = [unquote(part) for part in urlsplit(path).path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    rest += ["", ""]
    return Target(group, version, namespace, rest[0], rest[1], rest[2])


def query(path: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(path).query, keep_blank_values=True))
