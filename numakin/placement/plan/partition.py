"""Parts of a graph on NUMA nodes: which replicas share one, within what each can hold.

Replicas of one kind are alike, so a state is a table of counts, kinds x bins. Bins are the NUMA nodes, and one more:
*nowhere*, which holds anything and costs more than any traffic could gain, so that every state that a search passes
through is within capacity. `numakin.placement.plan.search` looks for good states.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

EPSILON = 1e-9
"""Gains below this share of all traffic are rounding, not gains: without it two states could take turns for ever."""


@dataclass(frozen=True, slots=True)
class PartitionProblem:
    """sizes: (CPU, memory) of one replica, by kind. counts: replicas, by kind. pulls: for each kind, what one replica
    of it exchanges with one of another kind, symmetric, its own kind allowed. capacity: (CPU, memory) by bin.
    nearness: bin x bin, 1 at home, at most 1 elsewhere. pinned: counts that stay where they are, kinds x bins.
    """

    sizes: Sequence[tuple[int, int]]
    counts: Sequence[int]
    pulls: Sequence[dict[int, float]]
    capacity: Sequence[tuple[int, int]]
    nearness: Sequence[Sequence[float]]
    pinned: Sequence[Sequence[int]]

    @property
    def bins(self) -> int:
        return len(self.capacity)

    @property
    def traffic(self) -> float:
        """All that is exchanged, local or not."""
        total = 0.0
        for kind, pulls in enumerate(self.pulls):
            for other, pull in pulls.items():
                if other > kind:
                    total += pull * self.counts[kind] * self.counts[other]
                elif other == kind:
                    total += pull * self.counts[kind] * (self.counts[kind] - 1) / 2
        return total


class Seats:
    """What is free in each bin, the last of which is nowhere, and what a step there would gain."""

    def __init__(self, problem: PartitionProblem) -> None:
        self.problem, bins = problem, problem.bins
        self.nowhere = bins
        self.free = [list(room) for room in problem.capacity] + [[1 << 62, 1 << 62]]
        self.nearness = [[*row, 0.0] for row in problem.nearness] + [[0.0] * (bins + 1)]
        cpu = max(
            1,
            sum(size[0] * count for size, count in zip(problem.sizes, problem.counts, strict=True)),
        )
        self.scale = problem.traffic or 1.0
        # A replica that is nowhere loses more than all traffic; larger ones more still, so that they are seated
        # first.
        self.homeless = [self.scale * (1 + size[0] / cpu) for size in problem.sizes]

    def seats(self) -> Seats:
        """A copy of what is free, without who is where."""
        other = object.__new__(Seats)
        other.__dict__.update(self.__dict__)
        other.free = [row[:] for row in self.free]
        return other

    def overfull(self, before: Seats) -> set[int]:
        """The bins that hold more than they can, and more than before."""
        return {
            bin_
            for bin_, (now, was) in enumerate(zip(self.free, before.free, strict=True))
            if now[0] < min(0, was[0]) or now[1] < min(0, was[1])
        }

    def fits(self, kind: int, bin_: int) -> bool:
        size, free = self.problem.sizes[kind], self.free[bin_]
        return size[0] <= free[0] and size[1] <= free[1]

    def swap_fits(self, kind: int, source: int, other: int, target: int) -> bool:
        mine, theirs = self.problem.sizes[kind], self.problem.sizes[other]
        here, there = self.free[source], self.free[target]
        return (
            mine[0] - theirs[0] <= there[0]
            and theirs[0] - mine[0] <= here[0]
            and mine[1] - theirs[1] <= there[1]
            and theirs[1] - mine[1] <= here[1]
        )

    def take(self, kind: int, source: int, target: int) -> None:
        """One replica's room."""
        size = self.problem.sizes[kind]
        for dimension in (0, 1):
            self.free[source][dimension] += size[dimension]
            self.free[target][dimension] -= size[dimension]

    def gain(self, kind: int, source: int, target: int) -> float:
        """What moving one replica adds to the score."""
        raise NotImplementedError

    def swap_gain(self, kind: int, source: int, other: int, target: int) -> float:
        pull = self.problem.pulls[kind].get(other, 0.0)
        near = self.nearness
        twice = pull * (near[source][source] + near[target][target] - 2 * near[source][target])
        return self.gain(kind, source, target) + self.gain(other, target, source) - twice


