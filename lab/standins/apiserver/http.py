"""The HTTP side: connections, framing, chunks. What is answered is decided elsewhere."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lab.standins.apiserver.behind import EXEC_PROTOCOL, Passed, accepted
from lab.standins.apiserver.exchange import Exchange
from lab.standins.apiserver.faults import Answer, Cut, Fault, Order, Send, Stall
from lab.standins.apiserver.model import refusals
from lab.standins.apiserver.objects.writing import LARGEST_BODY
from lab.standins.apiserver.watching import Watch

SHORTEST_CHUNKED = 2048
"""Bodies from this size on are chunked, smaller ones have a Content-Length (recorded: 1,861 bytes with, 2,048 without).
"""

_CHUNK = 64 * 1024
_PLAIN = "text/plain; charset=utf-8"


class Listener(ThreadingHTTPServer):
    """A thread for each connection; all of them can be closed at once."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], api: Exchange, tls: ssl.SSLContext | None) -> None:
        self.api = api
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, Handler)
        if tls is not None:
            # The handshake is for the connection's own thread.
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is nothing to report."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def cut(self, connection: socket.socket, *, reset: bool) -> None:
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        else:
            connection.shutdown(socket.SHUT_RDWR)

    def cut_all(self) -> None:
        with self._lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024
    server: Listener

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class' signature
        """Requests are kept by the server, not logged."""

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_GET  # noqa: N815 - the base class looks them up so

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > LARGEST_BODY:
            self._discard(length)
            self._send_status(refusals.too_large(LARGEST_BODY))
            return
        body = self.rfile.read(length) if length else b""
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            self._answer(headers, body)
        except refusals.Refused as refused:
            self._send_status(refused)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _discard(self, length: int) -> None:
        """A client that is not read to the end would see its connection break, and not the answer."""
        while length > 0 and (data := self.rfile.read(min(length, _CHUNK))):
            length -= len(data)

    def _answer(self, headers: Mapping[str, str], body: bytes) -> None:
        api = self.server.api
        plain = api.answers.plain(self.command, self.path)
        if plain is not None:
            code, text, content_type = plain
            self._send(code, text, {"Content-Type": content_type})
            return
        request = api.answers.request(self.command, self.path, headers, body, time.monotonic())
        api.received(request)
        order = api.faults.take(request)
        if order is not None and not (request.verb == "watch" and not isinstance(order.fault, Answer)):
            self._break(order.fault)
            return
        api.answers.authorise(request)
        if request.verb == "watch":
            self._watch(api.watch(request), order)
            return
        if request.subresource == "exec":
            self._exec(api.behind.frames(api.store, request))
            return
        proxied = request.subresource in ("proxy", "log")
        result: Passed = api.behind.passed(api.store, request) if proxied else (*api.answers.answer(request), {})
        code, content, more = result
        api.carried_out(request)
        if isinstance(content, bytes):
            self._send(code, content, more)
        else:
            self._send_parts(code, content, more)

    def _exec(self, frames: bytes) -> None:
        self.send_response_only(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", accepted(self.headers["Sec-WebSocket-Key"]))
        self.send_header("Sec-WebSocket-Protocol", EXEC_PROTOCOL)
        self.end_headers()
        self.wfile.write(frames)
        self.wfile.flush()
        self.close_connection = True

    def _watch(self, watch: Watch, order: Order | None) -> None:
        self.send_response_only(200)
        self._common_headers({"Content-Type": "application/json", "Transfer-Encoding": "chunked"})
        self.end_headers()
        self.wfile.flush()
        sent = 0
        try:
            if order is not None and order.after == 0:
                watch.fault = order.fault
            for batch in watch:
                for frame in batch:
                    self._chunk(frame)
                    sent += 1
                    if order is not None and sent >= order.after:
                        watch.fault = order.fault
                        break
                self.wfile.flush()
            if watch.fault is None or isinstance(watch.fault, Send):
                if isinstance(watch.fault, Send):
                    self._chunk(watch.fault.frame)
                self._chunk(b"")
                self.wfile.flush()
            else:
                self._break(watch.fault)
        finally:
            self.server.api.watch_over(watch)

    def _break(self, fault: Fault) -> None:
        if isinstance(fault, Answer):
            self._send(fault.code, fault.body, {"Content-Type": "application/json", **fault.headers})
        elif isinstance(fault, Cut):
            self.close_connection = True
            self.wfile.flush()
            self.server.cut(self.connection, reset=fault.reset)
        elif isinstance(fault, Stall):
            self.close_connection = True
            self.wfile.flush()
            self.server.api.stalled()

    def _send_status(self, refused: refusals.Refused) -> None:
        if refused.text:
            self._send(refused.code, refused.message.encode() + b"\n", {"Content-Type": _PLAIN, **refused.headers})
            return
        text = json.dumps(refused.status(), separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
        self._send(refused.code, text, {"Content-Type": "application/json", **refused.headers})

    def _send(self, code: int, text: bytes, headers: Mapping[str, str]) -> None:
        self.send_response_only(code)
        chunked = len(text) >= SHORTEST_CHUNKED
        framing = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(len(text))}
        self._common_headers({"Content-Type": "application/json", **headers, **framing})
        self.end_headers()
        if chunked:
            for at in range(0, len(text), _CHUNK):
                self._chunk(text[at : at + _CHUNK])
            self._chunk(b"")
        elif self.command != "HEAD":
            self.wfile.write(text)
        self.wfile.flush()

    def _send_parts(self, code: int, parts: Iterator[bytes], headers: Mapping[str, str]) -> None:
        self.send_response_only(code)
        self._common_headers({**headers, "Transfer-Encoding": "chunked"})
        self.end_headers()
        for part in parts:
            self._chunk(part)
            self.wfile.flush()
        self._chunk(b"")
        self.wfile.flush()

    def _common_headers(self, more: Mapping[str, str]) -> None:
        self.send_header("Audit-Id", str(uuid.uuid4()))
        self.send_header("Cache-Control", "no-cache, private")
        for name, value in more.items():
            self.send_header(name, value)
        self.send_header("Date", self.date_time_string())

    def _chunk(self, text: bytes) -> None:
        self.wfile.write(f"{len(text):x}\r\n".encode() + text + b"\r\n")
