import pytest
from hypothesis import given
from hypothesis import strategies as st

from enforcer.observe.collectors.duty import DutyCycle


def spans(duty, cycles):
    """(on, seconds) of each phase, walked as a caller would."""
    now, end = 0.0, duty.period_s * cycles
    while now < end:
        phase = duty.phase(now)
        assert phase.until > now
        yield phase.on, min(phase.until, end) - now
        now = phase.until


@given(st.floats(0.01, 1), st.floats(0.1, 600), st.integers(1, 50))
def test_the_probes_are_on_for_their_share_of_any_whole_number_of_periods(share, period, cycles):
    on = sum(seconds for is_on, seconds in spans(DutyCycle(share, period), cycles) if is_on)
    assert on == pytest.approx(share * period * cycles)


@given(st.floats(0.01, 1), st.integers(1, 20), st.floats(0, 1))
def test_how_long_they_should_have_been_on_is_known_at_any_moment(share, cycles, part):
    duty = DutyCycle(share, 10)
    until, on, now = part * 10 * cycles, 0.0, 0.0
    while now < until:
        phase = duty.phase(now)
        on += (min(phase.until, until) - now) * phase.on
        now = phase.until
    assert duty.on_until(until) == pytest.approx(on, abs=1e-6)


def test_the_moment_within_the_period_moves():
    duty = DutyCycle(0.1, 10)
    begins, now = [], 0.0
    while len(begins) < 20:
        phase = duty.phase(now)
        if phase.on:
            begins.append(now % 10)
        now = phase.until
    gaps = [later - earlier for earlier, later in zip(sorted(begins), sorted(begins)[1:], strict=False)]
    assert max(gaps) < 2


def test_a_full_share_is_never_off():
    assert all(on for on, _ in spans(DutyCycle(1, 10), 7))


@pytest.mark.parametrize(("share", "period"), [(0, 10), (1.1, 10), (-1, 10), (float("nan"), 10), (0.5, 0)])
def test_a_share_or_period_that_means_nothing_is_refused_by_name(share, period):
    with pytest.raises(ValueError, match=r"duty cycle: (share|period)"):
        DutyCycle(share, period)
