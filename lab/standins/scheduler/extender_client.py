"""kube-scheduler's side of the extender/v1 wire: POST, capitalised keys, an explicit null for what is unused, one
connection kept alive.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


class ExtenderError(RuntimeError):
    """The extender did not answer as the protocol asks."""


@dataclass(slots=True)
class ExtenderClient:
    """nodeCacheCapable: only names of nodes are sent. timeout_s: kube-scheduler's httpTimeout."""

    address: str
    timeout_s: float = 2.0
    _connection: http.client.HTTPConnection | None = field(default=None, repr=False)

    def filter(self, pod: Mapping[str, Any], nodes: Sequence[str]) -> list[str]:
        """The nodes that remain."""
        answer = self._post("/filter", pod, nodes)
        if answer.get("Error"):
            raise ExtenderError(answer["Error"])
        return list(answer["NodeNames"])

    def prioritize(self, pod: Mapping[str, Any], nodes: Sequence[str]) -> dict[str, int]:
        """Scores from 0 to 10 by node."""
        return {row["Host"]: row["Score"] for row in self._post("/prioritize", pod, nodes)}

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _post(self, path: str, pod: Mapping[str, Any], nodes: Sequence[str]) -> Any:
        body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": list(nodes)})
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self.address, timeout=self.timeout_s)
        self._connection.request(
            "POST", path, body, {"Content-Type": "application/json", "User-Agent": "Go-http-client/1.1"}
        )
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise ExtenderError(f"{path}: {answer.status} {text[:200]!r}")
        return json.loads(text)
