"""One attached plugin as the runtime sees it: registration, configuration, synchronization, events."""

import contextlib
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from google.protobuf.message import Message

from lab.standins.runtime import framing
from lab.standins.runtime.connection import UNIMPLEMENTED, UNKNOWN, Connection, PluginLostError, StatusError
from lab.standins.runtime.versions import EVENTS, Version
from numakin.wire import nri_pb2 as nri

INDEX = re.compile(r"[0-9]{2}")

# A Synchronize that is too long is cut to this many objects per message at least.
FEWEST_OBJECTS = 8


@dataclass(frozen=True, slots=True)
class Terms:
    """What the runtime is, and how long it waits (seconds)."""

    version: Version
    name: str
    runtime_version: str
    registration_timeout_s: float
    request_timeout_s: float
    max_message: int = framing.MAX_MESSAGE
    refuse_registration: str = ""
    mute: bool = False


class Attached:
    """A plugin from its connection on."""

    def __init__(
        self,
        sock: socket.socket,
        terms: Terms,
        update: Callable[[nri.UpdateContainersRequest], nri.UpdateContainersResponse],
        *,
        launched: tuple[str, str, str] | None = None,
        pid: int = 0,
    ) -> None:
        self._registered = threading.Event()
        self.connection = Connection(sock, self._serve, on_close=self._registered.set)
        self._pid = pid
        self.events = 0
        self.index, self.name, self._config = launched or ("", "", "")
        self._launched = launched is not None
        self._terms = terms
        self._update = update

    def __str__(self) -> str:
        return f"{self.index}-{self.name}"

    def register(self) -> None:
        """Waits for the registration, and configures. Raises PluginLostError."""
        if self._terms.mute:
            raise PluginLostError("not listened to")
        self.connection.open()
        if not self._registered.wait(self._terms.registration_timeout_s):
            self.connection.close("plugin registration timed out")
        if self.connection.closed:
            raise PluginLostError(self.connection.reason)
        if self._terms.refuse_registration or not INDEX.fullmatch(self.index):
            # The real one leaves this connection open, and never sends anything on it again.
            raise PluginLostError("plugin registration refused")
        with self._fatal():
            self._configure()

    def synchronize(
        self, pods: Sequence[nri.PodSandbox], containers: Sequence[nri.Container]
    ) -> list[nri.ContainerUpdate]:
        """Sends all pods and containers, in parts if need be; returns the updates wanted. Raises PluginLostError.

        The oldest version leaves out the plugins that it launched.
        """
        if self._launched and not self._terms.version.synchronizes_launched:
            return []
        with self._fatal(closes=self._terms.version.closes_unsynchronized):
            return self._synchronize(list(pods), list(containers))

    def deliver(self, method: str, request: Message) -> bytes | None:
        """One event; None when the plugin did not ask for it. Raises StatusError, PluginLostError."""
        event = EVENTS[method]
        if not self.events & 1 << (event - 1):
            return None
        if method in self._terms.version.own_calls:
            try:
                return self.call(method, request)
            except StatusError as error:
                if error.code != UNIMPLEMENTED:
                    raise
        change = nri.StateChangeEvent(event=nri.Event.Name(event), pod=request.pod)  # type: ignore[attr-defined]
        if "container" in request.DESCRIPTOR.fields_by_name:
            change.container.CopyFrom(request.container)  # type: ignore[attr-defined]
        return self.call("StateChange", change)

    def close(self, reason: str) -> None:
        self.connection.close(reason)
        if self._pid:
            pid, self._pid = self._pid, 0
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def call(self, method: str, request: Message) -> bytes:
        """Any call. Raises StatusError, PluginLostError."""
        return self.connection.call(method, request, self._terms.request_timeout_s)

    @contextlib.contextmanager
    def _fatal(self, *, closes: bool = True) -> Iterator[None]:
        """Before a plugin is synchronized, an error status ends it, too; closes: its connection as well."""
        try:
            yield
        except StatusError as error:
            if closes:
                self.connection.close(str(error))
            raise PluginLostError(str(error)) from error

    def _configure(self) -> None:
        terms = self._terms
        request = nri.ConfigureRequest(
            config=self._config, runtime_name=terms.name, runtime_version=terms.runtime_version
        )
        if terms.version.sends_timeouts:
            request.registration_timeout = int(terms.registration_timeout_s * 1000)
            request.request_timeout = int(terms.request_timeout_s * 1000)
        if terms.version.sends_nri_version:
            request.NRI_version = f"v{terms.version.nri}"
        events = nri.ConfigureResponse.FromString(self.call("Configure", request)).events
        if extra := events & ~terms.version.valid_events:
            raise StatusError(UNKNOWN, f"invalid plugin events: 0x{extra & 0xFFFFFFFF:x}")
        self.events = events or terms.version.valid_events

    def _synchronize(self, pods: list[nri.PodSandbox], containers: list[nri.Container]) -> list[nri.ContainerUpdate]:
        pods_each, containers_each = self._parts(pods, containers)
        over = time.monotonic() + self._terms.request_timeout_s  # for all parts together
        while True:
            some, pods = pods[:pods_each], pods[pods_each:]
            others, containers = containers[:containers_each], containers[containers_each:]
            more = bool(pods or containers)
            request = nri.SynchronizeRequest(pods=some, containers=others, more=more)
            payload = self.connection.call(
                "Synchronize",
                request,
                max(0.0, over - time.monotonic()),
                keep_open=not self._terms.version.closes_unsynchronized,
            )
            answer = nri.SynchronizeResponse.FromString(payload)
            if not more:
                return list(answer.update)
            if answer.update or not answer.more:
                raise StatusError(UNKNOWN, "plugin does not handle split sync requests")

    def _parts(self, pods: list[nri.PodSandbox], containers: list[nri.Container]) -> tuple[int, int]:
        """How many of each fit into one message, by the real one's rule of thumb."""
        size = nri.SynchronizeRequest(pods=pods, containers=containers).ByteSize()
        if not self._terms.version.splits_synchronize or size <= self._terms.max_message:
            return len(pods), len(containers)
        factor = min(0.9, self._terms.max_message / size)
        # At least one: the real one forgets this, and a node with one pod and much state never gets through.
        counts = max(1, int(len(pods) * factor)), max(1, int(len(containers) * factor))
        return counts if sum(counts) >= FEWEST_OBJECTS else (FEWEST_OBJECTS // 2, FEWEST_OBJECTS // 2)

    def _serve(self, method: str, payload: bytes) -> Message:
        if method == "RegisterPlugin":
            return self._register(nri.RegisterPluginRequest.FromString(payload))
        if method == "UpdateContainers":
            return self._update(nri.UpdateContainersRequest.FromString(payload))
        raise StatusError(UNIMPLEMENTED, f"method {method} is not implemented")

    def _register(self, request: nri.RegisterPluginRequest) -> nri.Empty:
        if not self._launched:
            self.index, self.name = request.plugin_idx, request.plugin_name
        self._registered.set()
        if self._terms.refuse_registration:
            raise StatusError(UNKNOWN, self._terms.refuse_registration)
        if not INDEX.fullmatch(self.index):
            raise StatusError(UNKNOWN, f'invalid plugin index: invalid plugin index "{self.index}"')
        return nri.Empty()
