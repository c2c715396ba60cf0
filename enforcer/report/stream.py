"""The gRPC stream to one replica of the extender: dials, sends what that one lacks, dials again when it breaks."""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import grpc

from enforcer.report.backlog import ReportBacklog
from enforcer.report.health import HealthNews
from numakin.process.files import read_regular
from numakin.process.log import Log
from numakin.process.threads import STALE_AFTER_S, Threaded, Threads
from numakin.wire import report_pb2 as pb
from numakin.wire import report_pb2_grpc
from numakin.wire.certificates import BadCertificate, Renewed
from numakin.wire.keepalive import ENFORCER, Keepalive
from numakin.wire.report_format import REPORT_FORMAT

log = Log("observer.stream")

FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 5.0
"""Waits between dials: doubled each time, with jitter, so that a restarted extender is not met by all nodes at once."""

HEARTBEAT_S = 5.0
"""Between two messages of a stream at the most. A node is live until nothing has come of it for a minute: eleven may be
late.
"""

OPTIONS = (("grpc.enable_http_proxy", 0),)


MOST_WAITING = 64
"""Messages of traffic that wait for an extender that is slow to read: ten minutes of a node's; what comes then is
dropped, for it alone.
"""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a replica is. tls: None for none; its files and the token's (empty: none) are read at each dial, since
    they are renewed. name: whom the certificate must be for, when that is not the address. keepalive: how a replica
    that hangs, or whose node lost power, is found.
    """

    address: str
    tls: Renewed | None = None
    token: str = ""
    name: str = ""
    keepalive: Keepalive = ENFORCER

    @property
    def shown(self) -> dict[str, str]:
        """How the log names it."""
        if self.tls is None:
            return {"address": self.address}
        return {"address": self.address, "certificate_for": self.name or self.address.rpartition(":")[0]}

    def channel(self) -> grpc.Channel:
        """A fresh one; BadCertificate while its files were never good."""
        options: tuple[tuple[str, str | int], ...] = (*OPTIONS, *self.keepalive.options)
        if self.tls is None:
            return grpc.insecure_channel(self.address, options)
        if self.name:
            options = (*options, ("grpc.ssl_target_name_override", self.name))
        now = self.tls.current()
        credentials = grpc.ssl_channel_credentials(now.ca, now.key or None, now.cert or None)
        return grpc.secure_channel(self.address, credentials, options)

    def metadata(self) -> list[tuple[str, str]]:
        return [("authorization", f"Bearer {read_regular(self.token).decode().strip()}")] if self.token else []


class ReportStream(Threaded):
    """A thread of its own; `changed()` wakes it. lock: guards the mirror that `backlog` reads, which the
    observer's reader writes. broken: called after each dial that failed and each stream that ended. trouble: why the
    last dial failed, or the last stream ended; empty while there is one.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        backlog: ReportBacklog,
        lock: threading.Lock,
        expected: Callable[[pb.Expect], None],
        broken: Callable[[], None] = lambda: None,
        *,
        gone: Callable[[pb.Gone], None] = lambda _gone: None,
        namespaces: Callable[[pb.Namespaces], None] = lambda _namespaces: None,
        health: HealthNews | None = None,
        version: str,
        heartbeat_s: float = HEARTBEAT_S,
        threads: Threads,
    ) -> None:
        self._endpoint, self._backlog, self._lock = endpoint, backlog, lock
        self._expected, self._broken, self._version, self._heartbeat_s = expected, broken, version, heartbeat_s
        self._gone, self._namespaces, self._health = gone, namespaces, health
        self._wake: queue.Queue[pb.FromEnforcer | None] = queue.Queue(MOST_WAITING)
        self._call: grpc.Call | None = None
        self._failure: Exception | None = None
        self._wait_s = FIRST_WAIT_S
        self.connected = self.skewed = False
        self.trouble = ""
        self._thread = threads.thread(
            f"stream {endpoint.address}",
            self._round,
            wake=self._cancel,
            stale_after_s=max(STALE_AFTER_S, 3 * heartbeat_s),
        )

    def changed(self) -> None:
        if self._wake.empty():  # else what waits wakes it, and takes no room from traffic
            with suppress(queue.Full):
                self._wake.put_nowait(None)

    def send(self, message: pb.FromEnforcer) -> None:
        """Sends a message that is not the mirror's, such as traffic. It is dropped while there is no stream, or the
        extender does not read it.
        """
        if not self.connected:
            return
        try:
            self._wake.put_nowait(message)
        except queue.Full:
            log.warning("the extender reads too slowly: traffic dropped", address=self._endpoint.address)

    def _cancel(self) -> None:
        if self._call is not None:
            self._call.cancel()

    def _round(self) -> None:
        """One dial, and the stream for as long as it lasts."""
        try:
            with self._endpoint.channel() as channel:
                self._speak(channel)
            self._wait_s = FIRST_WAIT_S
        except (grpc.RpcError, OSError, BadCertificate) as error:
            self._wait_s = FIRST_WAIT_S if self.connected else min(LONGEST_WAIT_S, self._wait_s * 2)
            self._blame(error)
        finally:
            self.connected = False
        self._broken()
        self._thread.stopping.wait(self._wait_s * random.uniform(0.5, 1.0))  # noqa: S311 - spreads dials, guards no secret

    def _blame(self, error: Exception) -> None:
        """Of a stream that failed. What our own end of it raised is grpc's to catch, and ours to raise."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        if not self._thread.stopping.is_set():
            self.trouble = f"{error.code().name}: {error.details()}" if isinstance(error, grpc.Call) else str(error)
            log.warning("no stream to the extender", **self._endpoint.shown, error=self.trouble)

    def _speak(self, channel: grpc.Channel) -> None:
        self._wake = queue.Queue(MOST_WAITING)
        welcome: queue.Queue[pb.Welcome] = queue.Queue()
        ended = threading.Event()
        call = report_pb2_grpc.ReportsStub(channel).Stream(
            self._guarded(self._outgoing(welcome, ended)), metadata=self._endpoint.metadata()
        )
        self._call = call
        if self._thread.stopping.is_set():
            call.cancel()
        try:
            for message in call:
                kind = message.WhichOneof("message")
                if kind == "welcome":
                    self.connected, self.trouble = True, ""
                    self._compare(message.welcome)
                    log.info(
                        "stream to the extender is open", address=self._endpoint.address, resumed=message.welcome.resume
                    )
                    welcome.put(message.welcome)
                    self.changed()
                elif kind == "ack":
                    with self._lock:
                        self._backlog.acknowledged(message.ack)
                elif kind == "expect":
                    self._expected(message.expect)
                elif kind == "gone":
                    self._gone(message.gone)
                elif kind == "namespaces":
                    self._namespaces(message.namespaces)
        finally:
            ended.set()
            self.changed()

    def _compare(self, welcome: pb.Welcome) -> None:
        """An extender of another format takes reports without comparing fingerprints, if it names its format at all."""
        self.skewed = welcome.format != REPORT_FORMAT
        if self.skewed:
            log.warning(
                "the extender speaks another report format: bring both programs to one version",
                address=self._endpoint.address,
                extender_version=welcome.version or "unknown",
                extender_format=welcome.format,
                enforcer_version=self._version,
                enforcer_format=REPORT_FORMAT,
            )

    def _guarded(self, outgoing: Iterator[pb.FromEnforcer]) -> Iterator[pb.FromEnforcer]:
        """On grpc's own thread, which would end the stream without a reason."""
        try:
            yield from outgoing
        except Exception as error:
            self._failure = error
            raise

    def _outgoing(self, welcome: queue.Queue[pb.Welcome], ended: threading.Event) -> Iterator[pb.FromEnforcer]:
        """Hello, then whatever is new, then heartbeats; a later Welcome (the extender lost us) starts over."""
        with self._lock:
            hello = self._backlog.hello(self._version)
        yield hello
        if self._health is not None:
            self._health.begin()
        welcomed = False
        while not ended.is_set():
            try:
                extra, idle = self._wake.get(timeout=self._heartbeat_s), False
            except queue.Empty:
                extra, idle = None, True
            with self._lock:
                while not welcome.empty():
                    self._backlog.welcomed(welcome.get())
                    welcomed = True
                news = self._backlog.changes() if welcomed else []
            yield from news
            if extra is not None and welcomed:
                yield extra
            health = self._health.due() if self._health is not None and welcomed else None
            if welcomed and (health is not None or (idle and not news)):
                yield self._backlog.heartbeat(health)
            self._thread.progress()
