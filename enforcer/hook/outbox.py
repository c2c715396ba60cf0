"""What the hook still has to tell the observer: differences against what was told last."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from enforcer.hook.agent import Agent
from enforcer.local import report_differences
from enforcer.nri.stats import Stats
from placement.state.occupancy import Occupancy
from proto import local_pb2 as local


class Outbox:
    """Remembers what was told. `news()` is what changed since; `whole()` is all, for a reader who starts."""

    def __init__(self, agent: Agent, stats: Callable[[], Stats] = Stats) -> None:
        """stats: of the runtime's plugin."""
        self._agent, self._stats = agent, stats
        self._told_counts = local.Counts()
        self._told: Occupancy = agent.occupancy
        self._told_containers: dict[str, local.LocalContainer] = {}
        self._told_registered = False
        self.registered = False

    def whole(self, unheard: Iterable[local.FromHook] = ()) -> list[local.FromHook]:
        """Everything as it is now, with the decisions of the news that nobody was there to hear."""
        decisions = [decision for news in unheard for decision in news.report.decisions]
        report = report_differences.whole(self._agent.occupancy, decisions, registered=self.registered)
        report.earlier.extend(self._agent.records.latest().values())
        return [
            local.FromHook(report=report),
            local.FromHook(containers=local.Containers(whole=True, containers=self._agent.residents.now().values())),
            local.FromHook(counts=self._counts()),
        ]

    def news(self) -> list[local.FromHook]:
        """What changed since the last call, in at most four messages; empty when nothing did."""
        return [*self._report(), *self._containers(), *self._declined(), *self._counted()]

    def _report(self) -> list[local.FromHook]:
        occupancy, waiting = self._agent.occupancy, self._agent.records.waiting
        registered = self.registered if self.registered != self._told_registered else None
        if not (report_differences.differ(self._told, occupancy) or waiting or registered is not None):
            return []
        report = report_differences.difference(self._told, occupancy, self._agent.records.take(), registered=registered)
        self._told, self._told_registered = occupancy, self.registered
        return [local.FromHook(report=report)]

    def _containers(self) -> list[local.FromHook]:
        now = self._agent.residents.now()
        changed = [one for key, one in now.items() if self._told_containers.get(key) != one]
        gone = [key for key in self._told_containers if key not in now]
        if not changed and not gone:
            return []
        self._told_containers = dict(now)
        return [local.FromHook(containers=local.Containers(containers=changed, gone=gone))]

    def _counted(self) -> list[local.FromHook]:
        counts = self._counts()
        if counts == self._told_counts:
            return []
        self._told_counts = counts
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
        )

    def _declined(self) -> list[local.FromHook]:
        """After the report of the occupancy that they did not hold in."""
        declined = self._agent.moving.declined()
        return [local.FromHook(declined=declined)] if declined.steps else []
