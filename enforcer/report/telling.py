"""What one extender still has to be told of the node: a pure state machine, one for each replica.

The extender acknowledges reports. After a break it says whether it still has what it acknowledged; if so only what
came since goes out, else the machine and everything.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from enforcer.local import report_differences
from enforcer.report.mirror import Mirror
from placement.state.occupancy import Occupancy
from proto import bounds
from proto import report_pb2 as pb

MOST_EARLIER = bounds.DECISIONS
"""Of the decisions on containers that are there, those that a whole report tells again; the newest."""

MOST_UNACKNOWLEDGED = 256
"""Reports on their way whose content is remembered. An extender that is further behind gets everything anew after a
break.
"""


@dataclass(frozen=True, slots=True)
class Sent:
    """The node as a report left the extender with it."""

    session: str
    occupancy: Occupancy
    registered: bool


class ReportBacklog:
    """Reads the mirror, never writes its node: what another replica is told makes no difference."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._sent: Sent | None = None
        self._acked: Sent | None = None
        self._unacked: deque[Sent] = deque(maxlen=MOST_UNACKNOWLEDGED)
        # What a replica was told before us is not told again: it has made its events of it.
        self._decided = mirror.heard

    def hello(self, version: str) -> pb.FromEnforcer:
        """The first message on a stream. Only after a hook has started."""
        start = self._mirror.start
        if start is None:
            raise RuntimeError("no hook has started yet")
        hello = pb.Hello(node=start.node, version=version, session=start.session)
        if self._acked is not None and self._acked.session == start.session:
            hello.acked_generation = self._acked.occupancy.generation
            hello.acked_fingerprint = self._acked.occupancy.fingerprint
        return pb.FromEnforcer(hello=hello)

    def welcomed(self, welcome: pb.Welcome) -> None:
        """Goes on from what was acknowledged when the extender still knows us, else from nothing."""
        if not welcome.resume:
            self._acked = None
        self._sent = self._acked
        self._unacked.clear()

    def acknowledged(self, ack: pb.Ack) -> None:
        """Acknowledgements come in the order of the reports."""
        generations = [one.occupancy.generation for one in self._unacked]
        if ack.generation in generations:
            for _ in range(generations.index(ack.generation) + 1):
                self._acked = self._unacked.popleft()

    def news(self) -> list[pb.FromEnforcer]:
        """What the extender has not heard yet, in order; empty when it knows all."""
        mirror, sent = self._mirror, self._sent
        if mirror.start is None or not mirror.known:
            return []
        now = Sent(mirror.start.session, mirror.occupancy, mirror.registered)
        if sent is None or sent.session != now.session:
            decisions = mirror.decisions(self._decided)
            report = report_differences.whole(now.occupancy, decisions, registered=now.registered)
            report.earlier.extend(mirror.earlier(decisions)[-MOST_EARLIER:])
            told = [pb.FromEnforcer(machine=mirror.start.machine), pb.FromEnforcer(report=report)]
        elif (
            report_differences.differ(sent.occupancy, now.occupancy)
            or sent.registered != now.registered
            or self._decided != mirror.decided
        ):
            told = [pb.FromEnforcer(report=self._difference(sent, now))]
        else:
            return []
        self._decided = mirror.decided
        self._sent = now
        self._unacked.append(now)
        return told

    def heartbeat(self) -> pb.FromEnforcer:
        """Says which generation the extender should have by now."""
        generation = self._sent.occupancy.generation if self._sent is not None else 0
        return pb.FromEnforcer(heartbeat=pb.Heartbeat(generation=generation))

    def _difference(self, sent: Sent, now: Sent) -> pb.Report:
        return report_differences.difference(
            sent.occupancy,
            now.occupancy,
            self._mirror.decisions(self._decided),
            registered=now.registered if now.registered != sent.registered else None,
        )
