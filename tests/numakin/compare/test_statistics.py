"""What may be concluded from pairs of runs, and what not."""

from __future__ import annotations

from itertools import product
from math import exp, isclose
from random import Random

import pytest
import scipy  # its part is loaded when it is used, which takes half a second
from hypothesis import given
from hypothesis import strategies as st

from numakin.compare.statistics import FEWEST_PAIRS, _left_out, fewest_pairs, ratio

FIGURE = st.floats(min_value=0.5, max_value=1e6)
PAIRS = st.lists(st.tuples(FIGURE, FIGURE), min_size=FEWEST_PAIRS, max_size=25)


def sides(pairs):
    return [a for a, _ in pairs], [b for _, b in pairs]


@given(PAIRS)
def test_the_ratio_lies_in_its_interval(pairs):
    result = ratio(*sides(pairs))
    assert result.low <= result.value <= result.high


@given(PAIRS)
def test_what_is_n_times_as_much_is_a_nth_the_other_way_round(pairs):
    ours, theirs = sides(pairs)
    first, other = ratio(ours, theirs), ratio(theirs, ours)
    assert isclose(first.value, 1 / other.value, rel_tol=1e-9)
    assert isclose(first.low, 1 / other.high, rel_tol=1e-9)


@given(PAIRS, st.lists(st.floats(min_value=0.01, max_value=100), min_size=25, max_size=25))
def test_what_the_machine_does_to_both_halves_of_a_pair_changes_nothing(pairs, drift):
    ours, theirs = sides(pairs)
    slowed = ratio(
        [a * d for a, d in zip(ours, drift, strict=False)], [b * d for b, d in zip(theirs, drift, strict=False)]
    )
    assert isclose(slowed.value, ratio(ours, theirs).value, rel_tol=1e-6)


@given(PAIRS, st.floats(min_value=0.1, max_value=10))
def test_a_unit_changes_nothing(pairs, unit):
    ours, theirs = sides(pairs)
    assert isclose(ratio([a * unit for a in ours], theirs).value, ratio(ours, theirs).value * unit, rel_tol=1e-9)


@given(st.integers(min_value=0, max_value=FEWEST_PAIRS - 1))
def test_too_few_pairs_say_nothing(count):
    assert ratio([1.0] * count, [2.0] * count) is None


def test_equal_figures_do_not_differ():
    result = ratio([5.0] * 8, [5.0] * 8)
    assert (result.value, result.low, result.high, result.differs) == (1, 1, 1, False)


@pytest.mark.parametrize("count", range(FEWEST_PAIRS, 13))
def test_the_interval_is_exact(count):
    """Over all ways to give signs to distinct differences, 1 is outside of it in at most one of twenty, and nearly so."""
    sizes = [1.0 + 0.1 * number + 0.013 * number * number for number in range(count)]
    outside = sum(
        ratio([exp(sign * size) for sign, size in zip(signs, sizes, strict=True)], [1.0] * count).differs
        for signs in product((-1, 1), repeat=count)
    )
    assert 0.02 <= outside / 2**count <= 0.05


@given(PAIRS)
def test_it_says_what_scipys_test_says(pairs):
    ours, theirs = sides(pairs)
    differences = [a / b for a, b in zip(ours, theirs, strict=True)]
    if len({abs(d) for d in differences}) < len(pairs) or 1.0 in differences:
        return
    result = ratio(ours, theirs)
    from math import log  # noqa: PLC0415

    tested = scipy.stats.wilcoxon([log(d) for d in differences], method="exact")
    if len({abs(log(d)) for d in differences}) == len(pairs):
        assert result.differs == (tested.pvalue <= 0.05)


def test_an_effect_twice_the_noise_is_found_and_no_effect_is_not():
    random = Random(7)
    result = missed = 0
    for _ in range(200):
        noise = [random.gauss(0, 0.05) + (1.0 if random.random() < 0.05 else 0.0) for _ in range(12)]
        result += ratio([exp(0.10 + entry) for entry in noise], [1.0] * 12).differs
        missed += not ratio([exp(random.gauss(0, 0.05)) for _ in range(12)], [1.0] * 12).differs
    assert result > 180
    assert missed > 180


def test_the_numbers_left_out_are_those_of_the_tables():
    """Critical values of Wilcoxon's signed-rank test at 5 %, two-sided, from any textbook."""
    assert [_left_out(count) for count in (6, 7, 8, 9, 10, 12, 15, 20)] == [0, 2, 3, 5, 8, 13, 25, 52]


def test_several_intervals_at_once_take_more_pairs():
    """Two of 2^n signs are at most a twentieth, shared by all."""
    assert [fewest_pairs(together) for together in (1, 2, 3, 4)] == [FEWEST_PAIRS, 7, 7, 8]


@pytest.mark.parametrize("together", [2, 4])
@pytest.mark.parametrize("count", [8, 10, 12])
def test_the_interval_of_several_is_exact(count, together):
    sizes = [1.0 + 0.1 * number + 0.013 * number * number for number in range(count)]
    outside = sum(
        ratio([exp(sign * size) for sign, size in zip(signs, sizes, strict=True)], [1.0] * count, together).differs
        for signs in product((-1, 1), repeat=count)
    )
    assert 0 < outside / 2**count <= 0.05 / together
