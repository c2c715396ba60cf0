"""What was learned outlives every extender: it is read from the AffinityGroup objects at the start, and the replica
that publishes writes it back there.

Nothing at the API server is written over before it has been taken in: neither what the last extender left, nor what
another replica wrote while this one was not the one to publish.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from extender.cluster.known import Known
from extender.cluster.learned import NOTHING, Learned, read, written
from extender.kube.grouprows import GroupChanges, GroupRow
from placement.traffic import Costs, Rate

REWRITE_S = 60.0
"""Between two texts of one group: what is lost with all replicas at once when none can end in peace."""

NOTABLE = 0.1
"""A text is written anew when so much of the group's traffic differs from what was written last. Rates never stand
still: else every object would be written each minute.
"""

KEPT = 4
"""Texts of a group that are known to be taken in: the watch may be that far behind what we write."""


@dataclass(frozen=True, slots=True)
class Text:
    """What a group's object says, or is to say. at: seconds, monotonic."""

    text: str
    learned: Learned
    at: float


class Lasting:
    """restore: takes a group's text in. known: what is known by now.

    `changed` and `texts` may be called from a thread each.
    """

    def __init__(
        self,
        restore: Callable[[str, str], None],
        known: Callable[[], Known],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._restore, self._known, self._clock = restore, known, clock
        self._lock = threading.Lock()
        self._there: dict[str, GroupRow] = {}
        self._synced = False
        self._restored = 0
        self._taken: dict[str, tuple[str, ...]] = {}
        self._texts: dict[str, Text] = {}
        self.current = False
        """Whether all that is at the API server was part of what is known when `texts` was last asked."""

    def changed(self, changes: GroupChanges) -> None:
        """What the API server tells of the objects."""
        rows = {one.key: one for one in changes.rows}
        with self._lock:
            before = {} if changes.whole else self._there
            self._there = {key: row for key, row in (before | rows).items() if key not in changes.gone}
            if changes.whole and not self._synced:
                self._synced = True
                self._take_in()

    def texts(self, *, last: bool = False) -> Mapping[str, Text]:
        """By group, NAMESPACE/NAME, what its object should say; a group without one is left as it is.

        None are given before what is at the API server was read and is part of what is known. last: nobody will ask
        again, so that what is new is not kept back for its minute.
        """
        with self._lock:
            known = self._known()
            if self._synced:
                self._take_in()
            self.current = self._synced and known.restored >= self._restored
            if not self.current:
                return {}
            now, lasting = self._clock(), known.lasting()
            here = {row.group for row in self._there.values()} | lasting.keys()
            self._taken = {group: texts for group, texts in self._taken.items() if group in here}
            self._texts = {group: self._text(group, one, known, now, last=last) for group, one in lasting.items()}
            return dict(self._texts)

    def _take_in(self) -> None:
        """Whatever is there and is not ours."""
        for row in self._there.values():
            if row.learned and row.learned not in self._taken.get(row.group, ()):
                self._note(row.group, row.learned)
                self._restored += 1
                self._restore(row.group, row.learned)
                self._texts[row.group] = Text(row.learned, read(row.learned, row.group), self._clock())

    def _note(self, group: str, text: str) -> None:
        self._taken[group] = (*self._taken.get(group, ()), text)[-KEPT:]

    def _text(self, group: str, learned: Learned, known: Known, now: float, *, last: bool) -> Text:
        before = self._texts.get(group)
        whole = _with_resting(learned, before.learned if before else NOTHING, known)
        costs = known.graph.costs
        due = last or before is None or not before.text or now - before.at >= REWRITE_S
        if before is not None and not (due and notable(before.learned, whole, costs)):
            return before
        text = written(whole, costs)
        self._note(group, text)
        return Text(text, read(text, group), now)


def notable(before: Learned, after: Learned, costs: Costs) -> bool:
    """Whether so much has changed that it is worth writing."""
    if before.members != after.members:
        return True
    nothing = Rate(0.0, 0.0)
    weights = [
        (costs.weight(key.kind, before.edges.get(key, nothing)), costs.weight(key.kind, after.edges.get(key, nothing)))
        for key in before.edges.keys() | after.edges.keys()
    ]
    return sum(abs(one - other) for one, other in weights) > NOTABLE * sum(one for one, _ in weights)


def _with_resting(learned: Learned, before: Learned, known: Known) -> Learned:
    """With what was written of the group before and is still remembered, though nobody who runs says that group now:
    workloads that are scaled to nothing.
    """
    resting = {
        key: rate
        for key in before.edges
        if (rate := known.graph.edges.get(key)) is not None
        and not known.group_of(key.source)
        and not known.group_of(key.target)
    }
    return Learned(learned.members, {**resting, **learned.edges})
