"""What kube-scheduler gets: integers that use their range."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.scoring.quality import integer_scores
from extender.scoring.weighing import NodeScores
from extender.state.column_store import age_factor

RATED = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(lambda one: (0.7 * one[0] + 0.3 * one[1], one[0]))
"""A node's score, and its kin."""


def points(rows, factors=1.0):
    """rows: (score, kin) of each node."""
    scores, kins = np.array([*rows], dtype=float).reshape(-1, 2).T
    return integer_scores(NodeScores(scores, kins), np.broadcast_to(factors, len(scores)))


def test_a_share_of_the_kin_counts_in_full_where_nobody_has_more():
    """A group over three nodes: the one with the largest part gets all the points."""
    assert points((0.7 * kin + 0.3, kin) for kin in (0.5, 0.3, 0.2, 0.0)) == [10, 7, 6, 3]


def test_without_kin_room_and_emptiness_have_the_whole_range():
    assert points([(0.3, 0), (0.25, 0), (0.1, 0)]) == [10, 8, 3]


def test_a_little_more_kin_is_at_least_a_point_more():
    best, other = points([(0.7 * 0.50 + 0.28, 0.50), (0.7 * 0.49 + 0.28, 0.49)])
    assert best == other + 1


def test_equal_nodes_get_equal_points():
    assert len(set(points([(0.5, 0.3)] * 5))) == 1


@given(st.lists(st.tuples(RATED, st.floats(0, 1)), max_size=8))
def test_scores_are_integers_from_0_to_10(rows):
    scores = points([one for one, _ in rows], [factor for _, factor in rows])
    assert all(type(score) is int and 0 <= score <= 10 for score in scores)


@pytest.mark.parametrize(("age", "factor"), [(0, 1), (15, 1), (37.5, 0.5), (60, 0), (100, 0)])
def test_a_report_counts_in_full_while_fresh_and_then_less_with_its_age(age, factor):
    assert age_factor(age, 60) == pytest.approx(factor)
