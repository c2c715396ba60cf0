"""The gRPC stream to one replica of the extender: dials, tells what it has not heard, dials again when it breaks."""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import grpc

from enforcer.log import Log
from enforcer.report.telling import Telling
from proto import report_pb2 as pb
from proto import report_pb2_grpc
from proto.certificates import BadCertificate, Renewed

log = Log("observer.stream")

FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 5.0
"""Waits between dials: doubled each time, with jitter, so that a restarted extender is not met by all nodes at once."""

OPTIONS = (("grpc.keepalive_time_ms", 20_000), ("grpc.keepalive_timeout_ms", 10_000), ("grpc.enable_http_proxy", 0))


MOST_WAITING = 64
"""Messages of traffic that wait for an extender that is slow to read: ten minutes of a node's; what comes then is
dropped, for it alone.
"""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a replica is. tls: None for none; its files and the token's (empty: none) are read at each dial, since
    they are renewed. name: whom the certificate must be for, when that is not the address.
    """

    address: str
    tls: Renewed | None = None
    token: str = ""
    name: str = ""

    @property
    def shown(self) -> dict[str, str]:
        """How the log names it."""
        if self.tls is None:
            return {"address": self.address}
        return {"address": self.address, "certificate_for": self.name or self.address.rpartition(":")[0]}

    def channel(self) -> grpc.Channel:
        """A fresh one; BadCertificate while its files were never good."""
        if self.tls is None:
            return grpc.insecure_channel(self.address, OPTIONS)
        options = (*OPTIONS, ("grpc.ssl_target_name_override", self.name)) if self.name else OPTIONS
        now = self.tls.current()
        credentials = grpc.ssl_channel_credentials(now.ca, now.key or None, now.cert or None)
        return grpc.secure_channel(self.address, credentials, options)

    def metadata(self) -> list[tuple[str, str]]:
        return [("authorization", f"Bearer {Path(self.token).read_text().strip()}")] if self.token else []


class Stream:
    """Runs in a thread of its own; `changed()` wakes it. lock: guards the mirror that `telling` reads, which the
    observer's reader writes. broken: called after each dial that failed and each stream that ended.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        telling: Telling,
        lock: threading.Lock,
        expected: Callable[[pb.Expect], None],
        broken: Callable[[], None] = lambda: None,
        *,
        version: str,
        heartbeat_s: float,
    ) -> None:
        self._endpoint, self._telling, self._lock = endpoint, telling, lock
        self._expected, self._broken, self._version, self._heartbeat_s = expected, broken, version, heartbeat_s
        self._wake: queue.Queue[pb.FromEnforcer | None] = queue.Queue(MOST_WAITING)
        self._stop = threading.Event()
        self._call: grpc.Call | None = None
        self.connected = False

    def changed(self) -> None:
        with suppress(queue.Full):  # then it is awake
            self._wake.put_nowait(None)

    def tell(self, message: pb.FromEnforcer) -> None:
        """A message that is not the mirror's, such as traffic; dropped while there is no stream, or one that nobody
        reads.
        """
        if not self.connected:
            return
        try:
            self._wake.put_nowait(message)
        except queue.Full:
            log.warning("the extender reads too slowly: traffic dropped", address=self._endpoint.address)

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
            except (grpc.RpcError, OSError, BadCertificate) as error:
                wait = FIRST_WAIT_S if self.connected else min(LONGEST_WAIT_S, wait * 2)
                if not self._stop.is_set():
                    log.warning("no stream to the extender", **self._endpoint.shown, error=_cause(error))
            self.connected = False
            if not self._stop.is_set():
                self._broken()
            self._stop.wait(wait * random.uniform(0.5, 1.0))  # noqa: S311 - spreads dials, guards no secret

    def _speak(self, channel: grpc.Channel) -> None:
        self._wake = queue.Queue(MOST_WAITING)
        welcome: queue.Queue[pb.Welcome] = queue.Queue()
        ended = threading.Event()
        call = report_pb2_grpc.ReportsStub(channel).Stream(
            self._outgoing(welcome, ended), metadata=self._endpoint.metadata()
        )
        self._call = call
        if self._stop.is_set():
            call.cancel()
        try:
            for message in call:
                kind = message.WhichOneof("message")
                if kind == "welcome":
                    self.connected = True
                    log.info(
                        "stream to the extender is open", address=self._endpoint.address, resumed=message.welcome.resume
                    )
                    welcome.put(message.welcome)
                    self.changed()
                elif kind == "ack":
                    with self._lock:
                        self._telling.acknowledged(message.ack)
                elif kind == "expect":
                    self._expected(message.expect)
        finally:
            ended.set()
            self.changed()

    def _outgoing(self, welcome: queue.Queue[pb.Welcome], ended: threading.Event) -> Iterator[pb.FromEnforcer]:
        """Hello, then whatever is new, then heartbeats; a later Welcome (the extender lost us) starts over."""
        with self._lock:
            hello = self._telling.hello(self._version)
        yield hello
        welcomed = False
        while not ended.is_set():
            try:
                extra, idle = self._wake.get(timeout=self._heartbeat_s), False
            except queue.Empty:
                extra, idle = None, True
            with self._lock:
                while not welcome.empty():
                    self._telling.welcomed(welcome.get())
                    welcomed = True
                news = self._telling.news() if welcomed else []
            yield from news
            if extra is not None and welcomed:
                yield extra
            elif idle and welcomed and not news:
                yield self._telling.heartbeat()


def _cause(error: Exception) -> str:
    return f"{error.code().name}: {error.details()}" if isinstance(error, grpc.Call) else str(error)
