"""What was learned outlives every extender: it is read from the AffinityGroup objects at the start, and the replica
that publishes writes it back there.

Nothing at the API server is written over before it has been taken in: neither what the last extender left, nor what
another replica wrote while this one was not the one to publish.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from extender.kube.objects.grouprows import GroupRow
from extender.state.pods import Changes
from extender.traffic.known import ClusterTraffic
from extender.traffic.learned import NOTHING, LearnedGroup, read, written
from numakin.placement.traffic.graph import Amount, Costs, Key

REWRITE_S = 60.0
"""Between two texts of one group: what is lost with all replicas at once when none can end in peace."""

NOTABLE = 0.1
"""A text is written anew when it lacks an edge, a member or a workload's use, or when so much of the group's traffic
differs from what was written last. Rates never stand still: else every object would be written each minute.
"""

NOTABLE_USE = 0.2
"""Or when a workload's use differs by so much, which is when a node sends another."""

KEPT = 4
"""Texts of a group that are known to be taken in: the watch may be that far behind what we write."""


@dataclass(frozen=True, slots=True)
class Text:
    """What a group's object says, or is to say. learned: what the text was made of, also what its bound cut off, which
    is no news the next minute. at: seconds, monotonic. edges: of the group, as of now: also those that were not
    notable enough for another text.
    """

    text: str
    learned: LearnedGroup
    at: float
    edges: Collection[Key]


@dataclass(frozen=True, slots=True)
class _SavedGroup:
    """What is known of a group's text. taken: texts that were taken in or are ours, the latest last. text: what its
    object should say; None where nothing is known that would be worth writing. Only a group with a text has edges.
    """

    taken: tuple[str, ...] = ()
    text: Text | None = None

    @property
    def edges(self) -> Collection[Key]:
        """The group's when its text was last made, also when no pod names the group any more."""
        return self.text.edges if self.text is not None else ()

    def with_text(self, text: Text) -> _SavedGroup:
        return _SavedGroup((*self.taken, text.text)[-KEPT:], text)


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
        self._groups: dict[str, _SavedGroup] = {}
        self.current = False
        """Whether all that is at the API server was part of what is known when `texts` was last asked."""

    def changed(self, changes: Changes[GroupRow]) -> None:
        """What the API server reports of the objects."""
        rows = {row.key: row for row in changes.rows}
        with self._lock:
            before = {} if changes.whole else self._there
            self._there = {key: row for key, row in (before | rows).items() if key not in changes.gone}
            if changes.whole and not self._synced:
                self._synced = True
                self._take_in()

    def texts(self, *, last: bool = False) -> Mapping[str, Text]:
        """By group, NAMESPACE/NAME, what its object should say; a group without one is left as it is. One of which no
        more is known is given as long as its object, if it still has one, says something else.

        None are given before what is at the API server was read and is part of what is known. last: this is
        the last call, so that what is new is not kept back for its minute.
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
            self._renew(known, lasting, there, last=last)
            return {
                name: group.text
                for name, group in self._groups.items()
                if group.text is not None and (name in lasting or group.text.text != there.get(name, group.text.text))
            }

    def _renew(
        self, known: ClusterTraffic, lasting: Mapping[str, LearnedGroup], there: Mapping[str, str], *, last: bool
    ) -> None:
        """Forgets of a group what was taken in once neither its object nor a member is there, and all of it once it has
        no edges either.
        """
        now = self._clock()
        renewed = {}
        for name in self._groups.keys() | lasting.keys():
            group = self._groups.get(name, _SavedGroup())
            group = group if name in there or name in lasting else replace(group, taken=())
            whole = _with_resting(lasting.get(name, NOTHING), group.edges, known)
            if whole.edges or name in lasting:
                renewed[name] = _rewritten(group, whole, known.graph.costs, now, last=last)
            elif group.taken:
                renewed[name] = replace(group, text=None)
        self._groups = renewed

    def _take_in(self) -> None:
        """Whatever is there and is not ours."""
        for row in self._there.values():
            group = self._groups.get(row.group, _SavedGroup())
            if row.learned and row.learned not in group.taken:
                self._restored += 1
                self._restore(row.group, row.learned)
                learned = read(row.learned, row.group)
                text = Text(row.learned, learned, self._clock(), {*group.edges, *learned.edges})
                self._groups[row.group] = group.with_text(text)


def _rewritten(group: _SavedGroup, whole: LearnedGroup, costs: Costs, now: float, *, last: bool) -> _SavedGroup:
    """With another text, where that is due and worth it."""
    before, edges = group.text, whole.edges.keys()
    due = last or before is None or not before.text or now - before.at >= REWRITE_S
    if before is not None and not (due and notable(before.learned, whole, costs)):
        return replace(group, text=replace(before, edges=edges))
    return group.with_text(Text(written(whole, costs), whole, now, edges))


def notable(before: LearnedGroup, after: LearnedGroup, costs: Costs) -> bool:
    """Whether so much has changed that it is worth writing. A new edge always is, however light: it may be all that is
    known of a workload.
    """
    if before.members != after.members or after.edges.keys() - before.edges.keys():
        return True
    if any(abs(milli - before.uses.get(name, 0)) > NOTABLE_USE * milli for name, milli in after.uses.items()):
        return True
    nothing = Amount()
    weights = [
        (costs.weight(key.kind, before.edges.get(key, nothing)), costs.weight(key.kind, after.edges.get(key, nothing)))
        for key in before.edges.keys() | after.edges.keys()
    ]
    return sum(abs(earlier - later) for earlier, later in weights) > NOTABLE * sum(earlier for earlier, _ in weights)


def _with_resting(learned: LearnedGroup, before: Collection[Key], known: ClusterTraffic) -> LearnedGroup:
    """With the edges that were the group's before and are still remembered, though no running pod is of that group now:
    those of workloads that are scaled to nothing.
    """
    resting = {
        key: rate
        for key in before
        if (rate := known.graph.edges.get(key)) is not None
        and not known.group_of(key.source)
        and not known.group_of(key.target)
    }
    return replace(learned, edges={**resting, **learned.edges})
