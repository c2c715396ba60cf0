"""Parts of a graph on NUMA nodes: which replicas share one, within what each can hold, so that the heaviest traffic stays inside.

Replicas of one kind are alike, so a state is a table of counts, kinds x bins. Bins are the NUMA nodes, and one more: *nowhere*, which holds anything and
costs more than any traffic could gain, so that every state on the way is within capacity. The search is local: moves and swaps while they gain
(Kernighan and Lin 1970, Fiduccia and Mattheyses 1982), from several starts, then again after small random disturbances, of which the better state is kept.
Its randomness comes from a fixed seed: same problem, same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

EPSILON = 1e-9
"""Gains below this share of all traffic are rounding, not gains: without it two states could take turns for ever."""


@dataclass(frozen=True, slots=True)
class Problem:
    """sizes: (CPU, memory) of one replica, by kind. counts: replicas, by kind. pulls: for each kind, what one replica of it exchanges with one of another
    kind, symmetric, its own kind allowed. capacity: (CPU, memory) by bin. nearness: bin x bin, 1 at home, at most 1 elsewhere. pinned: counts that
    stay where they are, kinds x bins.
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
        for one, pulls in enumerate(self.pulls):
            for other, pull in pulls.items():
                if other > one:
                    total += pull * self.counts[one] * self.counts[other]
                elif other == one:
                    total += pull * self.counts[one] * (self.counts[one] - 1) / 2
        return total


