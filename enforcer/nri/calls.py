"""Our calls to the runtime: RegisterPlugin once, then UpdateContainers when no event asked for the change.

Up to NRI 0.12.0 the runtime holds one lock both while it delivers an event and while it carries out UpdateContainers.
A plugin that waits for the answer inside a handler therefore never gets it. We never wait: a call is queued, leaves
only while every request that has reached us is answered, and its answer is just another message. One call is under
way at a time, so that a slow one (runc may need seconds) does not pile up others behind that lock. What remains is
the runtime's own deadlock: a CRI call that holds a container while our update holds the lock. No plugin can see that
coming: it hung every runtime in the field within seconds, for good. So before NRI 0.12.1 the session refuses such a
call, and changes ride in the answers to events.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from google.protobuf.message import DecodeError

from enforcer.nri import mux, ttrpc
from enforcer.nri.errors import PeerError, RegistrationRefusedError, UsageError
from enforcer.nri.handlers import Updates
from enforcer.nri.identity import Identity
from numakin.wire import nri_pb2 as nri
from numakin.wire import ttrpc_pb2

log = logging.getLogger(__name__)

SERVICE = "nri.pkg.api.v1alpha1.Runtime"

# Calls that wait to be sent. The agent merges its updates, so more than this is a mistake of ours.
MAX_QUEUED = 64


@dataclass(frozen=True, slots=True)
class UpdateAnswer:
    """What became of an UpdateContainers: the updates that failed, or why the call as a whole did.

    A runtime takes an update for a container that it doesn't know as done.
    """

    failed: tuple[nri.ContainerUpdate, ...] = ()
    error: str = ""


OnAnswer: TypeAlias = Callable[[UpdateAnswer], None]


@dataclass(frozen=True, slots=True)
class _Call:
    """One that waits, or that the runtime has not answered."""

    stream: int
    message: bytes
    on_response: Callable[[ttrpc_pb2.Response], None]
    on_end: Callable[[str], None]


class RuntimeCalls:
    """The calls of one session, with odd and increasing stream ids, answered by stream id."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._next_stream = 1
        self._queue: deque[_Call] = deque()
        self._under_way: dict[int, _Call] = {}

    def register(self) -> bytes:
        """The call that opens a session. A refusal is raised by `take` as RegistrationRefusedError."""
        request = nri.RegisterPluginRequest(plugin_name=self._identity.name, plugin_idx=self._identity.index)
        return self._send(self._call("RegisterPlugin", request.SerializeToString(), self._registered, _forget))

    def update_containers(self, updates: Updates, on_answer: OnAnswer) -> None:
        """Queues an UpdateContainers. Raises UsageError over ttrpc's message size or MAX_QUEUED.

        A failure that may be ignored is reported by no runtime; here it fails nothing but this call.
        """
        if len(self._queue) >= MAX_QUEUED:
            raise UsageError(f"{MAX_QUEUED} UpdateContainers wait already")
        request = nri.UpdateContainersRequest(update=updates)
        for update in request.update:
            update.ignore_failure = False
        payload = request.SerializeToString()

        def respond(response: ttrpc_pb2.Response) -> None:
            _hand_over(on_answer, _update_answer(response))

        def end(reason: str) -> None:
            _hand_over(on_answer, UpdateAnswer(error=reason))

        self._queue.append(self._call("UpdateContainers", payload, respond, end))

    def due(self) -> bytes:
        """The next queued call, b"" while there is none or another is under way."""
        return b"" if self._under_way or not self._queue else self._send(self._queue.popleft())

    def take(self, message: ttrpc.Message | ttrpc.Oversized) -> None:
        """Gives an answer to whom it is for. Raises PeerError, RegistrationRefusedError."""
        if not isinstance(message, ttrpc.Message):
            raise PeerError(f"the runtime answered with {message.length} bytes; at most {ttrpc.MAX_INCOMING} are taken")
        call = self._under_way.pop(message.stream, None)
        if message.kind is not ttrpc.FrameKind.RESPONSE or call is None:
            raise PeerError(
                f"the runtime sent a {message.kind.name} on stream {message.stream}, where we asked nothing"
            )
        try:
            response = ttrpc_pb2.Response.FromString(message.payload)
        except DecodeError as error:
            raise PeerError(f"the runtime's answer on stream {message.stream} is no ttrpc response") from error
        call.on_response(response)

    def end(self, reason: str) -> None:
        """The connection is gone: every UpdateContainers without an answer gets `reason` as its error."""
        lost = [*self._under_way.values(), *self._queue]
        self._under_way.clear()
        self._queue.clear()
        for call in lost:
            call.on_end(reason)

    def _call(
        self,
        method: str,
        payload: bytes,
        on_response: Callable[[ttrpc_pb2.Response], None],
        on_end: Callable[[str], None],
    ) -> _Call:
        stream = self._next_stream
        message = ttrpc.encode_request(stream, SERVICE, method, payload)
        self._next_stream += 2
        return _Call(stream, message, on_response, on_end)

    def _send(self, call: _Call) -> bytes:
        self._under_way[call.stream] = call
        return mux.encode(mux.RUNTIME_CONNECTION, call.message)

    def _registered(self, response: ttrpc_pb2.Response) -> None:
        if response.status.code:
            raise RegistrationRefusedError(f"the runtime refused plugin {self._identity}: {response.status.message}")


def _forget(_reason: str) -> None:
    """A registration that got no answer needs no more than the end of its session."""


def _hand_over(on_answer: OnAnswer, answer: UpdateAnswer) -> None:
    try:
        on_answer(answer)
    except Exception:
        log.exception("taking the answer to UpdateContainers failed; the session goes on")


def _update_answer(response: ttrpc_pb2.Response) -> UpdateAnswer:
    if response.status.code:
        return UpdateAnswer(error=response.status.message or f"status {response.status.code}")
    try:
        return UpdateAnswer(failed=tuple(nri.UpdateContainersResponse.FromString(response.payload).failed))
    except DecodeError as error:
        raise PeerError("the runtime's answer to UpdateContainers can't be decoded") from error
