"""What the observer knows of the node from the hook: one for all extenders, written by the hook's messages alone.

The hook tells differences; each extender is told by a `Telling` of its own what it has not heard yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice

from placement.live import NOTHING
from placement.occupancy import Occupancy
from proto import convert
from proto import local_pb2 as local
from proto import report_pb2 as pb

MOST_DECISIONS = 2048
"""Decisions kept while no extender is there; the oldest go first."""


class Mirror:
    """The node as the hook last told it. known: whether its present session has told everything once."""

    def __init__(self) -> None:
        self.start: local.Start | None = None
        self.occupancy = Occupancy()
        self.registered = False
        self.known = False
        self.decided = 0
        self.heard = 0
        """Decisions that came so far, and those of them that some extender has been told."""
        self._decisions: deque[pb.DecisionRecord] = deque(maxlen=MOST_DECISIONS)
        self._latest: dict[str, pb.DecisionRecord] = {}

    def started(self, start: local.Start) -> None:
        """A hook's first message. Another session has another machine, maybe, and says everything anew."""
        if self.start is None or self.start.session != start.session:
            self.known = False
        self.start = start

    def reported(self, report: pb.Report) -> None:
        """A report from the hook: whole when its base is 0."""
        whole = report.base_generation == 0
        seats = {} if whole else dict(self.occupancy.seats)
        holdings = {} if whole else dict(self.occupancy.holdings)
        for key in report.gone_seats:
            seats.pop(key, None)
        for key in report.gone_holdings:
            holdings.pop(key, None)
        seats.update({one.key: convert.seat_from(one) for one in report.seats})
        holdings.update({one.container: convert.holding_from(one) for one in report.holdings})
        before = NOTHING if whole else self.occupancy.live
        live = before.after(convert.live_from(report))
        self.occupancy = Occupancy(seats, holdings, live, generation=report.generation)
        self._decisions.extend(report.decisions)
        self.decided += len(report.decisions)
        for one in (*report.earlier, *report.decisions):
            self._latest[one.container] = one
        self._latest = {one: record for one, record in self._latest.items() if one in holdings}
        self.known = self.known or whole
        if report.HasField("registered"):
            self.registered = report.registered

    def earlier(self, new: Iterable[pb.DecisionRecord]) -> list[pb.DecisionRecord]:
        """The last decision on each container that is still there, as far as it is not among the new ones."""
        told = {one.container for one in new}
        return [record for container, record in self._latest.items() if container not in told]

    def decisions(self, after: int) -> list[pb.DecisionRecord]:
        """Those that came after the first `after`, as far as they are kept; they count as heard."""
        self.heard = self.decided
        new = min(self.decided - after, len(self._decisions))
        return list(islice(self._decisions, len(self._decisions) - new, None))
