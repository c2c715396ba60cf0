"""The AffinityGroup objects that are there: what operators ask for in them, and which of ours no pod needs any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping

from extender.kube.objects.grouprows import GroupRow
from extender.state.group_spec import Specs
from extender.state.pods import Changes
from extender.traffic.known import ClusterTraffic
from extender.traffic.learned import read

IDLE_S = 600.0
"""How long a group has had no member before its object is checked; enforcers and pods are known long before that."""


class GroupObjects:
    """`changed` is called from the watch's thread, `forgotten` from the publisher's."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._there: dict[str, GroupRow] = {}
        self._idle: dict[str, float] = {}

    def changed(self, changes: Changes[GroupRow]) -> None:
        rows = {row.key: row for row in changes.rows}
        with self._lock:
            before = {} if changes.whole else self._there
            self._there = {key: row for key, row in (before | rows).items() if key not in changes.gone}

    def rows(self) -> Mapping[str, GroupRow]:
        """By group."""
        with self._lock:
            return {row.group: row for row in self._there.values()}

    def specs(self) -> Specs:
        return {group: row.spec for group, row in self.rows().items() if row.spec is not None}

    def forgotten(self, here: Collection[str], known: ClusterTraffic) -> list[GroupRow]:
        """Objects of ours without a member for a while, of which nothing that was learned is remembered: an object that
        an operator had a hand in stays. here: the groups that have members.
        """
        now, rows = self._clock(), self.rows()
        ours = [group for group, row in rows.items() if row.ours and group not in here]
        self._idle = {group: self._idle.get(group, now) for group in ours}
        forgotten = []
        for group, since in list(self._idle.items()):
            if now - since < IDLE_S:
                continue
            if any(edge in known.graph.edges for edge in read(rows[group].learned, group).edges):
                self._idle[group] = now
            else:
                forgotten.append(rows[group])
        return forgotten
