"""The plugin around its sessions: dials, registers, carries bytes between socket and session, starts anew."""

import contextlib
import logging
import socket
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

from enforcer.nri.calls import OnAnswer, UpdateAnswer
from enforcer.nri.errors import ProtocolError, RegistrationRefusedError, UsageError
from enforcer.nri.events import Runtime
from enforcer.nri.handlers import Handlers, Updates
from enforcer.nri.identity import Identity
from enforcer.nri.punctuality import Punctuality
from enforcer.nri.session import Session, Stage
from enforcer.nri.stats import Stats
from enforcer.nri.transport import External, Launched, backoff
from numakin.process.loop import Loop, Timer

log = logging.getLogger(__name__)

READ_SIZE = 256 << 10
"""Bytes taken at once, into a buffer that stays: one of this size for each read costs three system calls."""

# The runtime takes external plugins one at a time, and waits up to 5 s for each to register: two slow ones before us
# must not make us give up.
REGISTRATION_PATIENCE_S = 15.0

CATCH_UP_AFTER_S = 0.002
"""An event that was answered first is handled so much later: a runtime that waits for this core takes its answer then.
"""

IDLE_NOTE_S = 0.1
"""Until it is synchronized, a session notes this often that nothing waits to be read."""

PROBE_S = 60.0
"""The runtime is asked whether it still has us when nothing has shown it for so long, and given up when it does not
answer for as long again.
"""

OnStage: TypeAlias = Callable[[Stage], None]


