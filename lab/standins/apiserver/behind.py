"""What is behind the API server: services and pods that it passes requests on to, programs that it starts in pods."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import json
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lab.standins.apiserver.model import refusals
from lab.standins.apiserver.model.requests import Request
from lab.standins.apiserver.objects.store import Store

DROPPED = ("authorization", "host", "connection", "content-length", "transfer-encoding", "accept-encoding")
"""Headers of the client that its backend does not get. Who asks stays between the client and the API server."""

BACKEND_S = 60.0

EXEC_PROTOCOL = "v4.channel.k8s.io"
_STDOUT, _STDERR, _ERROR = 1, 2, 3
_MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""Of RFC 6455."""

MISMATCH = {
    "https": "tls: first record does not look like a TLS handshake",
    "http": 'net/http: HTTP/1.x transport connection broken: malformed HTTP response "\\x15\\x03\\x01"',
}
"""kube-apiserver's message for a backend with the other protocol; the first as 1.20 answers, with status 500."""

Program = Callable[[Sequence[str]], "subprocess.CompletedProcess[bytes]"]
Passed = tuple[int, bytes | Iterator[bytes], Mapping[str, str]]
"""Status, body and headers of an answer; the body of one without an end, as its parts come."""


@dataclass(slots=True)
class Behind:
    """backends: by resource, namespace, name and port, a URL. programs: by namespace and pod, what `exec` runs. logs:
    what the pods' containers have printed.
    """

    backends: dict[tuple[str, str, str, str], str] = field(default_factory=dict)
    programs: dict[tuple[str, str], Program] = field(default_factory=dict)
    logs: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def passed(self, store: Store, request: Request) -> Passed:
        """A pod's log, or the backend's answer to a path such as .../services/https:NAME:PORT/proxy/PATH."""
        if request.subresource == "log":
            return 200, self.logs.get((request.namespace, request.name), b""), {"Content-Type": "text/plain"}
        scheme, name, port = _named(request.name)
        if store.get(request.kind, (request.namespace, name)) is None:
            raise refusals.not_found(request.kind, name)
        url = self.backends.get((request.kind.plural, request.namespace, name, port))
        if url is None:
            raise refusals.unavailable(f'no endpoints available for service "{name}"')
        if urlsplit(url).scheme != scheme:
            raise refusals.Refused(500, f"error trying to reach service: {MISMATCH[scheme]}")
        path = request.path.partition("/proxy")[2]
        headers = {key: value for key, value in request.headers.items() if key not in DROPPED}
        try:
            connection = _connection(url)
            connection.request(request.method, path or "/", request.body or None, headers)
            answer = connection.getresponse()
            content_type = answer.headers.get("Content-Type", "")
            if content_type.startswith("text/event-stream"):
                return answer.status, _parts(connection, answer), {"Content-Type": content_type}
            content = answer.read()
            connection.close()
        except (OSError, http.client.HTTPException) as bad:
            raise refusals.unavailable(f"error trying to reach service: {bad}") from bad
        return answer.status, content, {"Content-Type": content_type}

    def frames(self, store: Store, request: Request) -> bytes:
        """The output of a program that ran in a pod, as frames of a web socket."""
        if store.get(request.kind, (request.namespace, request.name)) is None:
            raise refusals.not_found(request.kind, request.name)
        program = self.programs.get((request.namespace, request.name))
        if program is None:
            raise refusals.bad_request(f"pod {request.name} does not have a host assigned")
        done = program(parse_qs(urlsplit(request.path).query).get("command", []))
        channels = ((_STDOUT, done.stdout), (_STDERR, done.stderr), (_ERROR, _status(done.returncode)))
        return b"".join(_frame(0x2, bytes([channel]) + data) for channel, data in channels if data) + _frame(
            0x8, b"\x03\xe8"
        )


def _connection(url: str) -> http.client.HTTPConnection:
    """The API server's proxy does not verify the backend's certificate."""
    parts = urlsplit(url)
    if parts.scheme == "http":
        return http.client.HTTPConnection(parts.netloc, timeout=BACKEND_S)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(parts.netloc, timeout=BACKEND_S, context=context)


def _parts(connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> Iterator[bytes]:
    with contextlib.closing(connection):
        yield from iter(answer.read1, b"")


def accepted(key: str) -> str:
    """The answer to Sec-WebSocket-Key."""
    return base64.b64encode(hashlib.sha1((key + _MAGIC).encode()).digest()).decode()


def _named(name: str) -> tuple[str, str, str]:
    """Scheme, name and port of NAME, NAME:PORT or SCHEME:NAME:PORT."""
    parts = name.split(":")
    if len(parts) == 3:
        return parts[0] or "http", parts[1], parts[2]
    return "http", parts[0], parts[1] if len(parts) == 2 else ""


def _frame(opcode: int, data: bytes) -> bytes:
    size = len(data)
    if size < 126:
        length = bytes([size])
    elif size < 1 << 16:
        length = b"\x7e" + size.to_bytes(2)
    else:
        length = b"\x7f" + size.to_bytes(8)
    return bytes([0x80 | opcode]) + length + data


def _status(code: int) -> bytes:
    if code == 0:
        return json.dumps({"metadata": {}, "status": "Success"}).encode()
    cause: dict[str, Any] = {"reason": "ExitCode", "message": str(code)}
    status = {"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": [cause]}}
    return json.dumps(status | {"message": f"command terminated with non-zero exit code: exit status {code}"}).encode()
