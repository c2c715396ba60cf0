"""One enforcer's stream, without its socket: messages in, answers out.

    awaiting Hello --Hello, held here--> in step        (Welcome resume: true)
    awaiting Hello --Hello, not held---> out of step    (Welcome resume: false)
    out of step ----Machine, then a whole Report------> in step (Ack)
    in step --------Report that fits------------------> in step (Ack)
    in step --------Report that does not fit----------> out of step (Welcome resume: false)

An enforcer of another report format is served too (`numakin.wire.report_format`): without comparing fingerprints, and
passing over the kinds of messages that this version does not know. `NodeView.report_format` says so to people.

While out of step, differences that are already under way are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any

from extender.cluster import Cluster
from extender.reports import incoming
from extender.reports.incoming import BadMessage, OutOfBounds
from extender.state.enforcer_health import EnforcerHealth
from extender.state.node_report import DecisionRow, ReportRefused
from extender.state.node_view import NodeView
from numakin.placement.traffic.graph import Flow
from numakin.process.log import Log
from numakin.process.version import VERSION
from numakin.wire import bounds
from numakin.wire import report_pb2 as pb
from numakin.wire.report_format import REPORT_FORMAT

_log = Log("reports")


class SessionCallbacks:
    """Who listens in: each is called on the stream's thread and must be quick."""

    def decided(self, node: str, row: DecisionRow) -> None: ...

    def traffic(self, node: str, flows: tuple[Flow, ...]) -> None: ...

    def uses(self, node: str, milli: Mapping[str, int]) -> None: ...

    def health(self, node: str, health: EnforcerHealth) -> None: ...

    def counted(self, result: str) -> None: ...

    def changed(self, node: str) -> None:
        """The node's placements have changed."""


@dataclass(slots=True)
class TokenBucket:
    """A token bucket. at: seconds, monotonic."""

    tokens: float
    at: float

    def take(self, now: float) -> bool:
        self.tokens = min(bounds.MESSAGE_BURST, self.tokens + (now - self.at) * bounds.MESSAGES_PER_SECOND)
        self.at = now
        self.tokens -= 1
        return self.tokens >= 0


class NotYours(ValueError):
    """An enforcer that speaks for another node than it proved to be on."""


class ReportSession:
    """BadMessage, OutOfBounds and NotYours from `receive` end the stream; their text is for the enforcer's log.

    proven: the node that the caller may speak for; None: any.
    """

    def __init__(
        self, cluster: Cluster, taps: SessionCallbacks, clock: Callable[[], float], proven: str | None = None
    ) -> None:
        self.node = ""
        self._proven = proven
        self._cluster = cluster
        self._taps = taps
        self._clock = clock
        self._rate = TokenBucket(bounds.MESSAGE_BURST, clock())
        self._view: NodeView | None = None
        self._session = self._version = ""
        self._format = REPORT_FORMAT
        self._in_step = False
        self._steps: dict[str, Callable[[Any], list[pb.ToEnforcer]]] = {
            "machine": self._machine,
            "report": self._report,
            "heartbeat": self._heartbeat,
            "traffic": self._traffic,
        }

    @property
    def in_step(self) -> bool:
        """Whether both ends hold the same placements."""
        return self._in_step

    def receive(self, message: pb.FromEnforcer) -> list[pb.ToEnforcer]:
        """The answers, in order."""
        if not self._rate.take(self._clock()):
            raise OutOfBounds(f"more than {bounds.MESSAGES_PER_SECOND} messages a second")
        kind = message.WhichOneof("message")
        if kind == "hello":
            return self._hello(message.hello)
        if not self.node:
            raise BadMessage(f"the first message must be Hello, not {kind}")
        if kind is None:
            return self._passed_over()
        return self._steps[kind](getattr(message, kind))

    def _hello(self, message: pb.Hello) -> list[pb.ToEnforcer]:
        if self.node:
            raise BadMessage("Hello comes once, first")
        incoming.hello(message)
        if self._proven is not None and message.node != self._proven:
            raise NotYours(f"the token speaks for node {self._proven}, not for {message.node}")
        self.node, self._session, self._version = intern(message.node), message.session, message.version
        self._format = message.format
        if self._format != REPORT_FORMAT:
            _log.warning(
                "an enforcer speaks another report format: its fingerprints are not compared; upgrade both",
                node=self.node,
                enforcer_version=self._version or "unknown",
                enforcer_format=self._format,
                extender_version=VERSION,
                extender_format=REPORT_FORMAT,
            )
        held = self._cluster.view(self.node)
        self._in_step = (
            held is not None
            and held.session == message.session
            and held.generation == message.acked_generation
            and held.fingerprint == message.acked_fingerprint
        )
        self._view = held if self._in_step else None
        self._cluster.connected(self.node)
        self._taps.counted("resumed" if self._in_step else "anew")
        return [_welcome(resume=self._in_step)]

    def _passed_over(self) -> list[pb.ToEnforcer]:
        """A message that is empty, or of a kind that this version does not know: a newer enforcer may send such."""
        if self._format <= REPORT_FORMAT:
            raise BadMessage("the message is empty or of a kind that this version does not know")
        self._taps.counted("unknown_kind")
        return []

    def _machine(self, message: pb.Machine) -> list[pb.ToEnforcer]:
        machine, empty = incoming.machine(message)
        self._view = NodeView(self.node, self._session, self._version, machine, empty, report_format=self._format)
        self._in_step = False
        return []

    def _report(self, message: pb.Report) -> list[pb.ToEnforcer]:
        if message.base_generation and not self._in_step:
            return []
        if self._view is None:
            raise BadMessage("a whole Report comes after Machine")
        report = incoming.report(message, self._view.machine)
        after = self._cluster.reported(self._view, report)
        for row in report.decisions:
            self._taps.decided(self.node, row)
        if isinstance(after, ReportRefused):
            if not report.base:
                # Asking again would bring the same again; the enforcer's own backoff makes this a slow loop.
                raise BadMessage(f"Report: {after.value}")
            self._in_step = False
            self._taps.counted(after.name.lower())
            return [_welcome(resume=False)]
        self._view, self._in_step = after, True
        self._taps.counted("difference" if report.base else "whole")
        self._taps.changed(self.node)
        return [pb.ToEnforcer(ack=pb.Ack(generation=report.generation))]

    def _heartbeat(self, message: pb.Heartbeat) -> list[pb.ToEnforcer]:
        """One of another generation than is held means that a report was lost; and none is held of a node whose Node
        object was deleted and made anew.
        """
        self._cluster.received(self.node)
        self._taps.counted("heartbeat")
        if message.HasField("health"):
            self._taps.health(self.node, incoming.health(message.health))
        lost = self._view is not None and message.generation != self._view.generation
        if self._in_step and (lost or self._cluster.forgotten(self.node)):
            self._in_step = False
            return [_welcome(resume=False)]
        return []

    def _traffic(self, message: pb.Traffic) -> list[pb.ToEnforcer]:
        flows, uses = incoming.traffic(message), incoming.uses(message)
        self._cluster.received(self.node)
        self._taps.traffic(self.node, flows)
        if uses:
            self._taps.uses(self.node, uses)
        return []


def _welcome(*, resume: bool) -> pb.ToEnforcer:
    return pb.ToEnforcer(welcome=pb.Welcome(resume=resume, format=REPORT_FORMAT, version=VERSION))
