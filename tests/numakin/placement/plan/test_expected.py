"""How many replicas are expected."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.plan.expected import PEAK_S, ExpectedPods, Peak


def test_as_many_as_there_were_at_most_lately():
    assert Peak().after(3, 10.0).after(1, 20.0) == Peak(3, 10.0)


def test_after_a_while_as_many_as_there_are():
    peak = Peak(3, 10.0)
    assert peak.after(1, 10.0 + PEAK_S) == peak
    assert peak.after(1, 11.0 + PEAK_S) == Peak(1, 11.0 + PEAK_S)


def test_as_many_again_begin_the_time_anew():
    assert Peak(3, 10.0).after(3, 500.0) == Peak(3, 500.0)


def test_what_is_scaled_to_nothing_is_expected_back_as_it_was():
    assert Peak(3, 10.0).after(0, 10_000.0) == Peak(3, 10.0)


@given(replicas=st.integers(0, 500), bound=st.integers(0, 500), unbound=st.integers(0, 500))
def test_no_fewer_than_are_bound_and_no_more_than_there_can_be(replicas, bound, unbound):
    expected = ExpectedPods(bound, unbound).limits(replicas)
    assert bound <= expected <= bound + unbound
    assert expected == replicas or not bound <= replicas <= bound + unbound
