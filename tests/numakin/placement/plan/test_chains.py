"""Several members that move as one, where no move and no exchange gains."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numakin.placement.plan.chains import Chain, better, chains, differences, making_room
from numakin.placement.plan.partition import PartitionProblem, PartitionState
from tests import examples

STEPS = 5_000


def problem(pulls: dict[tuple[int, int], float], sizes: list[int], capacity: list[int]) -> PartitionProblem:
    """Members one of a kind."""
    symmetric: list[dict[int, float]] = [{} for _ in sizes]
    for (a, b), weight in pulls.items():
        symmetric[a][b] = symmetric[b][a] = weight
    bins = range(len(capacity))
    return PartitionProblem(
        sizes=[(size, 0) for size in sizes],
        counts=[1] * len(sizes),
        pulls=symmetric,
        capacity=[(size, 0) for size in capacity],
        nearness=[[float(a == b) for b in bins] for a in bins],
        pinned=[[0] * len(capacity) for _ in sizes],
    )


def test_a_cluster_goes_as_one_to_where_its_peers_are():
    """Two that hold together more than each is drawn to the others: alone each would lose."""
    pulls = {(0, 1): 5.0, (0, 2): 3.0, (1, 2): 3.0}
    state = PartitionState.as_is(problem(pulls, [1, 1, 2], [2, 4]), [[1, 0], [1, 0], [0, 1]])
    assert state.gain(0, 0, 1) < 0
    (chain, *_) = chains(state, differences(state, better(state, STEPS)), budget=4)
    assert sorted(chain.moves) == [(0, 0, 1), (1, 0, 1)]
    assert chain.gain == pytest.approx(6.0)


def test_a_chain_is_no_longer_than_the_budget():
    pulls = {(0, 1): 5.0, (0, 2): 3.0, (1, 2): 3.0}
    state = PartitionState.as_is(problem(pulls, [1, 1, 2], [2, 4]), [[1, 0], [1, 0], [0, 1]])
    assert list(chains(state, differences(state, better(state, STEPS)), budget=1)) == []


WORKER, PEERS, CACHES = 0, (1, 2), (3, 4)
WORKERS = problem(
    {(WORKER, 1): 5.0, (WORKER, 2): 5.0, **{(peer, cache): 1.0 for peer in PEERS for cache in CACHES}},
    [2, 2, 2, 1, 1],
    [6, 6],
)
WHERE = [[1, 0], *[[0, 1]] * 4]
APART = PartitionState.as_is(WORKERS, WHERE)
"""A worker's peers are where two caches take the room that it would need. None of the three alone gains by a move, and
no two that change places have room.
"""


def test_one_comes_to_its_peers_and_those_leave_for_it_that_lose_least():
    (chain,) = making_room(APART, most=3)
    assert (chain.moves[0], {*chain.moves[1:]}) == ((WORKER, 0, 1), {(cache, 1, 0) for cache in CACHES})
    assert chain.gain == pytest.approx(10.0 - 4.0)


@pytest.mark.parametrize(
    ("state", "most"),
    [
        (APART, 2),
        (PartitionState.as_is(replace(WORKERS, pinned=[[0, 0], *[[0, 1]] * 4]), WHERE), 3),
        (PartitionState.as_is(replace(WORKERS, capacity=[(6, 0), (8, 0)]), WHERE), 3),
    ],
    ids=["more members than may move", "nobody there may move", "there is room"],
)
def test_else_none_makes_room(state, most):
    moves = [chain.moves for chain in making_room(state, most)]
    assert all(len(chain) <= most and (WORKER, 0, 1) not in chain for chain in moves)


@settings(max_examples=examples.of(60))
@given(st.data())
def test_every_chain_fits_gains_what_it_says_and_is_within_the_budget(data):
    count = data.draw(st.integers(2, 9))
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=count, max_size=count))
    pairs = [(a, b) for a in range(count) for b in range(a)]
    pulls = {pair: data.draw(st.sampled_from([0.0, 1.0, 2.0, 7.0])) for pair in pairs}
    where = [data.draw(st.integers(0, 2)) for _ in sizes]
    counts = [[int(bin_ == home) for bin_ in range(3)] for home in where]
    state = PartitionState.as_is(problem(pulls, sizes, [10, 10, 10]), counts)
    budget = data.draw(st.integers(1, 5))
    found: list[Chain] = [*chains(state, differences(state, better(state, 500)), budget), *making_room(state, budget)]
    for chain in found:
        after = state.copy()
        for move in chain.moves:
            after.move(*move)
        assert len(chain.moves) <= budget
        assert len({kind for kind, _, _ in chain.moves}) == len(chain.moves)
        assert after.score() - state.score() == pytest.approx(chain.gain)
        assert chain.gain > 0
        for now, before in zip(after.free[:-1], state.free[:-1], strict=True):
            assert now[0] >= min(0, before[0]) or now[0] >= before[0]
