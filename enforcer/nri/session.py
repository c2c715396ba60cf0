"""One plugin session with one runtime: the socket's bytes in, the bytes to write out. No I/O; of clocks only the
duration of our handlers.

The runtime calls us on one logical connection (Configure, Synchronize in one part or more, then events) and we call it
on the other (`calls`).
"""

import logging
import time
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from typing import Any, TypeGuard, TypeVar

from google.protobuf.message import DecodeError, Message

from enforcer.nri import dispatch, mux, ttrpc
from enforcer.nri.calls import OnAnswer, RuntimeCalls
from enforcer.nri.errors import ConfigurationRefusedError, PeerError, UsageError
from enforcer.nri.events import Runtime
from enforcer.nri.handlers import Handlers, Updates
from enforcer.nri.identity import Identity
from enforcer.nri.stats import Stats
from numakin.wire import nri_pb2 as nri
from numakin.wire import ttrpc_pb2

log = logging.getLogger(__name__)

SERVICE = "nri.pkg.api.v1alpha1.Plugin"

# All parts of one Synchronize together.
MAX_SYNCHRONIZE = 256 << 20

# Answered events that wait to be handled; then they are handled first.
MOST_POSTPONED = 64

# How undecoded requests begin: protobuf's fields come in the order of their numbers.
CREATE_CONTAINER, POST_CREATE_CONTAINER, STATE_CHANGE = (
    ttrpc_pb2.Request(service=SERVICE, method=method).SerializeToString()
    for method in ("CreateContainer", "PostCreateContainer", "StateChange")
)
POST_CREATED = nri.StateChangeEvent(event=nri.POST_CREATE_CONTAINER).SerializeToString()


M = TypeVar("M", bound=Message)


class Stage(Enum):
    """How far a session has come.

    SYNCHRONIZED is also what the first event brings: containerd 1.7 never synchronizes a plugin that it launched.
    """

    REGISTERING = "registering"
    CONFIGURED = "configured"
    SYNCHRONIZED = "synchronized"
    ENDED = "ended"


