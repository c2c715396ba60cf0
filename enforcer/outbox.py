"""What the hook still has to tell the observer: differences against what was told last."""

from __future__ import annotations

from collections.abc import Iterable

from enforcer import journal
from enforcer.agent import Agent
from placement.occupancy import Occupancy
from proto import local_pb2 as local


class Outbox:
    """Remembers what was told. `news()` is what changed since; `whole()` is all, for a reader who starts."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._told: Occupancy = agent.occupancy
        self._told_containers: dict[str, local.LocalContainer] = {}
        self._told_registered = False
        self.registered = False

    def whole(self, unheard: Iterable[local.FromHook] = ()) -> list[local.FromHook]:
        """Everything as it is now, with the decisions of the news that nobody was there to hear."""
        decisions = [decision for news in unheard for decision in news.report.decisions]
        report = journal.whole(self._agent.occupancy, decisions, registered=self.registered)
        report.earlier.extend(self._agent.accounts.latest().values())
        return [
            local.FromHook(report=report),
            local.FromHook(containers=local.Containers(whole=True, containers=self._agent.residents.now().values())),
        ]

    def news(self) -> list[local.FromHook]:
        """What changed since the last call, in at most two messages; empty when nothing did."""
        return [*self._report(), *self._containers()]

    def _report(self) -> list[local.FromHook]:
        occupancy, waiting = self._agent.occupancy, self._agent.accounts.waiting
        registered = self.registered if self.registered != self._told_registered else None
        if not (journal.differ(self._told, occupancy) or waiting or registered is not None):
            return []
        report = journal.difference(self._told, occupancy, self._agent.accounts.take(), registered=registered)
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