class PartitionState(Seats):
    """Counts of each kind in each bin (the last bin is nowhere), with the attraction that each bin has for a replica
    of each kind kept up to date. present: the kinds that each bin has replicas of, ascending. price, anchors: as
    `anchored` has them, the bins by kind.
    """

    def __init__(self, problem: PartitionProblem) -> None:
        super().__init__(problem)
        bins = problem.bins
        self.counts = [[0] * bins + [count] for count in problem.counts]
        self.present = [*([] for _ in range(bins)), [kind for kind, count in enumerate(problem.counts) if count]]
        self.attraction = [[0.0] * (bins + 1) for _ in problem.counts]
        self.price, self.anchors = 0.0, list[frozenset[int]]()
        for kind, row in enumerate(problem.pinned):
            for bin_, count in enumerate(row):
                for _ in range(count):
                    self.move(kind, bins, bin_)

    @classmethod
    def of(cls, problem: PartitionProblem, start: Sequence[Sequence[int]]) -> PartitionState:
        """As in `start` (kinds x bins) where that still fits, the rest each where it is drawn most."""
        state = cls(problem)
        for kind, row in enumerate(start):
            for bin_, count in enumerate(row):
                for _ in range(count - problem.pinned[kind][bin_]):
                    if state.counts[kind][problem.bins] and state.fits(kind, bin_):
                        state.move(kind, problem.bins, bin_)
        state.fill(range(len(problem.counts)))
        return state

    @classmethod
    def as_is(cls, problem: PartitionProblem, counts: Sequence[Sequence[int]]) -> PartitionState:
        """Just so (kinds x bins), also where that is more than there is room for: nothing fits there then."""
        state = cls(problem)
        for kind, row in enumerate(counts):
            for bin_, count in enumerate(row):
                for _ in range(count - problem.pinned[kind][bin_]):
                    state.move(kind, problem.bins, bin_)
        return state

    def anchored(self, price: float) -> PartitionState:
        """A copy in which a step's gain is less by so much for each replica that leaves where it is now, and more for
        each that comes back.
        """
        other = self.copy()
        other.price = price
        other.anchors = [frozenset(bin_ for bin_, count in enumerate(row[:-1]) if count) for row in self.counts]
        for row, anchors in zip(other.attraction, other.anchors, strict=True):
            for bin_ in anchors:
                row[bin_] += price
        return other

    def copy(self) -> PartitionState:
        other = object.__new__(PartitionState)
        other.__dict__.update(self.__dict__)
        other.counts = [row[:] for row in self.counts]
        other.present = [kinds[:] for kinds in self.present]
        other.free = [row[:] for row in self.free]
        other.attraction = [row[:] for row in self.attraction]
        return other

    def fill(self, order: Iterable[int]) -> None:
        """Places what is nowhere, each replica where it is drawn most, else where there is most room."""
        nowhere = self.nowhere
        for kind in order:
            row = self.attraction[kind]
            while self.counts[kind][nowhere]:
                fitting = [bin_ for bin_ in range(nowhere) if self.fits(kind, bin_)]
                if not fitting:
                    break
                self.move(kind, nowhere, max(fitting, key=lambda bin_: (row[bin_], self.free[bin_][0], -bin_)))

    def movable(self, kind: int, bin_: int) -> int:
        if bin_ == self.nowhere:
            return self.counts[kind][bin_]
        return self.counts[kind][bin_] - self.problem.pinned[kind][bin_]

    def gain(self, kind: int, source: int, target: int) -> float:
        row, near, nowhere = self.attraction[kind], self.nearness[source], self.nowhere
        gained = row[target] - row[source] + self.problem.pulls[kind].get(kind, 0.0) * (near[source] - near[target])
        if source == nowhere:
            return gained + self.homeless[kind]
        return gained - self.homeless[kind] if target == nowhere else gained

    def move(self, kind: int, source: int, target: int) -> None:
        counts = self.counts[kind]
        counts[source] -= 1
        counts[target] += 1
        if not counts[source]:
            self.present[source].remove(kind)
        if counts[target] == 1:
            insort(self.present[target], kind)
        self.take(kind, source, target)
        here, there = self.nearness[source], self.nearness[target]
        nearer = [(bin_, b - a) for bin_, (a, b) in enumerate(zip(here, there, strict=True)) if a != b]
        for other, pull in self.problem.pulls[kind].items():
            row = self.attraction[other]
            for bin_, near in nearer:
                row[bin_] += pull * near

    def score(self) -> float:
        """Traffic weighted by nearness, less what is nowhere."""
        total = 0.0
        for kind, row in enumerate(self.counts):
            pull = self.problem.pulls[kind].get(kind, 0.0)
            for bin_, count in enumerate(row[:-1]):
                if count:
                    total += count * (self.attraction[kind][bin_] - pull * self.nearness[bin_][bin_]) / 2
            total -= row[-1] * self.homeless[kind]
        return total

    def locality(self) -> float:
        """Share of all traffic inside bins; 1 when there is none."""
        inside = 0.0
        for kind, pulls in enumerate(self.problem.pulls):
            for other, pull in pulls.items():
                for mine, theirs in zip(self.counts[kind][:-1], self.counts[other][:-1], strict=True):
                    inside += pull * mine * (theirs if other != kind else theirs - 1) / 2
        traffic = self.problem.traffic
        return inside / traffic if traffic else 1.0
