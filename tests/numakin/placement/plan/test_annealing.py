"""What annealing takes a step to gain is what it gains by the state that is searched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.plan.annealing import Crowd, cooled
from numakin.placement.plan.partition import PartitionState
from tests.numakin.placement.plan.drawn import local, problems


@given(problems(), st.sampled_from([0.0, 0.7]), st.data())
def test_each_step_gains_what_it_gains_by_the_state(problem, price, data):
    start = PartitionState(problem)
    start.fill(range(len(problem.counts)))
    state = start.anchored(price)
    crowd = Crowd(state.copy())
    for member in data.draw(st.lists(st.sampled_from(crowd.movable), max_size=8)) if crowd.movable else ():
        target = data.draw(st.integers(0, problem.bins))
        if target == member.bin:
            continue
        source, kind = member.bin, member.kind
        assert crowd.fits(kind, target) == state.fits(kind, target)
        assert crowd.gain(kind, source, target) == pytest.approx(state.gain(kind, source, target), abs=1e-6)
        for other in crowd.inside[target]:
            swap = kind, source, other.kind, target
            assert crowd.swap_gain(*swap) == pytest.approx(state.swap_gain(*swap), abs=1e-6)
        crowd.move(member, target)
        state.move(kind, source, target)
    assert crowd.moved().counts == state.counts


@given(problems(), st.integers(0, 9))
def test_the_state_in_the_end_is_whole_and_its_start_left_alone(problem, seed):
    start = PartitionState(problem)
    start.fill(range(len(problem.counts)))
    before = [row[:] for row in start.counts]
    end = cooled(start, 500, seed, 2.0, 0.1)
    assert end.score() == pytest.approx(local(end))
    assert [sum(row) for row in end.counts] == list(problem.counts)
    assert start.counts == before
