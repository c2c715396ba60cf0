"""What kube-scheduler gets: integers that use their range, and of which one leads."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.scoring.points import BEST, LEAD
from extender.scoring.points import points as ranked
from extender.scoring.single import NodeScores
from extender.state.columns.candidates import Candidates, age_factor
from extender.state.node_domains import NEAREST

RATED = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(lambda entry: (0.7 * entry[0] + 0.3 * entry[1], entry[0]))
"""A node's score, and its kin."""


def names(count):
    return [f"node-{at}" for at in range(count)]


def candidates(listed, slot=None, free=1.0, nearness=None):
    """free: the share of each node's CPUs that nobody requests."""
    count = len(listed)
    numbers = np.arange(count)
    return Candidates(
        names=listed,
        views=[None] * count,
        ages=np.zeros(count),
        placing=np.ones(count, dtype=bool),
        free_share=np.broadcast_to(np.array(free, dtype=float), count),
        limited=np.zeros(count, dtype=bool),
        slots=numbers,
        revisions=numbers,
        slot=slot,
        nearness=None if nearness is None else np.array(nearness),
    )


def points(rows, factors=1.0, slot=None, group="shop", free=1.0, following=None, nearness=None, calm=None):
    """rows: (score, kin) of each node. following: what can follow on each, in millicores. nearness: of kin on other
    nodes. calm: where kin count.
    """
    scores, kins = np.array([*rows], dtype=float).reshape(-1, 2).T
    count = len(scores)
    follow = None if following is None else np.array(following, dtype=float)
    calms = None if calm is None else np.array(calm)
    weighed = NodeScores(scores, kins, np.ones(count, dtype=bool), follow, calm=calms)
    return ranked(candidates(names(count), slot, free, nearness), weighed, np.broadcast_to(factors, count), group)


def test_a_share_of_the_kin_counts_in_full_where_nobody_has_more():
    """A group over three nodes: the one with the largest part gets all the points."""
    assert [*points((0.7 * kin + 0.3, kin) for kin in (0.5, 0.3, 0.2, 0.0)).scores] == [10, 4, 3, 2]


def test_without_kin_room_and_emptiness_have_the_whole_range():
    assert [*points([(0.3, 0), (0.25, 0), (0.1, 0)]).scores] == [10, 5, 2]


def test_the_node_with_the_kin_leads_by_all_points_however_little_room_is_left_there():
    """kube-scheduler's own plugins are for an empty node most where the other is nearly full."""
    assert [*points([(0.7, 1.0), (0.3, 0.0)]).scores] == [10, 3]


def test_a_group_begins_where_most_can_follow_and_its_pod_fits():
    result = points([(0.3, 0), (0.2, 0), (0.0, 0)], following=[2000, 4000, 9000])
    assert [*result.scores] == [3, 10, 0]
    assert result.leader == 1


def test_where_nobody_can_follow_room_and_emptiness_say_it():
    assert points([(0.2, 0), (0.3, 0)], following=[0, 0]).leader == 1


def test_of_equal_nodes_one_leads():
    result = points([(0.5, 0.3)] * 5)
    assert sorted(result.scores) == [BEST - LEAD] * 4 + [BEST]
    assert result.scores[result.leader] == BEST


def test_of_equal_nodes_a_group_always_gets_the_same_in_whatever_order_they_are_offered():
    count, rows = 40, [(0.3, 0.0)] * 40
    scores = NodeScores(np.full(count, 0.3), np.zeros(count), np.ones(count, dtype=bool))
    leader = names(count)[points(rows).leader]
    shuffled = random.Random(1).sample(names(count), count)
    result = ranked(candidates(shuffled), scores, np.ones(count), "shop")
    assert shuffled[result.leader] == leader


def test_groups_spread_over_equal_nodes():
    leaders = Counter(points([(0.3, 0.0)] * 10, group=f"default/pair-{at}").leader for at in range(200))
    assert len(leaders) == 10
    assert max(leaders.values()) < 45


def test_of_equal_nodes_the_emptiest_as_a_whole_leads():
    """Their best NUMA nodes are alike."""
    assert all(points([(0.3, 0.0)] * 3, free=[0.5, 1.0, 0.5], group=f"g{at}").leader == 1 for at in range(9))


def test_without_kin_on_any_node_those_near_kin_go_before_emptier_ones():
    result = points([(0.1, 0), (0.3, 0), (0.05, 0)], nearness=[0.01, 0.0, 0.05])
    assert result.leader == 2


def test_nor_does_the_nearest_lead_where_the_pod_would_crowd_or_does_not_fit():
    assert points([(0.1, 0), (0.3, 0), (0.0, 0)], nearness=[0.05, 0.0, 0.05], calm=[False, True, True]).leader == 1


@given(st.floats(0.2, 1), st.lists(st.tuples(st.floats(0, 0.3), st.floats(0, NEAREST)), min_size=1, max_size=6))
def test_a_node_with_all_the_kin_leads_however_many_are_near_others(pull, others):
    """pull: of the NUMA node that is left there, down to a distance of 50."""
    rows = [(0.7 * pull, pull), *((score, 0.0) for score, _ in others)]
    assert points(rows, nearness=[0.0, *(near for _, near in others)]).leader == 0


def test_a_planned_slot_leads_by_more_than_spreading_weighs():
    """Whoever has all the kin there are."""
    result = points([(1.0, 1.0), (0.3, 0.0), (0.2, 0.0)], slot=1)
    assert result.leader == 1
    assert result.scores[1] - max(result.scores[0], result.scores[2]) >= LEAD


def test_a_slot_on_a_node_that_does_not_take_the_pod_counts_for_nothing():
    assert [*points([(0.3, 0.0), (0.0, 0.0)], slot=1).scores] == [10, 0]


@given(st.lists(st.tuples(RATED, st.floats(0, 1)), max_size=8), st.integers(0, 9))
def test_scores_are_integers_from_0_to_10_and_one_leads_where_any_node_would_take_the_pod(rows, slot):
    result = points(
        [entry for entry, _ in rows], [factor for _, factor in rows], slot=slot if slot < len(rows) else None
    )
    assert all(type(score) is int and 0 <= score <= BEST for score in result.scores)
    others = [score for at, score in enumerate(result.scores) if at != result.leader]
    if result.leader is None:
        assert not any(result.scores)
    else:
        assert result.scores[result.leader] >= LEAD + max(others, default=0)


@pytest.mark.parametrize(("age", "factor"), [(0, 1), (15, 1), (37.5, 0.5), (60, 0), (100, 0)])
def test_a_report_counts_in_full_while_fresh_and_then_less_with_its_age(age, factor):
    assert age_factor(age, 60) == pytest.approx(factor)
