"""When a new extender is ready: once every enforcer has reported and everything is listed, or after a limit.

Until then /readyz fails. The Service then sends kube-scheduler to another replica; where there is none, connections
are refused at once, and pods are scheduled without scores (`ignorable: true`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from extender.state.pods import Changes, NodeRow, PodRow
from numakin.process.log import Log

_log = Log("readiness")


class ReadinessGate:
    """account: the enforcers', NAMESPACE:NAME; empty: it is not known which pods they are, and none is waited for.

    unseen: resources that the API server has not listed yet. reported: whether a node's enforcer has sent everything.
    within_s: the longest wait for all of that; enforcers resolve the replicas' names every 30 s, and a DNS cache may be
    30 s old. `pods` and `nodes` may be called from a thread each.
    """

    def __init__(
        self,
        account: str,
        unseen: Callable[[], Iterable[str]],
        reported: Callable[[str], bool],
        within_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._account, self._unseen, self._reported = account, unseen, reported
        self._within_s, self._clock = within_s, clock
        self._began = clock()
        self._over = False
        self._enforcers: dict[str, str] = {}
        self._starting: dict[str, str] = {}
        self._down: frozenset[str] = frozenset()

    def pods(self, changes: Changes[PodRow]) -> None:
        own = [row for row in changes.rows if f"{row.namespace}:{row.account}" == self._account]
        running = {row.uid: row.node for row in own if row.phase == "Running"}
        starting = {row.uid: row.node for row in own if row.phase == "Pending" and row.node}
        self._enforcers = _followed(self._enforcers, changes, running)
        self._starting = _followed(self._starting, changes, starting)

    def nodes(self, changes: Changes[NodeRow]) -> None:
        changed = {row.name for row in changes.rows} | set(changes.gone)
        before = frozenset() if changes.whole else self._down - changed
        self._down = before | {row.name for row in changes.rows if not row.ready}

    def missing(self) -> str:
        """What is still waited for; once empty, always empty."""
        waited = self._clock() - self._began
        why = "" if self._over or waited >= self._within_s else self._why()
        if not why and not self._over:
            self._over = True
            _log.info("ready to be asked", seconds=round(waited, 1), silent=self._silent())
        return why

    def unreported(self) -> list[str]:
        """Nodes that an enforcer's pod is on, running or not yet, and that no enforcer has reported from."""
        there = {*self._enforcers.values(), *self._starting.values()}
        return sorted(node for node in there if not self._reported(node))

    def _why(self) -> str:
        unseen = list(self._unseen())
        if unseen:
            return f"the API server has not listed {', '.join(unseen)} yet"
        if self._account and not self._enforcers:
            return "no enforcer runs yet"
        silent = self._silent()
        return f"{len(silent)} of {len(self._enforcers)} enforcers have not reported yet: {silent[0]}" if silent else ""

    def _silent(self) -> list[str]:
        """Nodes whose enforcer runs, and has not reported; a node that is down is not waited for."""
        return sorted(node for node in self._enforcers.values() if node not in self._down and not self._reported(node))


def _followed(before: dict[str, str], changes: Changes[PodRow], after: Mapping[str, str]) -> dict[str, str]:
    """Nodes by pod. after: of the changed ones, those that belong here now. Nearly all changes are of other pods: they
    make nothing anew.
    """
    gone = {row.uid for row in changes.rows} | set(changes.gone)
    if not changes.whole and all(before.get(uid) == after.get(uid) for uid in gone):
        return before
    kept = {} if changes.whole else {uid: node for uid, node in before.items() if uid not in gone}
    return kept | dict(after)
