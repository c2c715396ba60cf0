"""The search for a good partition: within capacity, with the heaviest traffic inside the parts.

From several starts it climbs by the best moves and swaps while they gain (Kernighan and Lin 1970; Fiduccia and
Mattheyses 1982), then anneals from the best, which crosses what climbing can't (Johnson, Aragon, McGeoch and Schevon
1989), and climbs once more. Its randomness comes from a fixed seed, its length is counted in steps: same problem, same
answer, on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from numakin.placement.plan.annealing import cooled
from numakin.placement.plan.partition import EPSILON, PartitionProblem, PartitionState

COLDEST = 0.003
"""Where annealing ends, in what a replica exchanges on average."""

AFRESH = (2.0, 2.0, 0.5)
"""Where annealings start, one after another from the best so far: hot forgets the state that it was given, warm
improves on it. Two hot ones and a warm one come within one per cent of what many times their steps find.
"""

ANEW = (0.3, 0.1)
"""To improve on a state that was good a moment ago."""

LEAST_STEPS, MOST_STEPS = 40_000, 200_000
"""Of one annealing: about 0.1 s and 0.5 s of one CPU. What the largest machines would gain by more, later plans gain,
which begin with the one before.
"""

BRIEF_STEPS, BRIEF_SIZE = 2_000, 2_000
"""Of one annealing for a plan that is waited for (5 ms), and up to how many replicas times bins: larger problems would
take twice the time that climbing takes, and gain less than a hundredth.
"""


IsDeclined = Callable[[int, int, int, int], bool]
"""Of a kind, its source, the kind to swap with or -1, and the target: whether that step is not to be taken."""


def solve(
    problem: PartitionProblem,
    starts: Sequence[Sequence[Sequence[int]]] = (),
    effort: int = 40,
    heats: Sequence[float] = AFRESH,
) -> PartitionState:
    """The best state found. effort: steps of each annealing for each replica and bin; 0: climb only.

    starts: states to try first (kinds x bins; what no longer fits is placed anew). Never worse than any of them, nor
    than placing the replicas greedily one by one.
    """
    states = [*(PartitionState.of(problem, start) for start in starts), _grown(problem), _by_size(problem)]
    for state in states:
        climb(state)
    best = max(states, key=PartitionState.score)
    if not effort:
        return best
    return _annealed(best, min(MOST_STEPS, max(LEAST_STEPS, effort * sum(problem.counts) * problem.bins)), heats)


def solve_briefly(problem: PartitionProblem, starts: Sequence[Sequence[Sequence[int]]] = ()) -> PartitionState:
    """As `solve`, in some tens of milliseconds."""
    best = solve(problem, starts, effort=0)
    return _annealed(best, BRIEF_STEPS, AFRESH) if sum(problem.counts) * problem.bins <= BRIEF_SIZE else best


def _annealed(best: PartitionState, steps: int, heats: Sequence[float]) -> PartitionState:
    if best.problem.bins < 2:
        return best
    for seed, hottest in enumerate(heats):
        best = max(best, anneal(best, steps, seed, hottest), key=PartitionState.score)
    return best


def climbed(state: PartitionState) -> PartitionState:
    """The state that climbing leads to from this one."""
    higher = state.copy()
    climb(higher)
    return higher


def climb(state: PartitionState) -> None:
    """Moves and swaps, each the best for its replica, until none gains."""
    bins = range(state.nowhere)
    active = {*bins, state.nowhere}
    least = EPSILON * state.scale
    while active:
        touched: set[int] = set()
        for kind, row in enumerate(state.counts):
            for source in range(len(row)):
                if not row[source] or state.movable(kind, source) <= 0:
                    continue
                targets = bins if source in active else [bin_ for bin_ in bins if bin_ in active]
                gain, other, target = best_step(state, kind, source, targets)
                if gain > least:
                    state.move(kind, source, target)
                    if other >= 0:
                        state.move(other, target, source)
                    touched |= {source, target}
        active = touched


def best_step(
    state: PartitionState,
    kind: int,
    source: int,
    targets: Sequence[int],
    *,
    swaps: bool = True,
    declined: IsDeclined | None = None,
    pays: float = 0.0,
) -> tuple[float, int, int]:
    """(gain, kind to swap with or -1, target) of the best step for one replica; nothing gains: (0, -1, source).

    pays: what a swap gains at the least beyond the move of one of the two alone, where that has room, declined or not:
    else the other would be moved for next to nothing.
    """
    best = (0.0, -1, source)
    for target in targets:
        if target == source:
            continue
        forward = state.gain(kind, source, target)
        if (
            forward > best[0]
            and state.fits(kind, target)
            and not (declined is not None and declined(kind, source, -1, target))
        ):
            best = (forward, -1, target)
        for other in state.present[target] if swaps else ():
            # A swap gains at most both moves; most pairs end here.
            backward = state.gain(other, target, source)
            if forward + backward <= best[0] or other == kind or state.movable(other, target) <= 0:
                continue
            gain = state.swap_gain(kind, source, other, target)
            if gain <= best[0] or not state.swap_fits(kind, source, other, target):
                continue
            alone = max(forward if state.fits(kind, target) else 0.0, backward if state.fits(other, source) else 0.0)
            if gain < alone + pays:
                continue
            if declined is None or not declined(kind, source, other, target):
                best = (gain, other, target)
    return best


def _grown(problem: PartitionProblem) -> PartitionState:
    """Bin after bin, always the replica with the largest share of its traffic inside; the first of a bin talks most."""
    state = PartitionState(problem)
    nowhere = problem.bins
    talk = [sum(pull * problem.counts[other] for other, pull in row.items()) or 1.0 for row in problem.pulls]
    for bin_ in range(nowhere):
        while fitting := [k for k, row in enumerate(state.counts) if row[nowhere] and state.fits(k, bin_)]:
            chosen = max(fitting, key=lambda kind: (state.attraction[kind][bin_] / talk[kind], talk[kind], -kind))
            state.move(chosen, nowhere, bin_)
    return state


def _by_size(problem: PartitionProblem) -> PartitionState:
    """The largest first, each where it is drawn most: what is likeliest to place all."""
    state = PartitionState(problem)
    kinds = range(len(problem.counts))
    state.fill(sorted(kinds, key=lambda kind: (-problem.sizes[kind][0], -problem.sizes[kind][1], kind)))
    return state


def anneal(start: PartitionState, steps: int, seed: int, hottest: float) -> PartitionState:
    """Where so many steps lead, down to the coldest, and climbing from there."""
    state = cooled(start, steps, seed, hottest, COLDEST)
    climb(state)
    return state
