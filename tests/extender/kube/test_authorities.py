"""When an authority is made, and which one signs, over years of clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.kube.tls import authorities
from extender.kube.tls.authorities import CA_LIFE, SCHEDULER, Authority, KeyPair
from tests import examples

NOW = datetime(2026, 1, 1, tzinfo=UTC)
COPIED = timedelta(days=500)
"""Whoever copied the bundle since then can check whatever is signed now."""


def after(*days: float) -> datetime:
    return NOW + timedelta(days=sum(days))


def test_the_first_authority_is_made_at_once():
    (only,) = authorities.renewed((), NOW)
    assert authorities.signer((only,), NOW) == only
    assert authorities.renewed((only,), after(1)) == (only,)


def test_one_is_made_long_before_it_signs():
    old, new = authorities.renewed(authorities.renewed((), NOW), after(2 * 3650 / 3 + 1))
    assert authorities.signer((old, new), after(2 * 3650 / 3 + 1)) == old
    assert authorities.signer((old, new), after(5 * 3650 / 6 + 1)) == new


def test_one_that_has_ended_signs_no_longer():
    both = authorities.renewed(authorities.renewed((), NOW), after(2500))
    assert authorities.renewed(both, after(3651)) == both
    assert authorities.signer(both, after(3651)) == both[1]


@settings(max_examples=examples.of(60), deadline=None)
@given(st.lists(st.sampled_from([-20_000, -7000, -1, 0, 1, 7000, 20_000]), max_size=12))
def test_whatever_a_clock_said_meanwhile_the_first_authority_signs_when_it_is_right_again(jumps):
    """No more of them than are kept: nobody's clock jumps to so many decades."""
    (first,) = kept = authorities.renewed((), NOW)
    for jump in jumps:
        kept = authorities.renewed(kept, after(jump))
        wrong = authorities.signer(kept, after(jump)).certificate
        assert wrong.not_valid_before_utc <= after(jump) < wrong.not_valid_after_utc
    assert authorities.renewed(kept, NOW) == kept
    assert authorities.signer(kept, NOW) == first


def test_only_so_many_are_kept_and_the_valid_ones_are_the_last_to_go():
    kept, decade = authorities.renewed((), NOW), timedelta(days=4000)
    for decades in range(1, 2 * authorities.MOST_KEPT):
        kept = authorities.renewed(kept, NOW + decades * decade)
    assert len(kept) == authorities.MOST_KEPT
    again = authorities.renewed(kept, NOW)
    assert len(again) == authorities.MOST_KEPT
    assert authorities.signer(again, NOW) == again[-1]


def test_what_is_signed_by_a_clock_that_was_ahead_is_made_anew():
    (authority,) = authorities.renewed((), NOW)
    pair = authorities.client_pair(authority, SCHEDULER, after(100))
    assert not authorities.good(pair, authority, NOW)
    assert authorities.good(pair, authority, after(101))


@settings(max_examples=examples.of(60), deadline=None)
@given(st.lists(st.integers(1, 100), max_size=60))
def test_who_copied_the_bundle_within_500_days_can_check_whoever_signs(steps):
    """Between two checks may be up to 100 days, in which the cluster was off."""
    day, kept, bundles = 0, (), []
    for step in (0, *steps):
        day += step
        kept = authorities.renewed(kept, after(day))
        signer = authorities.signer(kept, after(day))
        assert signer in kept
        assert signer.certificate.not_valid_after_utc > after(day)
        bundles.append((day, kept))
        seen = [bundle for at, bundle in bundles if timedelta(days=day - at) <= COPIED]
        assert all(signer in bundle for bundle in seen)


def test_what_is_signed_lasts_and_is_due_as_it_should():
    (authority,) = authorities.renewed((), NOW)
    pair = authorities.client_pair(authority, SCHEDULER, NOW)
    assert authorities.good(pair, authority, after(200))
    assert not authorities.good(pair, authority, after(250))
    (other,) = authorities.renewed((), NOW)
    assert not authorities.good(pair, other, NOW)


def garbled(authority: Authority) -> list[KeyPair]:
    good, other = authority.pair, authorities.renewed((), NOW)[0].pair
    return [
        KeyPair(b"", b""), KeyPair(b"nonsense", good.key), KeyPair(good.cert, b"nonsense"), KeyPair(good.cert, other.key),
        KeyPair(good.cert[:200], good.key), KeyPair(good.key, good.cert),
    ]  # fmt: skip


def test_a_pair_that_is_none_is_not_read():
    (authority,) = authorities.renewed((), NOW)
    assert Authority.read(authority.pair) == authority
    for pair in garbled(authority):
        with pytest.raises(ValueError):
            Authority.read(pair)
        assert not authorities.good(pair, authority, NOW)


def test_an_authority_lasts_ten_years():
    (authority,) = authorities.renewed((), NOW)
    assert authority.certificate.not_valid_after_utc == NOW + CA_LIFE
