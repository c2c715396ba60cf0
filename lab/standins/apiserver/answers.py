"""From a request to its answer: which kind, who asks, whether they may, and who answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lab.standins.apiserver.access import Access
from lab.standins.apiserver.model import definitions, kinds, refusals, requests
from lab.standins.apiserver.model.requests import ANONYMOUS, Request, User
from lab.standins.apiserver.objects import bodies, patches, reading, writing
from lab.standins.apiserver.objects.store import Store
from lab.standins.apiserver.tokens import Tokens

_PLAIN = "text/plain; charset=utf-8"
_VERSION = {"major": "1", "minor": "34", "gitVersion": "v1.34.9", "platform": "linux/amd64"}


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

    def _serve(self, definition: Mapping[str, Any]) -> None:
        for kind in kinds.from_definition(definition):
            self._kinds[kind.group, kind.version, kind.plural] = kind

    def plain(self, method: str, path: str) -> tuple[int, bytes, str] | None:
        """Health, version, and everything that is no API path."""
        where = path.partition("?")[0].rstrip("/")
        if where in ("/readyz", "/livez", "/healthz"):
            return 200, b"ok", _PLAIN
        if where == "/version":
            return 200, json.dumps(_VERSION, indent=2).encode(), "application/json"
        if requests.target(path) is None:
            raise refusals.page_not_found()
        if method == "HEAD":
            raise refusals.method_not_allowed()
        return None

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
        applied = request.method == "PATCH" and request.content_type == patches.APPLY and not request.subresource
        return applied and self.store.get(request.kind, (request.namespace, request.name)) is None

    def answer(self, request: Request) -> writing.Result:
        if request.kind.plural == "tokenreviews" and request.method == "POST":
            _, warning = bodies.pruned(request, bodies.whole_object(request))
            return 201, _line(self.tokens.review(request)), warning
        if request.kind.plural == "subjectaccessreviews" and request.method == "POST":
            body = bodies.whole_object(request)
            _, warning = bodies.pruned(request, body)
            return 201, _line({**body, "status": self.access.review(body["spec"])}), warning
        if request.subresource == "token" and request.method == "POST":
            return 201, _line(self.tokens.request(request)), {}
        if request.method == "POST" and (request.subresource == "binding" or request.kind.plural == "bindings"):
            return writing.bind(self.store, request)
        if request.method == "GET" and request.kind.plural not in kinds.UNSTORED:
            text = (
                reading.get(self.store, request).text + b"\n"
                if request.name
                else reading.list_text(self.store, request)
            )
            return 200, text, {}
        write = _WRITES.get((request.method, bool(request.name)))
        if write is None or request.kind.plural in kinds.UNSTORED or request.subresource not in ("", "status"):
            raise refusals.method_not_allowed()
        with self.store.changed:
            result = write(self.store, request)
            if request.kind.kind == definitions.KIND and request.method != "DELETE":
                self._serve(json.loads(result[1]))
            return result

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


def _line(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"
