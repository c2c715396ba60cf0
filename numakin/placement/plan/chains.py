"""Chains of moves: several members that go together, where none of them, and no two that change places, gain alone.

A search from what is there finds a better state; of the members that are elsewhere in it, those are picked that
together gain most for each. So a cluster of members joins its peers as one, and three can change places in a ring.
Without a search, one comes to where it gains most, and those leave who lose least by making room for it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.plan.partition import EPSILON, PartitionState
from numakin.placement.plan.search import anneal, climbed

HEATS = (1.0, 0.3)
"""Where the two annealings from what is there begin: warm ones, which keep most of it."""

SEEDS = 24
"""Members that a chain is begun with, those first that gain most by themselves."""

ChainMove = tuple[int, int, int]
"""One replica of a kind, from a bin, to a bin."""

Ways = frozenset[tuple[str, NumaSet, CpuSet]]
"""A step as a set: reservations' keys, each with its target, and its cache domain there where that alone changes."""


@dataclass(frozen=True, slots=True)
class Chain:
    """gain: of all its moves together, as `PartitionState.gain` has it."""

    moves: tuple[ChainMove, ...]
    gain: float


def better(state: PartitionState, steps: int) -> PartitionState:
    """The best state that a search of so many steps finds from this one."""
    best = climbed(state)
    for seed, heat in enumerate(HEATS):
        best = max(best, anneal(best, steps, seed, heat), key=PartitionState.score)
    return best


def differences(state: PartitionState, target: PartitionState) -> list[ChainMove]:
    """The moves that lead from one state to the other."""
    moves = []
    for kind, (here, there) in enumerate(zip(state.counts, target.counts, strict=True)):
        leaving = [bin_ for bin_, count in enumerate(here[:-1]) for _ in range(count - there[bin_])]
        coming = [bin_ for bin_, count in enumerate(there[:-1]) for _ in range(count - here[bin_])]
        moves += [(kind, source, goal) for source, goal in zip(leaving, coming, strict=False)]
    return moves


def chains(state: PartitionState, moves: Sequence[ChainMove], budget: int) -> Iterator[Chain]:
    """Chains of at most `budget` of these moves, the most gain for each move first."""
    gains = {move: state.gain(*move) for move in moves}
    first = sorted(moves, key=lambda move: (-gains[move], move))[:SEEDS]
    grown = (chain for move in first for chain in _grown(state, move, moves, gains, budget))
    best: dict[tuple[ChainMove, ...], Chain] = {tuple(sorted(chain.moves)): chain for chain in grown}
    yield from sorted(best.values(), key=lambda chain: (-chain.gain / len(chain.moves), chain.moves))


def making_room(state: PartitionState, most: int) -> list[Chain]:
    """Chains of at most `most` moves: one comes to where there is no room for it, and some leave for its sake. The most
    gain for each move first; of those that would gain most by coming SEEDS are tried.
    """
    bins = range(state.problem.bins)
    coming = [
        (-state.gain(kind, source, target), (kind, source, target))
        for kind in range(len(state.counts))
        for source in bins
        if state.movable(kind, source) > 0
        for target in bins
        if target != source and not state.fits(kind, target)
    ]
    first = [move for loss, move in sorted(coming) if loss < 0][:SEEDS]
    found = filter(None, (_with_those_that_leave(state, move, most) for move in first))
    return sorted(found, key=lambda chain: (-chain.gain / len(chain.moves), chain.moves))


def _with_those_that_leave(state: PartitionState, first: ChainMove, most: int) -> Chain | None:
    """Always whoever loses least leaves next, for what it makes of the room that is missing. None where not enough of
    them can, or nothing is gained by it.
    """
    came, _, full = first
    trial, moves, gain = state.copy(), [first], state.gain(*first)
    trial.move(*first)
    while full in trial.overfull(state):
        leaving = [
            (trial.gain(kind, full, other) / part, -kind, -other)
            for kind in trial.present[full]
            if kind != came and trial.movable(kind, full) > 0 and (part := _part_of_missing(trial, kind, full))
            for other in range(trial.problem.bins)
            if other != full and trial.fits(kind, other)
        ]
        if not leaving or len(moves) == most:
            return None
        _, kind, other = max(leaving)
        moves.append((-kind, full, -other))
        gain += trial.gain(*moves[-1])
        trial.move(*moves[-1])
    return Chain(tuple(moves), gain) if gain > EPSILON * state.scale else None


def _part_of_missing(state: PartitionState, kind: int, full: int) -> float:
    """The part of a bin's missing room that a replica makes by leaving it, at most 1."""
    size, missing = state.problem.sizes[kind], [-free for free in state.free[full]]
    return min((min(1.0, own / room) for own, room in zip(size, missing, strict=True) if room > 0), default=1.0)


def first_that_holds(
    candidates: Iterable[Chain],
    ways_of: Callable[[Sequence[ChainMove]], Ways],
    declined: Container[Ways],
    least: float,
) -> Chain | None:
    """The first that was not declined. candidates: in the order of `chains`. least: what each member gains; those that
    a chain has beyond a declined one gain so much beyond it.
    """
    passed: list[tuple[Ways, float]] = []
    for chain in candidates:
        if chain.gain < least * len(chain.moves):
            return None
        ways = ways_of(chain.moves)
        if ways in declined:
            passed.append((ways, chain.gain))
        elif all(chain.gain >= gain + least * len(ways - less) for less, gain in passed if less < ways):
            return chain
    return None


def _grown(
    state: PartitionState, first: ChainMove, moves: Sequence[ChainMove], gains: Mapping[ChainMove, float], budget: int
) -> Iterator[Chain]:
    """Each chain that holds and gains on the way from one move to `budget` of them. gains: of each move as it is."""
    now, left, gains = state.seats(), [*moves], {**gains}
    of_kind: dict[int, list[ChainMove]] = {}
    for move in gains:
        of_kind.setdefault(move[0], []).append(move)
    chain: list[ChainMove] = []
    gain, following = 0.0, first
    while True:
        gain += gains[following]
        now.take(*following)
        chain.append(following)
        left.remove(following)
        short = now.overfull(state)
        if not short and gain > EPSILON * state.scale:
            yield Chain(tuple(chain), gain)
        # What makes room goes first; else what gains most.
        coming = [move for move in left if move[1] in short] or ([] if short else left)
        if not coming or len(chain) >= budget:
            return
        kind, source, target = following
        here, there = state.nearness[source], state.nearness[target]
        for peer, pull in state.problem.pulls[kind].items():
            for move in of_kind.get(peer, ()):
                _, leaving, coming_to = move
                gains[move] += pull * (there[coming_to] - here[coming_to] - there[leaving] + here[leaving])
        following = max(coming, key=lambda move: (gains[move], move))
