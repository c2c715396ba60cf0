"""What controllers, kube-scheduler and kubelets do at the API server; each thread has a connection of its own."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from lab.standins.apiserver.server import ADMIN_TOKEN

TIMEOUT_S = 30.0


class Refused(RuntimeError):
    """The API server's answer was no."""


class Kube:
    """Everything raises Refused."""

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url).netloc
        self._local = threading.local()
        self._connections: list[http.client.HTTPConnection] = []
        self._namespaces = {"default"}

    def create_pod(self, namespace: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The pod as it is stored; its namespace is made when it is not there."""
        if namespace not in self._namespaces:
            self._ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            self._namespaces.add(namespace)
        return self._ask("POST", f"/api/v1/namespaces/{namespace}/pods", body)

    def bind(self, namespace: str, pod: str, node: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        self._ask(
            "POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", {"metadata": {"name": pod}, "target": target}
        )

    def running(self, namespace: str, pod: str, ip: str) -> None:
        status = {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]}
        self._ask("PATCH", f"/api/v1/namespaces/{namespace}/pods/{pod}/status", {"status": status})

    def delete_pod(self, namespace: str, pod: str) -> None:
        """At once, as for a kubelet that has ended it."""
        self._ask("DELETE", f"/api/v1/namespaces/{namespace}/pods/{pod}", {"gracePeriodSeconds": 0})

    def delete_node(self, name: str) -> None:
        self._ask("DELETE", f"/api/v1/nodes/{name}", {})

    def learned(self) -> int:
        """Edges that the AffinityGroups hold for the next extender."""
        groups = self._ask("GET", "/apis/numakin.io/v1alpha1/affinitygroups", {})["items"]
        texts = [group.get("status", {}).get("learned") for group in groups]
        return sum(len(json.loads(text)["edges"]) for text in texts if text)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def _connected(self) -> http.client.HTTPConnection:
        if not hasattr(self._local, "connection"):
            self._local.connection = http.client.HTTPConnection(self._address, timeout=TIMEOUT_S)
            self._connections.append(self._local.connection)
        connection: http.client.HTTPConnection = self._local.connection
        return connection

    def _ask(self, method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Content-Type": kind, "Authorization": f"Bearer {ADMIN_TOKEN}"}
        connection = self._connected()
        connection.request(method, path, json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise Refused(f"{method} {path}: {answer.status} {text[:300]!r}")
        document: dict[str, Any] = json.loads(text)
        return document
