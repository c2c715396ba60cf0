"""Annealing: steps drawn by lot, of which those that lose are taken the more seldom the colder it is.

What is exchanged with a replica is kept by where its peers are, and not for each bin as `PartitionState` has it:
climbing looks at all bins and seldom moves, whereas here a step that is tried concerns two bins, and one that is taken
all peers of who moves. With 64 bins that takes a fifth of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp
from random import Random

from numakin.placement.plan.partition import EPSILON, PartitionState, Seats

DRAWN = 0.8
"""Share of the steps that are tried towards a peer; the others go anywhere."""


def cooled(start: PartitionState, steps: int, seed: int, hottest: float, coldest: float) -> PartitionState:
    """Where so many steps of annealing lead. A step that fits alone is a move, another a swap with a replica that is
    there.
    """
    problem = start.problem
    crowd = Crowd(start)
    talk = 2 * problem.traffic / max(1, sum(problem.counts))
    if not talk or not crowd.movable:
        return start.copy()
    draw = Random(seed).random  # noqa: S311 (lots are drawn here, no secrets)
    heat, cooling = hottest * talk, (coldest / hottest) ** (1 / steps)
    for _ in range(steps):
        heat *= cooling
        member = crowd.movable[int(draw() * len(crowd.movable))]
        target = _target(crowd, member, draw)
        if target in (member.bin, crowd.nowhere):
            continue
        if crowd.fits(member.kind, target):
            other, gain = None, crowd.gain(member.kind, member.bin, target)
        else:
            other = _partner(crowd, member, target, draw)
            if other is None:
                continue
            gain = crowd.swap_gain(member.kind, member.bin, other.kind, target)
        if gain >= 0 or draw() < exp(gain / heat):
            source = member.bin
            crowd.move(member, target)
            if other is not None:
                crowd.move(other, source)
    return crowd.moved()


@dataclass(eq=False, slots=True)
class Replica:
    """A replica; replicas of one kind differ by identity. home: where it was."""

    kind: int
    bin: int
    home: int


class Crowd(Seats):
    """Who is where, for drawing lots: movable replicas in all and by bin, all replicas by kind."""

    def __init__(self, start: PartitionState) -> None:
        super().__init__(start.problem)
        self.free = [room[:] for room in start.free]
        self.movable: list[Replica] = []
        self.inside: list[list[Replica]] = [[] for _ in range(self.nowhere + 1)]
        self.peers = [list(pulls) for pulls in self.problem.pulls]
        self.of_kind: list[list[Replica]] = [[] for _ in start.counts]
        self._start = start
        self._drawn: list[dict[int, float]] = [{} for _ in start.counts]
        self._near_to: list[tuple[float, ...]] = [*zip(*start.nearness, strict=True)]
        self._negligible = EPSILON * start.scale
        for kind, row in enumerate(start.counts):
            for bin_, count in enumerate(row):
                if not count:
                    continue
                members = [Replica(kind, bin_, bin_) for _ in range(count)]
                free = members[: start.movable(kind, bin_)]
                self.of_kind[kind] += members
                self.movable += free
                self.inside[bin_] += free
                for other, pull in self.problem.pulls[kind].items():
                    self._drawn[other][bin_] = self._drawn[other].get(bin_, 0.0) + count * pull

    def gain(self, kind: int, source: int, target: int) -> float:
        here, there, start = self._near_to[source], self._near_to[target], self._start
        gained = self.problem.pulls[kind].get(kind, 0.0) * (here[source] - there[source])
        for bin_, drawn in self._drawn[kind].items():
            gained += drawn * (there[bin_] - here[bin_])
        if start.price:
            anchors = start.anchors[kind]
            gained += start.price * ((target in anchors) - (source in anchors))
        if source == self.nowhere:
            return gained + self.homeless[kind]
        return gained - self.homeless[kind] if target == self.nowhere else gained

    def move(self, member: Replica, target: int) -> None:
        source = member.bin
        self.inside[source].remove(member)
        self.inside[target].append(member)
        member.bin = target
        self.take(member.kind, source, target)
        for other, pull in self.problem.pulls[member.kind].items():
            drawn = self._drawn[other]
            left = drawn.pop(source, 0.0) - pull
            if left > self._negligible:
                drawn[source] = left
            drawn[target] = drawn.get(target, 0.0) + pull

    def moved(self) -> PartitionState:
        """As it was at the start, with all where they are now."""
        state = self._start.copy()
        for member in self.movable:
            if member.bin != member.home:
                state.move(member.kind, member.home, member.bin)
        return state


def _target(crowd: Crowd, member: Replica, draw: Callable[[], float]) -> int:
    """Where a peer is, or anywhere."""
    near = crowd.peers[member.kind]
    if near and draw() < DRAWN:
        others = crowd.of_kind[near[int(draw() * len(near))]]
        if others:
            return others[int(draw() * len(others))].bin
    return int(draw() * crowd.nowhere)


def _partner(crowd: Crowd, member: Replica, target: int, draw: Callable[[], float]) -> Replica | None:
    """A member there to change places with."""
    there = crowd.inside[target]
    if not there:
        return None
    other = there[int(draw() * len(there))]
    fitting = other.kind != member.kind and crowd.swap_fits(member.kind, member.bin, other.kind, target)
    return other if fitting else None