class _RefusalError(Exception):
    """Answer the request with this status instead."""

    def __init__(self, code: ttrpc.Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class Session:
    """A session from a fresh connection to its end; each connection gets a new one."""

    def __init__(self, identity: Identity, handlers: Handlers, stats: Stats) -> None:
        self.stage = Stage.REGISTERING
        self.runtime: Runtime | None = None
        self.answering = ""
        """The method of the request that was answered last."""
        self.event = ""
        """The same; of a StateChange its event's own name, and `unknown` for what is not implemented."""
        self.patience_s = Runtime("", "").request_timeout_s
        """How long the runtime waits for that answer."""
        self._handlers = handlers
        self._stats = stats
        self._demux = mux.Demux()
        self._decoders = {connection: ttrpc.Decoder() for connection in mux.CONNECTIONS}
        self._calls = RuntimeCalls(identity)
        self._receiving = False
        self._postponed: list[bytes] = []
        self._parts: list[nri.SynchronizeRequest] = []
        self._parts_size = 0
        self._methods: dict[str, Callable[[bytes], bytes]] = {
            "Configure": self._configure,
            "Synchronize": self._synchronize,
            "Shutdown": self._shutdown,
            "StateChange": self._state_change,
        }

    def register(self) -> bytes:
        """The bytes that open the session."""
        return self._calls.register()

    def receive(self, data: bytes | memoryview) -> Iterator[bytes]:
        """Handles what the socket gave, and yields each answer as soon as it is there: write it at once.

        Raises a ProtocolError when the session is over.
        """
        self._receiving = True
        try:
            for frame in self._demux.feed(data):
                for message in self._decoders[frame.connection].feed(frame.payload):
                    if frame.connection != mux.PLUGIN_CONNECTION:
                        self._calls.take(message)
                    elif self._can_wait(message):
                        yield self._unread(message)
                    else:
                        yield from self._serve(message)
        finally:
            self._receiving = False

    def update_containers(self, updates: Updates, on_answer: OnAnswer) -> None:
        """Queues a change that no event asked for; `due()` gives the bytes when it may go. UsageError where it can't
        be, or where it might hang the runtime: no caller can forget that.
        """
        if self.stage is Stage.ENDED:
            raise UsageError("UpdateContainers on a session that has ended")
        if self.runtime is None or not self.runtime.takes_updates_any_time:
            raise UsageError(
                "an update that no event asked for may hang this runtime for good: it is safe since NRI 0.12.1"
            )
        self._calls.update_containers(updates, on_answer)

    def due(self) -> bytes:
        """The next UpdateContainers if there is one and no request is unanswered or half read; else b""."""
        idle = self.stage is Stage.SYNCHRONIZED and not self._receiving and not self.midway
        return self._calls.due() if idle else b""

    @property
    def midway(self) -> bool:
        """Whether a message has begun and not ended."""
        plugin, runtime = self._decoders[mux.PLUGIN_CONNECTION], self._decoders[mux.RUNTIME_CONNECTION]
        return self._demux.pending or plugin.pending or runtime.pending

    @property
    def behind(self) -> bool:
        """Whether events were answered and not handled yet."""
        return bool(self._postponed)

    def catch_up(self) -> None:
        """Handles the events that were answered already."""
        postponed, self._postponed = self._postponed, []
        row = dispatch.BY_METHOD["CreateContainer"]
        for message in postponed:
            request = decoded(ttrpc_pb2.Request, message, "request")
            created = decoded(row.request, request.payload, row.method)
            late = nri.CreateContainerResponse.FromString(self._event(row, created))
            if late.update:
                self._guarded(row.method, created, partial(self._leave_over, late.update))

    def _leave_over(self, updates: Updates) -> bytes:
        if self._handlers.left_over is not None:
            self._handlers.left_over(updates)
        return b""

    def end(self, reason: str) -> None:
        """The connection is gone: every UpdateContainers without an answer gets `reason` as its error."""
        self.stage = Stage.ENDED
        self._calls.end(reason)

    def _serve(self, message: ttrpc.Message | ttrpc.Oversized) -> Iterator[bytes]:
        if message.kind is not ttrpc.FrameKind.REQUEST:
            raise PeerError(f"the runtime sent a {message.kind.name} where only requests may come")
        if isinstance(message, ttrpc.Oversized):
            text = f"a request of {message.length} bytes: at most {ttrpc.MAX_INCOMING} are taken"
            log.error("the runtime sent %s", text)
            yield self._refuse(message.stream, ttrpc.Code.RESOURCE_EXHAUSTED, text)
            if self.stage is Stage.CONFIGURED:  # it was Synchronize
                raise PeerError(f"not synchronized: {text}")
            return
        request = decoded(ttrpc_pb2.Request, message.payload, "request")
        self._note(request)
        try:
            answer = ttrpc.encode_answer(message.stream, self._answer(request))
        except _RefusalError as refusal:
            yield self._refuse(message.stream, refusal.code, str(refusal))
            if refusal.code is ttrpc.Code.INVALID_ARGUMENT:
                raise ConfigurationRefusedError(str(refusal)) from refusal
            if request.method == "Synchronize":  # the runtime forgets us, but may leave the connection open
                raise PeerError(f"not synchronized: {refusal}") from refusal
            return
        yield mux.encode(mux.PLUGIN_CONNECTION, answer)

    def _note(self, request: ttrpc_pb2.Request) -> None:
        self.answering = request.method
        if request.timeout_nano > 0:
            self.patience_s = request.timeout_nano / 1e9
        elif self.runtime is not None:
            self.patience_s = self.runtime.request_timeout_s

    def _refuse(self, stream: int, code: ttrpc.Code, text: str) -> bytes:
        return mux.encode(mux.PLUGIN_CONNECTION, ttrpc.encode_refusal(stream, code, text))

    def _answer(self, request: ttrpc_pb2.Request) -> bytes:
        """The payload of the answer. Newer runtimes try calls that we may not know; code 12 reports that."""
        self.event = request.method
        if request.service == SERVICE and (method := self._methods.get(request.method)):
            self.catch_up()
            return method(request.payload)
        row = dispatch.BY_METHOD.get(request.method) if request.service == SERVICE else None
        if row is None:
            self.event = "unknown"
            self._stats.unknown_methods[request.method] += 1
            raise _RefusalError(ttrpc.Code.UNIMPLEMENTED, f"{request.service}/{request.method} is not implemented")
        self.catch_up()
        return self._event(row, decoded(row.request, request.payload, request.method))

    def _can_wait(self, message: ttrpc.Message | ttrpc.Oversized) -> TypeGuard[ttrpc.Message]:
        """Whether it is a CreateContainer that gets no adjustment, or says that such a container was created: it is
        answered before any of it is decoded.
        """
        concerns = self._handlers.concerns
        return (
            concerns is not None
            and message.kind is ttrpc.FrameKind.REQUEST
            and isinstance(message, ttrpc.Message)
            and len(self._postponed) < MOST_POSTPONED
            and (message.payload.startswith(CREATE_CONTAINER) or _says_created(message.payload))
            and not concerns(message.payload)
        )

    def _unread(self, message: ttrpc.Message) -> bytes:
        """The answer that changes nothing. The runtime's patience is taken to be that of its request before."""
        self.stage = Stage.SYNCHRONIZED
        if message.payload.startswith(CREATE_CONTAINER):
            self.answering = self.event = "CreateContainer"
            self._postponed.append(message.payload)
        else:
            self.answering = self.event = "PostCreateContainer"
            self._stats.requests[self.event] += 1
        return mux.encode(mux.PLUGIN_CONNECTION, ttrpc.encode(message.stream, ttrpc.FrameKind.RESPONSE, b""))

    def _configure(self, payload: bytes) -> bytes:
        request = decoded(nri.ConfigureRequest, payload, "Configure")
        self._stats.requests["Configure"] += 1
        timeouts = {
            "registration_timeout_s": request.registration_timeout / 1000,
            "request_timeout_s": request.request_timeout / 1000,
        }
        self.runtime = Runtime(
            request.runtime_name,
            request.runtime_version,
            request.NRI_version,
            **{name: seconds for name, seconds in timeouts.items() if seconds > 0},
        )
        if self._handlers.configure is not None:
            try:
                self._handlers.configure(request.config, self.runtime)
            except Exception as error:
                log.exception("the configuration that the runtime passed is refused")
                raise _RefusalError(ttrpc.Code.INVALID_ARGUMENT, f"configuration refused: {error}") from error
        self.stage = Stage.CONFIGURED
        return nri.ConfigureResponse(
            events=dispatch.subscription(self._handlers, self.runtime.valid_events)
        ).SerializeToString()

    def _synchronize(self, payload: bytes) -> bytes:
        """Parts are gathered until the last; until then the answer is just `more`, or the runtime drops us."""
        self._parts_size += len(payload)
        if self._parts_size > MAX_SYNCHRONIZE:
            self._parts, self._parts_size = [], 0
            raise _RefusalError(ttrpc.Code.RESOURCE_EXHAUSTED, f"Synchronize: over {MAX_SYNCHRONIZE} bytes in all")
        part = decoded(nri.SynchronizeRequest, payload, "Synchronize")
        self._parts.append(part)
        if part.more:
            return nri.SynchronizeResponse(more=True).SerializeToString()
        pods = [pod for each in self._parts for pod in each.pods]
        containers = [container for each in self._parts for container in each.containers]
        self._parts, self._parts_size = [], 0
        self._stats.requests["Synchronize"] += 1
        self.stage = Stage.SYNCHRONIZED

        def run() -> bytes:
            updates = self._handlers.synchronize(pods, containers) if self._handlers.synchronize else ()
            return serialized(nri.SynchronizeResponse(update=updates))

        return self._guarded("Synchronize", part, run)

    def _shutdown(self, _payload: bytes) -> bytes:
        self._stats.requests["Shutdown"] += 1

        def run() -> bytes:
            if self._handlers.shutdown is not None:
                self._handlers.shutdown()
            return b""

        return self._guarded("Shutdown", nri.Empty(), run)

    def _state_change(self, payload: bytes) -> bytes:
        change = decoded(nri.StateChangeEvent, payload, "StateChange")
        row = dispatch.BY_STATE_CHANGE.get(change.event)
        if row is None:
            self._stats.unknown_methods[f"StateChange({change.event})"] += 1
            return b""
        self.event = row.method
        return self._event(row, change)

    def _event(self, row: dispatch.EventRow, request: Any) -> bytes:
        self._stats.requests[row.method] += 1
        self.stage = Stage.SYNCHRONIZED
        handler = getattr(self._handlers, row.handler)
        if handler is None:
            return b""
        return self._guarded(row.method, request, lambda: serialized(row.call(handler, request)))

    def _guarded(self, method: str, request: Any, run: Callable[[], bytes]) -> bytes:
        """The handler's answer, or an empty success: a mistake of ours must not fail a user's container."""
        began = time.perf_counter()
        try:
            return run()
        except Exception:
            self._stats.handler_errors[method] += 1
            log.exception("%s%s failed; answered with no change", method, subject(request))
            return b""
        finally:
            self._stats.handlers[method].add(time.perf_counter() - began)


def _says_created(request: bytes) -> bool:
    """Whether an undecoded request is PostCreateContainer, by its own call or as a StateChange."""
    if request.startswith(POST_CREATE_CONTAINER):
        return True
    if not request.startswith(STATE_CHANGE):
        return False
    at = len(STATE_CHANGE) + 1  # the payload's tag; then its length, of which each byte but the last has the high bit
    while request[at : at + 1] >= b"\x80":
        at += 1
    return request.startswith(POST_CREATED, at + 1)


def serialized(answer: Message) -> bytes:
    """UsageError for an answer over what the runtime takes: it would throw it away, and wait for one."""
    payload = answer.SerializeToString()
    if len(payload) > ttrpc.MAX_PAYLOAD:
        raise UsageError(f"an answer of {len(payload)} bytes: at most {ttrpc.MAX_PAYLOAD} can be sent")
    return payload


def decoded(kind: type[M], payload: bytes, what: str) -> M:
    """what: for the error, a PeerError."""
    try:
        return kind.FromString(payload)
    except DecodeError as error:
        raise PeerError(f"the runtime sent a {what} that can't be decoded as {kind.DESCRIPTOR.full_name}") from error


def subject(request: Any) -> str:
    """The pod and container of a request, for the log."""
    pod, container = getattr(request, "pod", None), getattr(request, "container", None)
    if pod is None:
        return ""
    where = f" for pod {pod.namespace}/{pod.name}"
    return f"{where} container {container.name} ({container.id})" if container is not None and container.id else where
