"""Durations are counted once each, in the bucket of their size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.process.durations import BOUNDS_S, Durations


@given(st.lists(st.floats(0, 10)))
def test_each_is_in_the_first_bucket_that_it_does_not_exceed(seconds):
    durations = Durations()
    for each in seconds:
        durations.add(each)
    for place, bound in enumerate(BOUNDS_S):
        assert sum(durations.counts[: place + 1]) == sum(each <= bound for each in seconds)
    assert sum(durations.counts) == len(seconds)
    assert durations.seconds == pytest.approx(sum(seconds))
