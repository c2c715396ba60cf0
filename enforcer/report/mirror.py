"""What the observer knows of the node from the hook, and what of it the extender still has to be told: a pure state
machine.

The hook tells differences; the extender acknowledges generations. After a break the extender says whether it still
has what it acknowledged; if so only what came since goes out, else everything.
"""

from __future__ import annotations

from collections.abc import Iterator

from enforcer import journal
from placement.occupancy import Occupancy, fingerprint
from proto import convert
from proto import local_pb2 as local
from proto import report_pb2 as pb

MOST_DECISIONS = 2048
"""Decisions kept while the extender is away; the oldest go first."""


class Mirror:
    """The node as the hook last told it."""

    def __init__(self) -> None:
        self.start: local.Start | None = None
        self.occupancy = Occupancy()
        self.registered = False
        self._sent: Occupancy | None = None
        self._sent_registered: bool | None = None
        self._unsent_free: dict[int, int] = {}
        self._decisions: list[pb.DecisionRecord] = []
        self._history: dict[int, Occupancy] = {}
        self._acked: Occupancy | None = None

    def started(self, start: local.Start) -> None:
        """A hook's first message. Another session's generations mean nothing any more."""
        if self.start is None or self.start.session != start.session:
            self._sent = self._acked = None
            self._history.clear()
        self.start = start

    def reported(self, report: pb.Report) -> None:
        """A report from the hook: whole when its base is 0."""
        seats = {} if report.base_generation == 0 else dict(self.occupancy.seats)
        holdings = {} if report.base_generation == 0 else dict(self.occupancy.holdings)
        for key in report.gone_seats:
            seats.pop(key, None)
        for key in report.gone_holdings:
            holdings.pop(key, None)
        seats.update({one.key: convert.seat_from(one) for one in report.seats})
        holdings.update({one.container: convert.holding_from(one) for one in report.holdings})
        free = {**self.occupancy.free_memory, **report.free_memory}
        self.occupancy = Occupancy(seats, holdings, free, generation=report.generation)
        self._unsent_free.update(report.free_memory)
        self._decisions = [*self._decisions, *report.decisions][-MOST_DECISIONS:]
        if report.HasField("registered"):
            self.registered = report.registered

    def hello(self, version: str) -> pb.FromEnforcer:
        """The first message on a stream. Only after `started`."""
        if self.start is None:
            raise RuntimeError("no hook has started yet")
        hello = pb.Hello(node=self.start.node, version=version, session=self.start.session)
        if self._acked is not None:
            hello.acked_generation = self._acked.generation
            hello.acked_fingerprint = _fingerprint(self._acked)
        return pb.FromEnforcer(hello=hello)

    def welcomed(self, welcome: pb.Welcome) -> Iterator[pb.FromEnforcer]:
        """What goes out first: nothing when the extender still knows us, else the machine and a whole report to
        come.
        """
        if welcome.resume and self._acked is not None:
            self._sent = self._acked
        else:
            self._sent, self._sent_registered = None, None
            self._unsent_free = dict(self.occupancy.free_memory)
            if self.start is not None:
                yield pb.FromEnforcer(machine=self.start.machine)

    def acknowledged(self, ack: pb.Ack) -> None:
        self._acked = self._history.get(ack.generation, self._acked)
        self._history = {at: one for at, one in self._history.items() if at >= ack.generation}

    def news(self) -> pb.FromEnforcer | None:
        """The next report for the extender; None when it knows all."""
        registered = self.registered if self.registered != self._sent_registered else None
        if self._sent is None:
            report = journal.whole(self.occupancy, self._decisions, registered=self.registered)
        elif (
            self._sent.generation != self.occupancy.generation
            or self._decisions
            or self._unsent_free
            or registered is not None
        ):
            report = journal.difference(
                self._sent, self.occupancy, self._decisions, registered=registered, free=self._unsent_free
            )
        else:
            return None
        self._sent, self._sent_registered = self.occupancy, self.registered
        self._history[self.occupancy.generation] = self.occupancy
        self._decisions, self._unsent_free = [], {}
        return pb.FromEnforcer(report=report)

    def heartbeat(self) -> pb.FromEnforcer:
        return pb.FromEnforcer(heartbeat=pb.Heartbeat(generation=self.occupancy.generation))


def _fingerprint(occupancy: Occupancy) -> int:
    return fingerprint(occupancy.seats.values(), occupancy.holdings.values())
