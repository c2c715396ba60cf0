"""What the hook still has to send the observer: differences from what was sent last."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from enforcer.hook.agent import Agent
from enforcer.local.report_differences import ReportedNode, report
from enforcer.nri.stats import Stats
from numakin.process.durations import Durations
from numakin.wire import local_pb2 as local


class Outbox:
    """Remembers what was sent. `changes()` is what is new since; `whole()` is everything, for a reader who starts."""

    def __init__(self, agent: Agent, stats: Callable[[], Stats] = Stats) -> None:
        """stats: of the runtime's plugin."""
        self._agent, self._stats = agent, stats
        self._sent_counts = local.Counts()
        self.registered = False
        self._sent = self._now()

    def whole(self, unread: Iterable[local.FromHook] = ()) -> list[local.FromHook]:
        """Everything as it is now, with the decisions of changes while no observer was there."""
        decisions = [decision for message in unread for decision in message.report.decisions]
        everything = report(None, self._now(), decisions)
        everything.earlier.extend(self._agent.records.latest().values())
        containers = self._agent.residents.now().values()
        return [
            local.FromHook(report=everything),
            local.FromHook(containers=local.Containers(whole=True, containers=containers)),
            local.FromHook(counts=self._counts()),
        ]

    def changes(self) -> list[local.FromHook]:
        """What changed since the last call, in at most four messages; empty when nothing did."""
        return [*self._report(), *self._containers(), *self._declined(), *self._counted()]

    def _now(self) -> ReportedNode:
        return ReportedNode(self._agent.occupancy, self.registered, self._agent.ledger.yielded)

    def _report(self) -> list[local.FromHook]:
        now, records = self._now(), self._agent.records
        if not (now.differs_from(self._sent) or records.waiting):
            return []
        difference = report(self._sent, now, records.take())
        self._sent = now
        return [local.FromHook(report=difference)]

    def _containers(self) -> list[local.FromHook]:
        changed, gone = self._agent.residents.changes()
        if not changed and not gone:
            return []
        return [local.FromHook(containers=local.Containers(containers=changed, gone=gone))]

    def _counted(self) -> list[local.FromHook]:
        counts = self._counts()
        if counts == self._sent_counts:
            return []
        self._sent_counts = counts
        return [local.FromHook(counts=counts)]

    def _counts(self) -> local.Counts:
        stats = self._stats()
        return local.Counts(
            outcomes=self._agent.records.counts,
            events=stats.requests,
            handler_faults=stats.handler_errors,
            late_answers=stats.late_answers,
            connections=stats.connections,
            losses=stats.losses,
            handlers={event: _durations(seconds) for event, seconds in stats.handlers.items()},
            answers={event: _durations(seconds) for event, seconds in stats.answers.items()},
            decisions=_durations(self._agent.records.durations),
        )

    def _declined(self) -> list[local.FromHook]:
        """After the report of the occupancy that they did not hold in."""
        declined = self._agent.moves.declined()
        return [local.FromHook(declined=declined)] if declined.steps else []


def _durations(durations: Durations) -> local.Durations:
    return local.Durations(counts=durations.counts, seconds=durations.seconds)
