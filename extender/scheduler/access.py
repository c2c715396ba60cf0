"""Who may ask what over HTTP: kube-scheduler by its certificate, people by a token of the API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from flask import Flask, Response, request

from extender.kube.api import Unreachable
from extender.kube.readers import TOKEN_HEADER, Forbidden, Readers, Unknown
from numakin.process.log import Log

NAMESPACED = frozenset({"/api/v1/explain"})
"""Paths whose answer is about the namespace in their query."""

_log = Log("access")


def common_name(certificate: Mapping[str, Any]) -> str:
    """Of `ssl.SSLSocket.getpeercert`; empty without a certificate."""
    parts = (pair for names in certificate.get("subject", ()) for pair in names)
    return next((str(value) for name, value in parts if name == "commonName"), "")


def authorise(app: Flask, readers: Readers) -> None:
    """What is below /api/ is answered only for those who may read it."""

    def check() -> Response | None:
        if not request.path.startswith("/api/"):
            return None
        namespace = request.args.get("namespace", "default") if request.path in NAMESPACED else ""
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        try:
            name = readers.check(request.headers.get(TOKEN_HEADER, "") or bearer, namespace)
        except Unknown as bad:
            return _refused(401, str(bad))
        except Forbidden as bad:
            return _refused(403, str(bad))
        except Unreachable as bad:
            return _refused(503, str(bad))
        _log.debug("read", caller=name, path=request.path, namespace=namespace)
        return None

    app.before_request(check)


def _refused(status: int, why: str) -> Response:
    return Response(msgspec.json.encode({"error": why}), status=status, mimetype="application/json")
