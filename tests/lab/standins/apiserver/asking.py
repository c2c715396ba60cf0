"""Requests to the stand-in API server, and what came of them."""

import http.client
import json
from contextlib import closing
from typing import Any
from urllib.parse import urlencode, urlsplit

from lab.standins.apiserver import ApiServer
from lab.standins.patience import PATIENCE_S

WEB = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "main", "image": "example.invalid/web:1"}]}}


def asked(
    server: ApiServer, path: str, method: str = "GET", body: bytes | None = None, **query: str
) -> tuple[int, Any, Any]:
    """Code, body (frames of a watch as a list) and headers."""
    where = urlsplit(server.url)
    headers = {"Authorization": "Bearer admin-token", "Content-Type": "application/json"}
    with closing(http.client.HTTPConnection(where.hostname, where.port, timeout=PATIENCE_S)) as connection:
        connection.request(method, f"{path}?{urlencode(query)}" if query else path, body, headers)
        with connection.getresponse() as answer:
            text = answer.read()
    if "watch" in query and answer.status == 200:
        return 200, [json.loads(line) for line in text.splitlines()], answer.headers
    return answer.status, json.loads(text) if text.startswith(b"{") else text, answer.headers


def told(frames: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(frame["type"], frame["object"]["metadata"].get("name", "")) for frame in frames]


def pods(server: ApiServer, *names: str, **labels: str) -> None:
    for name in names:
        server.create_pod(name, labels=labels)
