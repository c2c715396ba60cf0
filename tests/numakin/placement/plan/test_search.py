"""The search for a partition: within capacity, never worse than greedy, the same each time, optimal where that can be known."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings

from numakin.placement.plan.partition import PartitionProblem, PartitionState
from numakin.placement.plan.search import anneal, climbed, solve, solve_briefly
from tests import examples
from tests.numakin.placement.plan.drawn import local, problems

FEW = settings(max_examples=examples.of(25), deadline=None)
"""An annealing takes a tenth of a second."""


def loads(state: PartitionState) -> list[tuple[int, int]]:
    problem = state.problem
    return [
        tuple(
            sum(size[of] * row[number] for size, row in zip(problem.sizes, state.counts, strict=True)) for of in (0, 1)
        )
        for number in range(problem.bins)
    ]


@FEW
@given(problems())
def test_capacity_is_never_exceeded_and_nobody_is_lost(problem):
    state = solve(problem, effort=1)
    for (cpu, memory), (most_cpu, most_memory) in zip(loads(state), problem.capacity, strict=True):
        assert cpu <= most_cpu
        assert memory <= most_memory
    assert [sum(row) for row in state.counts] == list(problem.counts)


@FEW
@given(problems())
def test_the_score_kept_on_the_way_is_the_score_counted_anew(problem):
    state = solve(problem, effort=1)
    assert state.score() == pytest.approx(local(state))


@FEW
@given(problems())
def test_a_plan_is_never_worse_than_seating_greedily(problem):
    greedy = PartitionState(problem)
    greedy.fill(range(len(problem.counts)))
    rows = [row[:-1] for row in greedy.counts]
    assert solve(problem, starts=[rows], effort=1).score() >= greedy.score() - 1e-9 * greedy.scale


@FEW
@given(problems())
def test_the_same_problem_has_the_same_answer(problem):
    assert solve(problem, effort=1).counts == solve(problem, effort=1).counts


@FEW
@given(problems())
def test_climbing_never_descends_and_leaves_its_start_alone(problem):
    start = PartitionState(problem)
    start.fill(range(len(problem.counts)))
    before = [row[:] for row in start.counts]
    assert climbed(start).score() >= start.score() - 1e-9 * start.scale
    assert start.counts == before


@FEW
@given(problems(kinds=5, most=1))
def test_small_problems_are_solved_exactly(problem):
    best = max(_all_states(problem), key=lambda state: state.score())
    assert solve(problem).score() == pytest.approx(best.score())


@FEW
@given(problems())
def test_a_brief_search_is_never_worse_than_climbing_alone(problem):
    assert solve_briefly(problem).score() >= solve(problem, effort=0).score()


def _all_states(problem):
    kinds = [kind for kind, count in enumerate(problem.counts) if count]
    for chosen in product(range(problem.bins + 1), repeat=len(kinds)):
        state = PartitionState(problem)
        fits = True
        for kind, first in zip(kinds, chosen, strict=True):
            if first != problem.bins:
                fits = fits and state.fits(kind, first)
                state.move(kind, problem.bins, first)
        if fits:
            yield state


def test_who_is_pinned_stays():
    problem = PartitionProblem(
        sizes=[(1, 0), (1, 0)],
        counts=[1, 1],
        pulls=[{1: 1.0}, {0: 1.0}],
        capacity=[(2, 0), (2, 0)],
        nearness=[[1.0, 0.0], [0.0, 1.0]],
        pinned=[[0, 1], [0, 0]],
    )
    assert solve(problem).counts == [[0, 1, 0], [0, 1, 0]], "the other one comes to it"


def test_what_fits_nowhere_is_nowhere_and_the_largest_are_seated_first():
    problem = PartitionProblem(
        sizes=[(3, 0), (2, 0)],
        counts=[1, 1],
        pulls=[{}, {}],
        capacity=[(3, 0)],
        nearness=[[1.0]],
        pinned=[[0], [0]],
    )
    assert solve(problem).counts == [[1, 0], [0, 1]]


def test_annealing_crosses_what_climbing_can_not():
    """Two cliques of four, shuffled over two full bins: every swap of one pair loses before the next one gains."""
    cliques = [{b: 1.0 for b in range(8) if b % 2 == a % 2 and b != a} for a in range(8)]
    problem = PartitionProblem(
        sizes=[(1, 0)] * 8,
        counts=[1] * 8,
        pulls=cliques,
        capacity=[(4, 0), (4, 0)],
        nearness=[[1.0, 0.0], [0.0, 1.0]],
        pinned=[[0, 0]] * 8,
    )
    stuck = climbed(PartitionState.of(problem, [[1, 0]] * 4 + [[0, 1]] * 4))
    assert anneal(stuck, 20_000, 0, 2.0).locality() == 1.0
