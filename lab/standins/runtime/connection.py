"""One plugin's connection: calls to the plugin with a deadline, and the plugin's own calls served."""

import contextlib
import itertools
import socket
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeAlias

from google.protobuf.message import DecodeError, Message

from lab.standins.runtime import framing
from numakin.wire import ttrpc_pb2

PLUGIN_SERVICE = "nri.pkg.api.v1alpha1.Plugin"
TO_PLUGIN, TO_RUNTIME = 1, 2

UNKNOWN, UNIMPLEMENTED = 2, 12

AnswerQueue: TypeAlias = "SimpleQueue[bytes | Exception]"
"""Where a caller waits. Its first item counts."""


class StatusError(Exception):
    """A ttrpc error status, from the plugin or for it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class PluginLostError(Exception):
    """The plugin is no more: it closed, broke the wire, or let a deadline pass."""


class Connection:
    """Reads in a thread of its own, from `open()` until either side closes."""

    def __init__(
        self, sock: socket.socket, serve: Callable[[str, bytes], Message], on_close: Callable[[], None]
    ) -> None:
        self.reason = ""
        self._on_close = on_close
        self._socket = sock
        self._serve = serve
        self._streams = itertools.count(1, 2)
        self._pending: dict[int, AnswerQueue] = {}
        self._write_lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True, name="nri-plugin")

    def open(self) -> None:
        self._reader.start()

    @property
    def closed(self) -> bool:
        return bool(self.reason)

    def call(self, method: str, request: Message, timeout_s: float, *, keep_open: bool = False) -> bytes:
        """The answer's payload. Raises StatusError; PluginLostError, and the connection is closed then.

        keep_open: not when the time is over; a late answer is thrown away, and the plugin's own calls are served on.
        """
        stream = next(self._streams)
        answer: AnswerQueue = SimpleQueue()
        self._pending[stream] = answer
        body = ttrpc_pb2.Request(
            service=PLUGIN_SERVICE,
            method=method,
            payload=request.SerializeToString(),
            timeout_nano=int(timeout_s * 1e9),
            metadata=[ttrpc_pb2.KeyValue(key="containerd-namespace-ttrpc", value="k8s.io")],
        )
        try:
            if self.closed:  # checked first: after the write, a plugin may already have answered and closed
                raise PluginLostError(self.reason)
            self._write(framing.Message(TO_PLUGIN, stream, framing.REQUEST, body.SerializeToString()))
            outcome = answer.get(timeout=timeout_s)
        except Empty:
            late = f"{method}: context deadline exceeded"
            if not keep_open:
                self.close(late)
            raise PluginLostError(late) from None
        except OSError as error:
            self.close(f"{method}: {error}")
            raise PluginLostError(self.reason) from error
        finally:
            self._pending.pop(stream, None)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def close(self, reason: str) -> None:
        """Idempotent; the first reason stays."""
        self.reason = self.reason or reason
        self._on_close()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        for answer in list(self._pending.values()):
            answer.put(PluginLostError(self.reason))
        if self._reader.ident is None:
            self._socket.close()  # never opened, so no reader will
        elif threading.current_thread() is not self._reader:
            self._reader.join()

    def _write(self, message: framing.Message) -> None:
        with self._write_lock:
            self._socket.sendall(framing.write(message))

    def _read(self) -> None:
        incoming = framing.Incoming()
        try:
            while data := self._socket.recv(1 << 16):
                for message in incoming.feed(data):
                    self._take(message)
            self.close("the plugin closed the connection")
        except (OSError, framing.BrokenWireError, DecodeError) as error:
            self.close(str(error))
        self._socket.close()

    def _take(self, message: framing.Message) -> None:
        if message.connection == TO_PLUGIN and message.kind == framing.RESPONSE:
            response = ttrpc_pb2.Response.FromString(message.payload)
            answer = self._pending.get(message.stream)
            if answer is None:
                return  # late: its caller has gone
            failed = response.status.code
            answer.put(StatusError(failed, response.status.message) if failed else response.payload)
        elif message.connection == TO_RUNTIME and message.kind == framing.REQUEST:
            # As in Go, each request has a thread of its own: UpdateContainers may wait for a lock that an event
            # holds, whose answer this reader must still take.
            threading.Thread(target=self._answer, args=(message,), daemon=True).start()
        else:
            raise framing.BrokenWireError(f"a message of type {message.kind} on connection {message.connection}")

    def _answer(self, message: framing.Message) -> None:
        request = ttrpc_pb2.Request.FromString(message.payload)
        try:
            response = ttrpc_pb2.Response(payload=self._serve(request.method, request.payload).SerializeToString())
        except StatusError as error:
            response = ttrpc_pb2.Response(status=ttrpc_pb2.Status(code=error.code, message=str(error)))
        with contextlib.suppress(OSError):
            self._write(framing.Message(TO_RUNTIME, message.stream, framing.RESPONSE, response.SerializeToString()))
