from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from extender.views.locality_history import MOST_GROUPS, MOST_POINTS, LocalityHistory


def test_a_series_has_what_was_sampled() -> None:
    history = LocalityHistory()
    history.sample(10.0, {"a/x": 0.5})
    history.sample(20.0, {"a/x": 0.75})
    assert history.of("a/x") == [(10.0, 0.5), (20.0, 0.75)]


def test_a_group_that_is_gone_has_none() -> None:
    history = LocalityHistory()
    history.sample(10.0, {"a/x": 0.5})
    history.sample(20.0, {})
    assert history.of("a/x") == []


@given(st.integers(1, 6 * MOST_POINTS))
def test_however_long_it_lasts_it_is_bounded_and_reaches_back_to_its_beginning(samples: int) -> None:
    history = LocalityHistory()
    for at in range(samples):
        history.sample(float(at), {"a/x": 1.0})
    times = [at for at, _ in history.of("a/x")]
    assert len(times) <= MOST_POINTS
    assert times[0] == 0
    assert times == sorted(set(times))
    assert samples - times[-1] <= max(1, 2 * samples // len(times))


def test_a_clock_that_is_set_back_takes_its_points_with_it() -> None:
    """Of a machine that began with a wrong one: the page drew a line there and back, for as long as the extender ran."""
    history = LocalityHistory()
    for at in (10.0, 3610.0, 3620.0, 20.0, 30.0):
        history.sample(at, {"a/x": 0.5})
    assert [at for at, _ in history.of("a/x")] == [10.0, 20.0, 30.0]


def test_of_too_many_groups_the_first_are_kept() -> None:
    history = LocalityHistory()
    history.sample(1.0, {f"a/{number}": 0.5 for number in range(MOST_GROUPS + 1)})
    assert history.of("a/0")
    assert not history.of(f"a/{MOST_GROUPS}")
