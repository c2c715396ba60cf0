"""What one extender still has to be sent of the node: a pure state machine, one for each replica.

The extender acknowledges reports. After a break it says whether it still has what it acknowledged; if so only what
came since goes out, else the machine and everything.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from enforcer.local.report_differences import ReportedNode, report
from enforcer.report.mirror import Mirror
from numakin.wire import bounds
from numakin.wire import report_pb2 as pb
from numakin.wire.report_format import REPORT_FORMAT

MOST_EARLIER = bounds.DECISIONS
"""Of the decisions on containers that are there, those that a whole report has again; the newest."""

MOST_UNACKNOWLEDGED = 256
"""Reports on their way whose content is remembered. An extender that is further behind gets everything anew after a
break.
"""


@dataclass(frozen=True, slots=True)
class Sent:
    """The node as a report left the extender with it. era: the mirror's, in which generations can be compared.
    decided: as the mirror had it.
    """

    era: int
    state: ReportedNode
    decided: int


class ReportBacklog:
    """Reads the mirror, never writes its node: what another replica was sent makes no difference."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._sent: Sent | None = None
        self._acked: Sent | None = None
        self._unacked: deque[Sent] = deque(maxlen=MOST_UNACKNOWLEDGED)
        # A decision that another replica was sent is not sent again: that one has made its events of it.
        self._decided = mirror.sent

    def hello(self, version: str) -> pb.FromEnforcer:
        """The first message on a stream. Only after a hook has started."""
        start = self._mirror.start
        if start is None:
            raise RuntimeError("no hook has started yet")
        hello = pb.Hello(node=start.node, version=version, session=start.session, format=REPORT_FORMAT)
        if self._acked is not None and self._acked.era == self._mirror.era:
            hello.acked_generation = self._acked.state.occupancy.generation
            hello.acked_fingerprint = self._acked.state.occupancy.fingerprint
        return pb.FromEnforcer(hello=hello)

    def welcomed(self, welcome: pb.Welcome) -> None:
        """Goes on from what was acknowledged when the extender still knows us, else from nothing: the decisions of
        reports that were lost on their way are sent again, or are among the earlier ones.
        """
        if not welcome.resume:
            self._acked = None
        elif self._acked is not None:
            self._decided = self._acked.decided
        self._sent = self._acked
        self._unacked.clear()

    def acknowledged(self, ack: pb.Ack) -> None:
        """Acknowledgements come in the order of the reports."""
        generations = [sent.state.occupancy.generation for sent in self._unacked]
        if ack.generation in generations:
            for _ in range(generations.index(ack.generation) + 1):
                self._acked = self._unacked.popleft()

    def changes(self) -> list[pb.FromEnforcer]:
        """What the extender has not been sent yet, in order; empty when it has everything."""
        mirror, sent = self._mirror, self._sent
        if mirror.start is None or not mirror.known:
            return []
        now = Sent(mirror.era, ReportedNode(mirror.occupancy, mirror.registered, mirror.yielded), mirror.decided)
        if sent is None or sent.era != now.era:
            decisions = mirror.decisions(self._decided)
            everything = report(None, now.state, decisions)
            everything.earlier.extend(mirror.earlier(decisions)[-MOST_EARLIER:])
            messages = [pb.FromEnforcer(machine=mirror.start.machine), pb.FromEnforcer(report=everything)]
        elif now.state.differs_from(sent.state) or self._decided != mirror.decided:
            difference = report(sent.state, now.state, mirror.decisions(self._decided))
            messages = [pb.FromEnforcer(report=difference)]
        else:
            return []
        self._decided = mirror.decided
        self._sent = now
        self._unacked.append(now)
        return messages

    def heartbeat(self, health: pb.Health | None = None) -> pb.FromEnforcer:
        """Says which generation the extender should have by now, and how the enforcer is where that is news."""
        generation = self._sent.state.occupancy.generation if self._sent is not None else 0
        return pb.FromEnforcer(heartbeat=pb.Heartbeat(generation=generation, health=health))