class Plugin:
    """Keeps one session with the runtime alive on a Loop.

    `on_stage` is called at every step of a session, ENDED included. A launched plugin stops the loop when its
    connection ends; an external one dials again, after at most LONGEST_DELAY_S.
    """

    def __init__(
        self,
        loop: Loop,
        identity: Identity,
        handlers: Handlers,
        transport: External | Launched,
        *,
        on_stage: OnStage | None = None,
        patience_s: float = REGISTRATION_PATIENCE_S,
        probe_s: float = PROBE_S,
    ) -> None:
        self.stats = Stats()
        self._loop = loop
        self._identity = identity
        self._handlers = handlers
        self._transport = transport
        self._on_stage = on_stage
        self._patience_s = patience_s
        self._session: Session | None = None
        self._socket: socket.socket | None = None
        self._midway = False
        self._incoming = memoryview(bytearray(READ_SIZE))
        self._timer: Timer | None = None
        self._punctuality = Punctuality(0.0)
        self._confirmed: float | None = None
        self._probe: Timer | None = None
        self._probe_s = probe_s
        self._asked = False
        self._delays: Iterator[float] = backoff()
        self._noted_stage = Stage.ENDED
        self._reason = ""

    @property
    def stage(self) -> Stage:
        """ENDED while there is no connection."""
        return self._session.stage if self._session else Stage.ENDED

    @property
    def runtime(self) -> Runtime | None:
        """What the connected runtime is, by its Configure."""
        return self._session.runtime if self._session else None

    @property
    def confirmed_s_ago(self) -> float | None:
        """Since the runtime last showed that it has us: by an event, a Synchronize that was answered in time, or its
        answer to a probe. None while it does not have us.
        """
        return None if self._confirmed is None else time.monotonic() - self._confirmed

    def start(self) -> None:
        """Dials at once; failing that, again and again (external) or stops the loop (launched)."""
        self._timer = None
        try:
            self._socket = self._transport.dial()
            self._session, self._midway = Session(self._identity, self._handlers, self.stats), False
            self._loop.register(self._socket.fileno(), self._readable)
            self._timer = self._loop.call_later(self._patience_s, self._unanswered)
            self._punctuality = Punctuality(time.monotonic())
            self._note_idle(self._session)
            self._socket.sendall(self._session.register())
        except OSError as error:
            self._lost(f"can't connect to the runtime at {self._transport}: {error}{_todo(error)}")
            return
        self.stats.connections += 1
        self._note_stage()

    def update_containers(self, updates: Updates, on_answer: OnAnswer) -> None:
        """Asks the runtime for a change that no event asked for; never waits. Raises UsageError.

        `on_answer` is called once, from the loop: with the answer, or with an error when the connection ended first.
        """
        if self._session is None:
            raise UsageError("UpdateContainers without a connection to the runtime")
        self._session.update_containers(updates, on_answer)
        self._loop.call_later(0, self._flush)

    def register_again(self, reason: str) -> None:
        """Closes the connection and dials anew. A plugin that the runtime launched can't."""
        if self._transport.reconnects and self._session is not None:
            self._lost(reason)

    def close(self) -> None:
        """Ends the session for good, the connection first: the runtime must not wait for an answer from us."""
        self._drop("the plugin is closing")

    def _readable(self) -> None:
        sock, session = self._socket, self._session
        assert sock is not None
        assert session is not None
        began = time.monotonic()
        try:
            size = sock.recv_into(self._incoming)
            if not size:
                self._lost("the runtime closed the connection")
                return
            self._punctuality.reading(began, begins=not self._midway, drained=size < READ_SIZE)
            for answer in session.receive(self._incoming[:size]):
                if self._session is not session:  # a handler closed the plugin
                    return
                late = self._lateness(session)
                sock.sendall(answer)
                self.stats.answers[session.event].add(time.monotonic() - began)
                if late:
                    self._lost(late)
                    return
                if session.stage is Stage.SYNCHRONIZED:
                    self._confirmed = time.monotonic()
        except RegistrationRefusedError as error:
            self._lost(str(error))
        except (ProtocolError, OSError) as error:
            self._lost(f"connection given up: {error}")
        else:
            self._midway = session.midway
            self._note_stage()
            self._flush()
            if session.behind:
                self._loop.call_later(CATCH_UP_AFTER_S, lambda: self._catch_up(session))

    def _catch_up(self, session: Session) -> None:
        try:
            session.catch_up()
        except ProtocolError as error:
            if self._session is session:
                self._lost(f"connection given up: {error}")

    def _flush(self) -> None:
        if self._session is None or self._socket is None:
            return
        try:
            if call := self._session.due():
                self._socket.sendall(call)
        except OSError as error:
            self._lost(f"connection given up: {error}")

    def _lateness(self, session: Session) -> str:
        """Why the runtime does not have us any more though the connection may live; empty when all is well."""
        now, patience_s = time.monotonic(), session.patience_s
        doubtful = session.answering == "Synchronize" and self._transport.reconnects
        took_s = self._punctuality.at_most(now) if doubtful else self._punctuality.at_least(now)
        if took_s < patience_s:
            return ""
        self.stats.late_answers += 1
        return (
            f"the answer to {session.answering} took {'up to ' if doubtful else ''}{took_s:.3f} s; the runtime waits "
            f"{patience_s:.3f} s, then goes on without us"
        )

    def _note_idle(self, session: Session) -> None:
        if self._session is session and session.stage in (Stage.REGISTERING, Stage.CONFIGURED):
            self._punctuality.looked(time.monotonic())
            self._loop.call_later(IDLE_NOTE_S, lambda: self._note_idle(session))

    def _prove(self) -> None:
        """Asks where that is safe, and says something: before NRI 0.12 a runtime carries out the updates of a plugin
        that it has forgotten, and before 0.12.1 even an empty one may lock it up.
        """
        self._probe = self._loop.call_later(self._probe_s, self._prove)
        ago, session = self.confirmed_s_ago, self._session
        asks = session is not None and session.runtime is not None and session.runtime.takes_updates_any_time
        if session is None or not asks or ago is None or ago < self._probe_s:
            return
        if self._asked:
            self._lost(f"the runtime has not answered for {ago:.0f} s")
            return
        self._asked = True
        with contextlib.suppress(UsageError):  # too many wait already: not answered, then
            self.update_containers((), lambda answer: self._proven(session, answer))

    def _proven(self, session: Session, answer: UpdateAnswer) -> None:
        if self._session is not session:
            return
        self._asked = False
        if answer.error:
            log.warning("the runtime does not confirm that it has us: %s", answer.error)
        else:
            self._confirmed = time.monotonic()

    def _note_stage(self) -> None:
        """Notes the session's progress: what must happen once, when a stage is reached."""
        stage = self.stage
        if stage is self._noted_stage:
            return
        self._noted_stage = stage
        done = Stage.SYNCHRONIZED if self._transport.reconnects else Stage.CONFIGURED
        if stage in (done, Stage.SYNCHRONIZED) and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if stage is Stage.SYNCHRONIZED:
            self._probe = self._loop.call_later(self._probe_s, self._prove)
            self._delays = backoff()
            self._reason = ""
            log.info("attached as %s to %s", self._identity, self.runtime)
        if self._on_stage is not None:
            try:
                self._on_stage(stage)
            except Exception:
                log.exception("on_stage(%s) failed; the session goes on", stage.name)

    def _unanswered(self) -> None:
        what = "synchronize" if self.stage is Stage.CONFIGURED else "configure"
        self._lost(
            f"the runtime did not {what} {self._identity} within {self._patience_s:g} s of registering: it refused "
            "the registration without an error, or is busy with another plugin"
        )

    def _lost(self, reason: str) -> None:
        """Starts over, or stops the loop where there is nothing to dial."""
        self._drop(reason)
        if not self._transport.reconnects:
            log.warning("%s; leaving, as the runtime that launched us has no other socket for us", reason)
            self._loop.stop()
            return
        delay = next(self._delays)
        # A runtime that is down for long is logged once.
        log.log(logging.DEBUG if reason == self._reason else logging.WARNING, "%s; dialing again", reason)
        self._reason = reason
        self._timer = self._loop.call_later(delay, self.start)

    def _drop(self, reason: str) -> None:
        """Closes the socket before anything else: the runtime calls every connection it has not seen end, and would
        take two of ours for two plugins that claim the same CPUs.
        """
        for timer in (self._timer, self._probe):
            if timer is not None:
                timer.cancel()
        self._timer = self._probe = self._confirmed = None
        self._asked = False
        if self._socket is not None:
            self._loop.unregister(self._socket.fileno())
            self._socket.close()
            self._socket = None
        if self._session is not None:
            session, self._session = self._session, None
            self.stats.losses += 1
            session.end(reason)
        self._note_stage()


def _todo(error: OSError) -> str:
    """What a person may do about it; nothing about a runtime that is busy."""
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return "; until the container runtime runs and has NRI on, pods start unpinned"
    return ""
