"""Exchanges recorded from a real kube-apiserver 1.34, replayed against the stand-in.

What the real one made up itself (uids, revisions, tokens) is learned from pairs of answers, and put into the requests that follow.
"""

from __future__ import annotations

import http.client
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lab.standins.patience import PATIENCE_S

RECORDINGS = Path(__file__).parents[3] / "recordings" / "kube-apiserver"

_LEARNED = frozenset({"uid", "resourceVersion", "continue", "token", "name", "generateName"})
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def exchanges(case: str) -> list[dict[str, Any]]:
    return json.loads((RECORDINGS / f"{case}.json").read_text())["exchanges"]


@dataclass
class Replay:
    """Sends recorded requests to the stand-in; `known` maps what the real server made up to what the stand-in did."""

    url: str
    known: dict[str, str] = field(default_factory=dict)

    def send(self, exchange: dict[str, Any]) -> tuple[Any, Any]:
        """The stand-in's answer and the recorded one, each as (code, body), ready to be compared."""
        request, recorded = exchange["request"], exchange["response"]
        where = urlsplit(self.url)
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=PATIENCE_S)
        headers = {name: value for name, value in request["headers"] if name != "Content-Length"}
        headers["Authorization"] = headers.get("Authorization", "").replace("admintoken", "admin-token")
        body = self._known_in(request["body"])
        connection.request(request["method"], self._known_in(request["path"]), body or None, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if "frames" in recorded:
            frames = [json.loads(line) for line in text.splitlines()]
            wanted = [entry["data"] for entry in recorded["frames"]]
            return (answer.status, [_frame(frame) for frame in frames]), (
                recorded["status"],
                [_frame(entry) for entry in wanted],
            )
        got = json.loads(text) if answer.getheader("Content-Type") == "application/json" else text.decode()
        self._learn(recorded["body"], got)
        return (answer.status, plain(got)), (recorded["status"], plain(recorded["body"]))

    def _known_in(self, text: str) -> str:
        for real, ours in sorted(self.known.items(), key=lambda entry: -len(entry[0])):
            if len(real) > 8:
                text = text.replace(real, ours)
            else:
                text = re.sub(rf'((?:resourceVersion"?[=:]"?)){re.escape(real)}\b', rf"\g<1>{ours}", text)
        return text

    def _learn(self, real: Any, ours: Any) -> None:
        if isinstance(real, dict) and isinstance(ours, dict):
            for key in real.keys() & ours.keys():
                if key in _LEARNED and isinstance(real[key], str) and isinstance(ours[key], str):
                    if real[key] != ours[key] or key == "resourceVersion":
                        self.known[real[key]] = ours[key]
                else:
                    self._learn(real[key], ours[key])
        elif isinstance(real, list) and isinstance(ours, list):
            for first, other in zip(real, ours, strict=False):
                self._learn(first, other)


def plain(body: Any) -> Any:
    """Without what differs from run to run, and without the words of parsers."""
    if isinstance(body, dict) and body.get("kind") == "Pod" and "spec" in body:
        return _pod(body)
    if isinstance(body, dict):
        owned = body.get("apiVersion", "").partition("/")[0] not in _BUILT_IN
        kept = {key: plain(value) for key, value in body.items() if key not in _VARYING}
        if isinstance(kept.get("metadata"), dict) and not owned:
            kept["metadata"].pop("managedFields", None)
        if isinstance(kept.get("causes"), list):
            kept["causes"].sort(key=lambda cause: cause["field"])
        return kept
    if isinstance(body, list):
        return [plain(entry) for entry in body]
    if isinstance(body, str):
        text = _PARSER.sub(r"\1...", _UID.sub("UID", _TIME.sub("TIME", body)))
        text = re.sub(r"\[(.*)\]$", lambda all_: "[" + ", ".join(sorted(all_[1].split(", "))) + "]", text)
        return re.sub(r"\b\d{2,}\b", "N", re.sub(r"^(web-1\.)[a-z0-9]{5}$", r"\1XXXXX", text))
    return body


_VARYING = frozenset(
    {"resourceVersion", "uid", "continue", "time", "token", "expirationTimestamp", "creationTimestamp"}
)
_BUILT_IN = ("v1", "coordination.k8s.io", "authentication.k8s.io")
_PARSER = re.compile(r"(json parse error: |JSON: yaml: |cannot parse |handled as a Pod: ).*")


def _pod(pod: dict[str, Any]) -> dict[str, Any]:
    """What the stand-in says of a pod too: who it is, where it is bound, and whether it is going."""
    metadata = {key: pod["metadata"].get(key) for key in _POD_METADATA}
    annotations = pod["metadata"].get("annotations") or {}
    return {**metadata, "annotations": plain(annotations), "node": pod["spec"].get("nodeName")}


_POD_METADATA = ("name", "namespace", "generation", "deletionGracePeriodSeconds", "finalizers")


def _frame(first: dict[str, Any]) -> tuple[str, str, str]:
    shown = first["object"]
    return first["type"], shown["kind"], shown["metadata"].get("name", shown.get("reason", ""))
