"""What a workload uses of the CPU: the 95th percentile of its pods' windows, in which old ones fade."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.traffic.cpu_use import ENOUGH, HALF_LIFE_S, MOST_WORKLOADS, UseTally

WEB = "shop/Deployment/web"
WINDOW_S = 10.0


def tally_of(*samples: float, begin: float = 0.0) -> UseTally:
    tally = UseTally()
    for number, milli in enumerate(samples):
        tally.add(WEB, milli, begin + number * WINDOW_S)
    return tally


@given(st.lists(st.floats(1, 64_000), min_size=ENOUGH, max_size=300))
def test_it_is_what_19_windows_of_20_stay_below(samples):
    known = tally_of(*samples).known()[WEB]
    above = [sample for sample in samples if sample > known * 1.06]
    at_least = [sample for sample in samples if sample >= known * 0.94]
    assert len(above) <= 0.05 * len(samples) + 1
    assert len(at_least) >= 0.04 * len(samples)


def test_a_start_that_computes_for_half_a_minute_does_not_count():
    assert tally_of(*[4000] * 3, *[100] * 60).known()[WEB] == pytest.approx(100, rel=0.1)


@pytest.mark.parametrize("replicas", [2, 20])
@pytest.mark.parametrize("windows", [3, 6, 30, 60, 90])
def test_nor_does_that_of_many_replicas_together(replicas, windows):
    tally = UseTally()
    for window in range(windows):
        for _ in range(replicas):
            tally.add(WEB, 4000 if window < 3 else 100, window * WINDOW_S)
    assert tally.known().get(WEB, 100) == pytest.approx(100, rel=0.1)


def test_nothing_is_said_before_enough_was_seen():
    assert tally_of(*[500] * (ENOUGH - 1)).known() == {}
    assert tally_of(*[500] * ENOUGH).known()[WEB] == pytest.approx(500, rel=0.06)


def test_a_new_version_that_uses_less_is_known_by_it_after_a_day():
    tally = tally_of(*[4000] * 2000)
    for number in range(100):
        tally.add(WEB, 400, 4.5 * HALF_LIFE_S + number * WINDOW_S)
    assert tally.known()[WEB] == pytest.approx(4000, rel=0.06), "a hundred samples say little beside a day"
    for number in range(2000):
        tally.add(WEB, 400, 5 * HALF_LIFE_S + number * WINDOW_S)
    assert tally.known()[WEB] == pytest.approx(400, rel=0.06)


def test_no_more_workloads_are_kept_than_the_bound():
    tally = UseTally()
    for number in range(MOST_WORKLOADS + 5):
        for window in range(ENOUGH):
            tally.add(f"shop/Deployment/w{number}", 100, float(window))
    assert len(tally.known()) == MOST_WORKLOADS
    assert "shop/Deployment/w0" not in tally.known()
