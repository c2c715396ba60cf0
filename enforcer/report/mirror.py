"""What the observer knows of the node from the hook: one for all extenders, written by the hook's messages alone.

The hook sends differences; each extender is sent what it lacks by a `ReportBacklog` of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice

from numakin.placement.state.occupancy import Occupancy
from numakin.placement.state.yielded import NONE
from numakin.wire import convert
from numakin.wire import local_pb2 as local
from numakin.wire import report_pb2 as pb

MOST_DECISIONS = 2048
"""Decisions kept while no extender is there; the oldest go first."""


class Mirror:
    """The node as the hook last reported it. known: whether its present session has reported everything once, on the
    machine as it is. era: another number after each start of a hook and each change of the machine.

    decided, sent: decisions that came so far, and those of them that some extender has been sent.
    """

    def __init__(self) -> None:
        self.start: local.Start | None = None
        self.occupancy = self._empty = Occupancy()
        self.registered = False
        self.yielded = NONE
        self.known = False
        self.era = 0
        self.decided = 0
        self.sent = 0
        self._decisions: deque[bytes] = deque(maxlen=MOST_DECISIONS)
        self._latest: dict[str, bytes] = {}
        """By container id. Both are encoded: a message would keep the whole report that it came in."""

    def started(self, start: local.Start) -> None:
        """A hook's first message, and again when its machine has changed: everything is reported anew after it."""
        before = self.start
        if before is None or before.session != start.session or before.machine != start.machine:
            self.known = False
            self.era += 1
        self.start = start
        self._empty = convert.empty_from(start.machine)

    def reported(self, report: pb.Report) -> None:
        """A report from the hook: whole when its base is 0."""
        whole = report.base_generation == 0
        self.occupancy = (
            (self._empty if whole else self.occupancy)
            .reported(
                map(convert.reservation_from, report.reservations),
                report.gone_reservations,
                map(convert.allocation_from, report.allocations),
                report.gone_allocations,
                convert.live_from(report),
            )
            .at_generation(report.generation)
        )
        for record in report.earlier:
            self._latest[record.container] = record.SerializeToString()
        for record in report.decisions:
            encoded = self._latest[record.container] = record.SerializeToString()
            self._decisions.append(encoded)
        self.decided += len(report.decisions)
        live = self.occupancy.allocations
        self._latest = {container: record for container, record in self._latest.items() if container in live}
        self.known = self.known or whole
        if report.HasField("registered"):
            self.registered = report.registered
        if report.HasField("yielded"):
            self.yielded = convert.yielded_from(report.yielded)

    def earlier(self, new: Iterable[pb.DecisionRecord]) -> list[pb.DecisionRecord]:
        """The last decision on each container that is still there, as far as it is not among the new ones."""
        among_new = {record.container for record in new}
        return [
            pb.DecisionRecord.FromString(record)
            for container, record in self._latest.items()
            if container not in among_new
        ]

    def decisions(self, after: int) -> list[pb.DecisionRecord]:
        """Those that came after the first `after`, as far as they are kept; they count as sent."""
        self.sent = self.decided
        new = min(self.decided - after, len(self._decisions))
        kept = islice(self._decisions, len(self._decisions) - new, None)
        return [pb.DecisionRecord.FromString(record) for record in kept]
