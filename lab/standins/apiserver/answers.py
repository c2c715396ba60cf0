"""From a request to its answer: which kind, who asks, whether they may, and who answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lab.standins.apiserver.access import Access
from lab.standins.apiserver.model import kinds, refusals, requests
from lab.standins.apiserver.model.requests import ANONYMOUS, Request, User
from lab.standins.apiserver.objects import bodies, evictions, reading, writing
from lab.standins.apiserver.objects.store import Store, compact
from lab.standins.apiserver.tokens import Tokens

_PLAIN = "text/plain; charset=utf-8"
_VERSION = {"major": "1", "minor": "34", "gitVersion": "v1.34.9", "platform": "linux/amd64"}

_CORE = {
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [
        {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["create", "get", "list"]},
        {
            "name": "pods/eviction", "singularName": "", "namespaced": True, "group": "policy", "version": "v1",
            "kind": "Eviction", "verbs": ["create"],
        },
    ],
}  # fmt: skip
"""Discovery of the core API, reduced to what is asked for."""


class Answers:
    """Everything but watches."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.tokens = Tokens(store)
        self.access = Access()
        self._kinds = {(kind.group, kind.version, kind.plural): kind for kind in kinds.BUILT_IN}

    def kind(self, api_version: str, plural: str) -> kinds.Kind:
        group, _, version = api_version.rpartition("/")
        return self._kinds[group, version, plural]

    def serve(self, definition: Mapping[str, Any]) -> None:
        """The kinds of a CustomResourceDefinition."""
        for kind in kinds.from_definition(definition):
            self._kinds[kind.group, kind.version, kind.plural] = kind

    def plain(self, method: str, path: str) -> tuple[int, bytes, str] | None:
        """Health, version, and everything that is no API path."""
        where = path.partition("?")[0].rstrip("/")
        if where in ("/readyz", "/livez", "/healthz"):
            return 200, b"ok", _PLAIN
        if where == "/version":
            return 200, json.dumps(_VERSION, indent=2).encode(), "application/json"
        if where == "/api/v1" and method == "GET":
            return 200, json.dumps(_CORE).encode(), "application/json"
        if method == "GET" and (found := self._discovered(where)) is not None:
            return 200, json.dumps(found).encode(), "application/json"
        if requests.target(path) is None:
            raise refusals.page_not_found()
        if method == "HEAD":
            raise refusals.method_not_allowed()
        return None

    def _discovered(self, where: str) -> dict[str, Any] | None:
        """Which groups there are, or what is in a version of one."""
        versions = {(group, version) for group, version, _ in self._kinds if group}
        if where == "/apis":
            groups = [
                {
                    "name": group,
                    "versions": [
                        {"groupVersion": f"{group}/{version}", "version": version}
                        for of, version in sorted(versions)
                        if of == group
                    ],
                }
                for group in sorted({group for group, _ in versions})
            ]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        root, _, named = where.partition("/apis/")
        group, _, version = named.partition("/")
        if root or (group, version) not in versions:
            return None
        there = [kind for kind in self._kinds.values() if (kind.group, kind.version) == (group, version)]
        resources = [
            {"name": kind.plural, "singularName": kind.kind.lower(), "namespaced": kind.namespaced, "kind": kind.kind}
            for kind in there
        ]
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}",
            "resources": [{**each, "verbs": ["get", "list", "watch"]} for each in resources],
        }

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes, at: float) -> Request:
        target = requests.target(path)
        assert target is not None
        kind = self._kinds.get((target.group, target.version, target.plural))
        if kind is None:
            known = any(group == target.group and version == target.version for group, version, _ in self._kinds)
            raise refusals.no_such_resource() if known else refusals.page_not_found()
        user = self._user(headers.get("authorization", ""))
        if target.subresource and target.subresource not in kind.subresources:
            raise refusals.no_such_resource()
        return Request(
            method=method,
            path=path,
            query=requests.query(path),
            headers=headers,
            body=body,
            kind=kind,
            namespace=target.namespace,
            name=target.name,
            subresource=target.subresource,
            user=user,
            at=at,
        )

    def authorise(self, request: Request) -> None:
        self.access.check(request)
        if self._makes(request):
            self.access.check(replace(request, method="POST"))
        if request.subresource == "proxy":
            return
        if request.headers.get("accept", "*/*").partition("/")[0] not in ("application", "*"):
            accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
            message = f"only the following media types are accepted: {accepted}"
            raise refusals.Refused(406, message, "NotAcceptable")

    def _makes(self, request: Request) -> bool:
        """Whether it is a server-side apply of what is not there yet, which takes the right to create, too."""
        applied = request.method == "PATCH" and request.content_type == bodies.APPLY and not request.subresource
        return applied and self.store.get(request.kind, (request.namespace, request.name)) is None

    def answer(self, request: Request) -> writing.Result:
        plural, post = request.kind.plural, request.method == "POST"
        if plural == "tokenreviews" and post:
            return 201, compact(self.tokens.review(request)) + b"\n"
        if plural == "subjectaccessreviews" and post:
            body = bodies.whole_object(request)
            return 201, compact({**body, "status": self.access.review(body["spec"])}) + b"\n"
        if request.subresource == "token" and post:
            return 201, compact(self.tokens.request(request)) + b"\n"
        if post and (request.subresource == "binding" or plural == "bindings"):
            return writing.bind(self.store, request)
        if post and request.subresource == "eviction":
            return 201, evictions.evict(self.store, request)
        if request.method == "GET" and plural not in kinds.UNSTORED:
            if request.name:
                return 200, reading.get(self.store, request).text + b"\n"
            return 200, reading.list_text(self.store, request)
        write = _WRITES.get((request.method, bool(request.name)))
        if write is None or plural in kinds.UNSTORED or request.subresource not in ("", "status"):
            raise refusals.method_not_allowed()
        with self.store.changed:
            return write(self.store, request)

    def _user(self, authorization: str) -> User:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return ANONYMOUS
        user = self.tokens.user(token.strip())
        if user is None:
            raise refusals.unauthorized()
        return user


_WRITES: Mapping[tuple[str, bool], Callable[[Store, Request], writing.Result]] = {
    ("POST", False): writing.create,
    ("PUT", True): writing.update,
    ("PATCH", True): writing.patch,
    ("DELETE", True): writing.delete,
}
