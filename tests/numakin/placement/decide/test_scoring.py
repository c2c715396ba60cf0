"""The terms of a score: pure numbers within 0 and 1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.decide.scoring import empty_share, kin_share, room_share, score

shares = st.floats(0, 1)
milli = st.integers(-200_000, 1_000_000)


@pytest.mark.parametrize(
    ("left", "wanted", "share"), [(0, 0, 1), (500, 1000, 0.5), (2000, 1000, 1), (-1, 1000, 0), (-1, 0, 1)]
)
def test_room_is_what_can_follow(left, wanted, share):
    assert room_share(left, wanted) == share


@pytest.mark.parametrize(
    ("left", "used", "capacity", "share"),
    [(4000, 0, 4000, 1), (1000, 0, 4000, 0.25), (4000, 3000, 4000, 0.25), (-5, 0, 4000, 0), (0, 0, 0, 0)],
)
def test_empty_is_what_is_neither_requested_nor_used(left, used, capacity, share):
    assert empty_share(left, used, capacity) == share


def test_without_peers_there_is_no_kin_share():
    assert kin_share(0.0, 0.0) == 0.0
    assert kin_share(1.0, 4.0) == 0.25


@given(shares, shares, shares, shares)
def test_a_score_is_within_0_and_1_and_kin_lead_it(kin, room, empty, span):
    assert 0.0 <= score(kin, room, empty, span) <= 1.0 + 1e-12
    assert score(1.0, 0.0, 0.0, 1.0) > score(0.5, 1.0, 1.0, 1.0)


@given(milli, milli, milli)
def test_no_term_leaves_its_range(left, used, capacity):
    assert 0.0 <= room_share(left, used) <= 1.0
    if used >= 0 and left <= capacity:
        assert 0.0 <= empty_share(left, used, capacity) <= 1.0