class State:
    """Counts of each kind in each bin (the last bin is nowhere), with the attraction that each bin has for a replica of each kind kept up to date."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        bins = problem.bins
        self.counts = [[0] * bins + [count] for count in problem.counts]
        self.free = [list(one) for one in problem.capacity] + [[1 << 62, 1 << 62]]
        self.attraction = [[0.0] * (bins + 1) for _ in problem.counts]
        self._nearness = [[*row, 0.0] for row in problem.nearness] + [
            [0.0] * (bins + 1)
        ]
        cpu = max(
            1,
            sum(
                size[0] * count
                for size, count in zip(problem.sizes, problem.counts, strict=True)
            ),
        )
        self.scale = problem.traffic or 1.0
        # A replica that is nowhere loses more than all traffic; larger ones more still, so that they are seated first.
        self.homeless = [self.scale * (1 + size[0] / cpu) for size in problem.sizes]
        for kind, row in enumerate(problem.pinned):
            for bin_, count in enumerate(row):
                for _ in range(count):
                    self.move(kind, bins, bin_)

    @classmethod
    def of(cls, problem: Problem, start: Sequence[Sequence[int]]) -> State:
        """As in `start` (kinds x bins) where that still fits, the rest each where it is drawn most."""
        state = cls(problem)
        for kind, row in enumerate(start):
            for bin_, count in enumerate(row):
                for _ in range(count - problem.pinned[kind][bin_]):
                    if state.counts[kind][problem.bins] and state.fits(kind, bin_):
                        state.move(kind, problem.bins, bin_)
        _fill(state, range(len(problem.counts)))
        return state

    def copy(self) -> State:
        other = object.__new__(State)
        other.__dict__.update(self.__dict__)
        other.counts = [row[:] for row in self.counts]
        other.free = [row[:] for row in self.free]
        other.attraction = [row[:] for row in self.attraction]
        return other

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

    def movable(self, kind: int, bin_: int) -> int:
        if bin_ == self.problem.bins:
            return self.counts[kind][bin_]
        return self.counts[kind][bin_] - self.problem.pinned[kind][bin_]

    def gain(self, kind: int, source: int, target: int) -> float:
        """What moving one replica adds to the score."""
        pull = self.problem.pulls[kind].get(kind, 0.0)
        row, near = self.attraction[kind], self._nearness[source]
        gained = row[target] - row[source] + pull * (near[source] - near[target])
        nowhere = self.problem.bins
        if source == nowhere:
            return gained + self.homeless[kind]
        return gained - self.homeless[kind] if target == nowhere else gained

    def swap_gain(self, kind: int, source: int, other: int, target: int) -> float:
        pull = self.problem.pulls[kind].get(other, 0.0)
        near = self._nearness
        twice = pull * (
            near[source][source] + near[target][target] - 2 * near[source][target]
        )
        return (
            self.gain(kind, source, target) + self.gain(other, target, source) - twice
        )

    def move(self, kind: int, source: int, target: int) -> None:
        size = self.problem.sizes[kind]
        self.counts[kind][source] -= 1
        self.counts[kind][target] += 1
        for dimension in (0, 1):
            self.free[source][dimension] += size[dimension]
            self.free[target][dimension] -= size[dimension]
        added = [
            b - a
            for a, b in zip(self._nearness[source], self._nearness[target], strict=True)
        ]
        for other, pull in self.problem.pulls[kind].items():
            row = self.attraction[other]
            for bin_, near in enumerate(added):
                row[bin_] += pull * near

    def score(self) -> float:
        """Traffic weighted by nearness, less what is nowhere."""
        total = 0.0
        for kind, row in enumerate(self.counts):
            pull = self.problem.pulls[kind].get(kind, 0.0)
            for bin_, count in enumerate(row[:-1]):
                if count:
                    total += (
                        count
                        * (
                            self.attraction[kind][bin_]
                            - pull * self._nearness[bin_][bin_]
                        )
                        / 2
                    )
            total -= row[-1] * self.homeless[kind]
        return total

    def locality(self) -> float:
        """Share of all traffic inside bins; 1 when there is none."""
        inside = 0.0
        for kind, pulls in enumerate(self.problem.pulls):
            for other, pull in pulls.items():
                for mine, theirs in zip(
                    self.counts[kind][:-1], self.counts[other][:-1], strict=True
                ):
                    inside += (
                        pull * mine * (theirs if other != kind else theirs - 1) / 2
                    )
        traffic = self.problem.traffic
        return inside / traffic if traffic else 1.0


def solve(
    problem: Problem,
    starts: Sequence[Sequence[Sequence[int]]] = (),
    effort: int = 40,
    seed: int = 0,
) -> State:
    """The best state found. starts: states to try first (kinds x bins; what no longer fits is seated anew). effort: disturbances to try.

    Never worse than any of the starts, nor than placing the replicas greedily one by one.
    """
    random = Random(seed)
    best: State | None = None
    for state in [State.of(problem, start) for start in starts] + [
        _grown(problem),
        _by_size(problem),
        _grown(problem, random),
    ]:
        climb(state)
        if best is None or state.score() > best.score() + EPSILON * best.scale:
            best = state
    assert best is not None
    return _disturbed(best, random, effort)


def climb(state: State) -> None:
    """Moves and swaps, each the best for its replica, until none gains."""
    bins = range(state.problem.bins)
    active = set(range(state.problem.bins + 1))
    least = EPSILON * state.scale
    while active:
        touched: set[int] = set()
        for kind, row in enumerate(state.counts):
            for source in range(len(row)):
                if not row[source] or state.movable(kind, source) <= 0:
                    continue
                targets = (
                    bins if source in active else [one for one in bins if one in active]
                )
                gain, other, target = _best_step(state, kind, source, targets)
                if gain > least:
                    state.move(kind, source, target)
                    if other >= 0:
                        state.move(other, target, source)
                    touched |= {source, target}
        active = touched


def _best_step(
    state: State, kind: int, source: int, targets: Sequence[int]
) -> tuple[float, int, int]:
    """(gain, kind to swap with or -1, target) of the best step for one replica."""
    best = (0.0, -1, source)
    for target in targets:
        if target == source:
            continue
        if state.fits(kind, target):
            gain = state.gain(kind, source, target)
            if gain > best[0]:
                best = (gain, -1, target)
        forward = state.gain(kind, source, target)
        for other, row in enumerate(state.counts):
            if not row[target] or other == kind or state.movable(other, target) <= 0:
                continue
            # A swap gains at most both moves; most pairs end here.
            if forward + state.gain(other, target, source) <= best[0]:
                continue
            gain = state.swap_gain(kind, source, other, target)
            if gain > best[0] and state.swap_fits(kind, source, other, target):
                best = (gain, other, target)
    return best


def _grown(problem: Problem, random: Random | None = None) -> State:
    """Greedily, always the replica that is drawn most to where it fits; the first of a part is the one that talks most."""
    state = State(problem)
    nowhere = problem.bins
    talk = [
        sum(pull * problem.counts[other] for other, pull in pulls.items())
        for pulls in problem.pulls
    ]
    if random is not None:
        talk = [one * random.uniform(0.5, 1.5) for one in talk]
    open_bin = 0
    while any(row[nowhere] for row in state.counts):
        waiting = [kind for kind, row in enumerate(state.counts) if row[nowhere]]
        inside = [kind for kind in waiting if state.fits(kind, open_bin)]
        if not inside:
            open_bin += 1
            if open_bin == nowhere:
                break
            continue
        # Among those drawn here, the one with the larger share of its traffic inside: thin edges outward make good parts.
        row = max(
            inside,
            key=lambda kind: (
                state.attraction[kind][open_bin] / (talk[kind] or 1.0),
                talk[kind],
                -kind,
            ),
        )
        state.move(row, nowhere, open_bin)
    return state


def _by_size(problem: Problem) -> State:
    state = State(problem)
    _fill(
        state,
        sorted(
            range(len(problem.counts)),
            key=lambda kind: (-problem.sizes[kind][0], -problem.sizes[kind][1], kind),
        ),
    )
    return state


def _fill(state: State, order: Sequence[int] | range) -> None:
    """Seats what is nowhere, each replica where it is drawn most among where it fits; without any pull where there is most room."""
    nowhere = state.problem.bins
    for kind in order:
        while state.counts[kind][nowhere]:
            fitting = [bin_ for bin_ in range(nowhere) if state.fits(kind, bin_)]
            if not fitting:
                break
            state.move(
                kind,
                nowhere,
                max(
                    fitting,
                    key=lambda bin_: (
                        state.attraction[kind][bin_],
                        state.free[bin_][0],
                        -bin_,
                    ),
                ),
            )


def _disturbed(best: State, random: Random, effort: int) -> State:
    """After each of `effort` disturbances the better of the two states goes on."""
    bins = best.problem.bins
    if bins < 2:
        return best
    score = best.score()
    for turn in range(effort):
        state = best.copy()
        (_empty_two if turn % 2 else _scatter)(state, random)
        climb(state)
        after = state.score()
        if after > score + EPSILON * best.scale:
            best, score = state, after
    return best


def _empty_two(state: State, random: Random) -> None:
    """Two bins are emptied, and filled again in a random order."""
    bins = random.sample(range(state.problem.bins), 2)
    out = []
    for kind in range(len(state.counts)):
        for bin_ in bins:
            for _ in range(state.movable(kind, bin_)):
                state.move(kind, bin_, state.problem.bins)
                out.append(kind)
    random.shuffle(out)
    _fill(state, list(dict.fromkeys(out)))


def _scatter(state: State, random: Random) -> None:
    """A kind and those that it talks with are taken out, and seated again in a random order."""
    kind = random.randrange(len(state.counts))
    around = [kind, *state.problem.pulls[kind]]
    random.shuffle(around)
    for one in around:
        for bin_ in range(state.problem.bins):
            for _ in range(state.movable(one, bin_)):
                state.move(one, bin_, state.problem.bins)
    _fill(state, around)
