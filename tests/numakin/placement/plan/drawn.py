"""Problems of partition, drawn by hypothesis, and what a state is worth, counted from pairs."""

from __future__ import annotations

from itertools import product

from hypothesis import strategies as st

from numakin.placement.plan.partition import PartitionProblem, PartitionState


@st.composite
def problems(draw, kinds=8, most=3):
    count = draw(st.integers(1, kinds))
    bins = draw(st.integers(1, 4))
    pulls = [{} for _ in range(count)]
    for a in range(count):
        for b in range(a + 1):
            pull = draw(st.sampled_from([0.0, 0.0, 0.5, 1.0, 3.0]))
            if pull:
                pulls[a][b] = pulls[b][a] = pull
    return PartitionProblem(
        sizes=[(draw(st.integers(0, 5)), draw(st.integers(0, 5))) for _ in range(count)],
        counts=[draw(st.integers(0, most)) for _ in range(count)],
        pulls=pulls,
        capacity=[(draw(st.integers(0, 12)), draw(st.integers(0, 12))) for _ in range(bins)],
        nearness=[[1.0 if a == b else 0.05 for b in range(bins)] for a in range(bins)],
        pinned=[[0] * bins for _ in range(count)],
    )


def local(state: PartitionState) -> float:
    """The score, counted anew from pairs."""
    problem, total = state.problem, 0.0
    for a, row in enumerate(state.counts):
        for b, pull in problem.pulls[a].items():
            for first, other in product(range(problem.bins), repeat=2):
                pairs = row[first] * (state.counts[b][other] - (a == b and first == other))
                total += pull * problem.nearness[first][other] * pairs / 2
        total -= row[-1] * state.homeless[a]
    return total
