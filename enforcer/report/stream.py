"""The gRPC stream to the extender: dials, speaks what the mirror has to tell, dials again when it breaks."""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc

from enforcer.log import Log
from enforcer.report.mirror import Mirror
from proto import report_pb2 as pb
from proto import report_pb2_grpc

log = Log("observer.stream")

FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 5.0
"""Waits between dials: doubled each time, with jitter, so that a restarted extender is not met by all nodes at once."""

OPTIONS = (("grpc.keepalive_time_ms", 20_000), ("grpc.keepalive_timeout_ms", 10_000), ("grpc.enable_http_proxy", 0))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the extender is. ca, token: files, empty for none; the token file is read at each dial, since the kubelet
    renews it.
    """

    address: str
    ca: str = ""
    token: str = ""

    def channel(self) -> grpc.Channel:
        if not self.ca:
            return grpc.insecure_channel(self.address, OPTIONS)
        return grpc.secure_channel(self.address, grpc.ssl_channel_credentials(Path(self.ca).read_bytes()), OPTIONS)

    def metadata(self) -> list[tuple[str, str]]:
        return [("authorization", f"Bearer {Path(self.token).read_text().strip()}")] if self.token else []


class Stream:
    """Runs in a thread of its own; `changed()` wakes it. lock: guards the mirror, which the observer's reader
    writes.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        mirror: Mirror,
        lock: threading.Lock,
        expected: Callable[[pb.Expect], None],
        *,
        version: str,
        heartbeat_s: float,
    ) -> None:
        self._endpoint, self._mirror, self._lock = endpoint, mirror, lock
        self._expected, self._version, self._heartbeat_s = expected, version, heartbeat_s
        self._wake: queue.Queue[pb.FromEnforcer | None] = queue.Queue()
        self._stop = threading.Event()
        self._call: grpc.Call | None = None
        self.connected = False

    def changed(self) -> None:
        self._wake.put(None)

    def tell(self, message: pb.FromEnforcer) -> None:
        """A message that is not the mirror's, such as traffic; dropped while there is no stream."""
        if self.connected:
            self._wake.put(message)

    def stop(self) -> None:
        self._stop.set()
        if self._call is not None:
            self._call.cancel()

    def run(self) -> None:
        wait = FIRST_WAIT_S
        while not self._stop.is_set():
            try:
                with self._endpoint.channel() as channel:
                    self._speak(channel)
                wait = FIRST_WAIT_S
            except (grpc.RpcError, OSError) as error:
                wait = FIRST_WAIT_S if self.connected else min(LONGEST_WAIT_S, wait * 2)
                log.warning("no stream to the extender", address=self._endpoint.address, error=_cause(error))
            self.connected = False
            self._stop.wait(wait * random.uniform(0.5, 1.0))  # noqa: S311 - spreads dials, guards no secret

    def _speak(self, channel: grpc.Channel) -> None:
        self._wake = queue.Queue()
        welcome: queue.Queue[pb.Welcome] = queue.Queue()
        ended = threading.Event()
        call = report_pb2_grpc.ReportsStub(channel).Stream(
            self._outgoing(welcome, ended), metadata=self._endpoint.metadata()
        )
        self._call = call
        try:
            for message in call:
                kind = message.WhichOneof("message")
                if kind == "welcome":
                    self.connected = True
                    log.info(
                        "stream to the extender is open", address=self._endpoint.address, resumed=message.welcome.resume
                    )
                    welcome.put(message.welcome)
                    self._wake.put(None)
                elif kind == "ack":
                    with self._lock:
                        self._mirror.acknowledged(message.ack)
                elif kind == "expect":
                    self._expected(message.expect)
        finally:
            ended.set()
            self._wake.put(None)

    def _outgoing(self, welcome: queue.Queue[pb.Welcome], ended: threading.Event) -> Iterator[pb.FromEnforcer]:
        """Hello, then whatever is new, then heartbeats; a later Welcome (the extender lost us) starts over."""
        with self._lock:
            hello = self._mirror.hello(self._version)
        yield hello
        welcomed = False
        while not ended.is_set():
            try:
                extra = self._wake.get(timeout=self._heartbeat_s)
            except queue.Empty:
                extra = self._mirror.heartbeat() if welcomed else None
            while not welcome.empty():
                with self._lock:
                    first = list(self._mirror.welcomed(welcome.get()))
                yield from first
                welcomed = True
            if welcomed:
                with self._lock:
                    news = self._mirror.news()
                if news is not None:
                    yield news
                if extra is not None:
                    yield extra


def _cause(error: Exception) -> str:
    return f"{error.code().name}: {error.details()}" if isinstance(error, grpc.Call) else str(error)
