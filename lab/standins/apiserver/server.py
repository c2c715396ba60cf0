"""The stand-in API server: start it, fill it, break it, ask what was asked of it."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import yaml

from lab.standins.apiserver import faults
from lab.standins.apiserver.exchange import Exchange
from lab.standins.apiserver.faults import Order
from lab.standins.apiserver.http import Listener
from lab.standins.apiserver.model import refusals
from lab.standins.apiserver.model.requests import Request, User
from lab.standins.apiserver.objects import pods
from lab.standins.apiserver.tokens import Tokens

ADMIN_TOKEN = "admin-token"
NAMESPACES = ("default", "kube-system", "numakin-system")

_ADMIN = User("admin", ("system:masters", "system:authenticated"))


class ApiServer(Exchange):
    """A context manager: listening inside, closed after. `url` is where; `kubeconfig(path)` writes how, without TLS.

    Objects live in `store`; `create`, `create_pod`, `create_node`, `bind` and `delete` change them without HTTP, with
    the same rules and the same events. `order` and `break_watches` bring faults. `asked` is every request so far.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self._scheme = "http" if tls is None else "https"
        self._listener = Listener(("127.0.0.1", 0), self, tls)
        self._thread = threading.Thread(
            target=self._listener.serve_forever, args=(0.05,), name="apiserver", daemon=True
        )
        self.tokens.static[ADMIN_TOKEN] = _ADMIN
        for namespace in NAMESPACES:
            self.create("v1", "namespaces", {"metadata": {"name": namespace}})

    @property
    def tokens(self) -> Tokens:
        return self.answers.tokens

    @property
    def url(self) -> str:
        host, port = self._listener.server_address[:2]
        return f"{self._scheme}://{host!s}:{port}"

    def start(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        """Stops listening and ends every watch and connection."""
        self.closing.set()
        for watch in self.open_watches():
            watch.end()
        self._listener.shutdown()
        self._listener.server_close()
        self._listener.cut_all()
        self._thread.join(10)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def kubeconfig(self, path: Path, token: str = ADMIN_TOKEN, namespace: str = "default") -> Path:
        """Writes a kubeconfig for this server; returns its path."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "standin", "cluster": {"server": self.url}}],
            "users": [{"name": "standin", "user": {"token": token}}],
            "contexts": [
                {"name": "standin", "context": {"cluster": "standin", "user": "standin", "namespace": namespace}}
            ],
            "current-context": "standin",
        }
        path.write_text(yaml.safe_dump(config))
        return path

    def define(self, definition: Mapping[str, Any]) -> None:
        """Serves the kinds of a CustomResourceDefinition, whatever its schema says."""
        self.answers.serve(definition)

    def grant(self, user: str, rules: Iterable[Mapping[str, Any]], namespace: str = "") -> str:
        """Lets a user do what these RBAC rules allow (in one namespace, when given); returns a token of that user."""
        self.answers.access.grant(user, rules, namespace)
        token = f"{user}-token"
        self.tokens.static[token] = User(user)
        return token

    def order(self, fault: faults.Fault, verb: str = "", resource: str = "", *, times: int = 1, after: int = 0) -> None:
        """A fault for the next requests of that kind; see faults.Order."""
        self.faults.add(Order(fault, verb, resource, times, after))

    def end_faults(self) -> None:
        """Ends the faults that were ordered and are not used up."""
        self.faults.clear()

    def break_watches(self, fault: faults.Fault, resource: str = "") -> int:
        """Breaks the open watches (of that resource); returns how many."""
        broken = self.open_watches(resource)
        for watch in broken:
            watch.break_with(fault)
        return len(broken)

    def bookmark(self) -> None:
        """A bookmark now, to each open watch that asked for bookmarks."""
        for watch in self.open_watches():
            watch.bookmark()

    def create(self, api_version: str, plural: str, body: dict[str, Any], namespace: str = "") -> dict[str, Any]:
        return self._local("POST", api_version, plural, namespace=namespace, body=body)

    def delete(
        self, api_version: str, plural: str, name: str, namespace: str = "", *, grace_s: int | None = None
    ) -> dict[str, Any]:
        options = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        return self._local("DELETE", api_version, plural, namespace=namespace, name=name, body=options)

    def patch(
        self,
        api_version: str,
        plural: str,
        name: str,
        patch: dict[str, Any],
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> dict[str, Any]:
        """A merge patch."""
        return self._local(
            "PATCH", api_version, plural, namespace=namespace, name=name, subresource=subresource, body=patch
        )

    def get(self, api_version: str, plural: str, name: str, namespace: str = "") -> dict[str, Any]:
        return self._local("GET", api_version, plural, namespace=namespace, name=name)

    def create_node(self, name: str, **body: Any) -> dict[str, Any]:
        return self.create("v1", "nodes", {"metadata": {"name": name}, **body})

    def create_pod(
        self,
        name: str,
        namespace: str = "default",
        *,
        annotations: Mapping[str, str] | None = None,
        containers: list[dict[str, Any]] | None = None,
        owner: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> dict[str, Any]:
        """A pod; its namespace is made when it is not there."""
        if self.store.get(pods.NAMESPACE, ("", namespace)) is None:
            self.create("v1", "namespaces", {"metadata": {"name": namespace}})
        metadata: dict[str, Any] = {"name": name, "annotations": dict(annotations or {}), "labels": dict(labels or {})}
        if owner:
            metadata["ownerReferences"] = [{"controller": True, **owner}]
        containers = containers or [{"name": "main", "image": "example.invalid/app:1"}]
        return self.create("v1", "pods", {"metadata": metadata, "spec": {"containers": containers, **spec}}, namespace)

    def bind(self, name: str, node: str, namespace: str = "default") -> None:
        body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        self._local("POST", "v1", "pods", namespace=namespace, name=name, subresource="binding", body=body)

    def set_phase(self, name: str, phase: str, namespace: str = "default", **status: Any) -> None:
        self.patch(
            "v1", "pods", name, {"status": {"phase": phase, **status}}, namespace=namespace, subresource="status"
        )

    def token_for(self, namespace: str, account: str, audience: str, pod: str) -> str:
        """A service account's token, for that audience, bound to a pod of the namespace."""
        stored = self.store.get(pods.KIND, (namespace, pod))
        if stored is None:
            raise refusals.not_found(pods.KIND, pod)
        return self.tokens.make(namespace, account, (audience,), bound=(pods.KIND, stored))

    def _local(
        self,
        method: str,
        api_version: str,
        plural: str,
        *,
        namespace: str = "",
        name: str = "",
        subresource: str = "",
        body: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        request = Request(
            method=method,
            path="",
            query={},
            headers={"content-type": "application/merge-patch+json" if method == "PATCH" else "application/json"},
            body=json.dumps(body).encode() if body else b"",
            kind=self.answers.kind(api_version, plural),
            namespace=namespace,
            name=name,
            subresource=subresource,
            user=_ADMIN,
            at=time.monotonic(),
        )
        result: dict[str, Any] = json.loads(self.answers.answer(request)[1])
        return result
