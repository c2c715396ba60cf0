"""What was learned outlives every extender: it is read from the AffinityGroup objects at the start, and the replica
that publishes writes it back there.

Nothing at the API server is written over before it has been taken in: neither what the last extender left, nor what
another replica wrote while this one was not the one to publish.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from extender.kube.objects.grouprows import GroupChanges, GroupRow
from extender.traffic.known import ClusterTraffic
from extender.traffic.learned import NOTHING, LearnedGroup, read, written
from placement.traffic.graph import Costs, Key, Rate

REWRITE_S = 60.0
"""Between two texts of one group: what is lost with all replicas at once when none can end in peace."""

NOTABLE = 0.1
"""A text is written anew when it lacks an edge or a member, or when so much of the group's traffic differs from what
was written last. Rates never stand still: else every object would be written each minute.
"""

KEPT = 4
"""Texts of a group that are known to be taken in: the watch may be that far behind what we write."""


@dataclass(frozen=True, slots=True)
class Text:
    """What a group's object says, or is to say. learned: what the text was made of, also what its bound cut off, which
    is no news the next minute. at: seconds, monotonic.
    """

    text: str
    learned: LearnedGroup
    at: float


class SavedLearning:
    """restore: takes a group's text in. known: what is known by now.

    `changed` and `texts` may be called from a thread each.
    """

    def __init__(
        self,
        restore: Callable[[str, str], None],
        known: Callable[[], ClusterTraffic],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._restore, self._known, self._clock = restore, known, clock
        self._lock = threading.Lock()
        self._there: dict[str, GroupRow] = {}
        self._synced = False
        self._restored = 0
        self._taken: dict[str, tuple[str, ...]] = {}
        self._texts: dict[str, Text] = {}
        # The edges of each group when its text was last made, also of one that no pod names any more.
        self._own: dict[str, Collection[Key]] = {}
        self.current = False
        """Whether all that is at the API server was part of what is known when `texts` was last asked."""

    def changed(self, changes: GroupChanges) -> None:
        """What the API server reports of the objects."""
        rows = {row.key: row for row in changes.rows}
        with self._lock:
            before = {} if changes.whole else self._there
            self._there = {key: row for key, row in (before | rows).items() if key not in changes.gone}
            if changes.whole and not self._synced:
                self._synced = True
                self._take_in()

    def texts(self, *, last: bool = False) -> Mapping[str, Text]:
        """By group, NAMESPACE/NAME, what its object should say; a group without one is left as it is. One that nobody
        speaks for any more is given as long as its object, if it still has one, says something else.

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
            lasting = known.lasting()
            there = {row.group: row.learned for row in self._there.values()}
            groups = there.keys() | lasting.keys()
            self._taken = {group: texts for group, texts in self._taken.items() if group in groups}
            self._renew(known, lasting, last=last)
            return {
                group: text
                for group, text in self._texts.items()
                if group in lasting or text.text != there.get(group, text.text)
            }

    def _renew(self, known: ClusterTraffic, lasting: Mapping[str, LearnedGroup], *, last: bool) -> None:
        now = self._clock()
        groups = self._own.keys() | lasting.keys()
        whole = {group: _with_resting(lasting.get(group, NOTHING), self._own.get(group, ()), known) for group in groups}
        self._own = {group: learned.edges.keys() for group, learned in whole.items() if learned.edges}
        self._texts = {
            group: self._text(group, learned, known.graph.costs, now, last=last)
            for group, learned in whole.items()
            if learned.edges or group in lasting
        }

    def _take_in(self) -> None:
        """Whatever is there and is not ours."""
        for row in self._there.values():
            if row.learned and row.learned not in self._taken.get(row.group, ()):
                self._note(row.group, row.learned)
                self._restored += 1
                self._restore(row.group, row.learned)
                learned = read(row.learned, row.group)
                self._texts[row.group] = Text(row.learned, learned, self._clock())
                self._own[row.group] = {*self._own.get(row.group, ()), *learned.edges}

    def _note(self, group: str, text: str) -> None:
        self._taken[group] = (*self._taken.get(group, ()), text)[-KEPT:]

    def _text(self, group: str, whole: LearnedGroup, costs: Costs, now: float, *, last: bool) -> Text:
        before = self._texts.get(group)
        due = last or before is None or not before.text or now - before.at >= REWRITE_S
        if before is not None and not (due and notable(before.learned, whole, costs)):
            return before
        text = written(whole, costs)
        self._note(group, text)
        return Text(text, whole, now)


def notable(before: LearnedGroup, after: LearnedGroup, costs: Costs) -> bool:
    """Whether so much has changed that it is worth writing. A new edge always is, however light: it may be all that is
    known of a workload.
    """
    if before.members != after.members or after.edges.keys() - before.edges.keys():
        return True
    nothing = Rate(0.0, 0.0)
    weights = [
        (costs.weight(key.kind, before.edges.get(key, nothing)), costs.weight(key.kind, after.edges.get(key, nothing)))
        for key in before.edges.keys() | after.edges.keys()
    ]
    return sum(abs(earlier - later) for earlier, later in weights) > NOTABLE * sum(earlier for earlier, _ in weights)


def _with_resting(learned: LearnedGroup, before: Collection[Key], known: ClusterTraffic) -> LearnedGroup:
    """With the edges that were the group's before and are still remembered, though nobody who runs says that group now:
    of workloads that are scaled to nothing.
    """
    resting = {
        key: rate
        for key in before
        if (rate := known.graph.edges.get(key)) is not None
        and not known.group_of(key.source)
        and not known.group_of(key.target)
    }
    return LearnedGroup(learned.members, {**resting, **learned.edges})
