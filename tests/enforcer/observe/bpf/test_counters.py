from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enforcer.observe.bpf.counters import (
    TCP,
    CounterSnapshot,
    Delta,
    FlowKey,
    Missed,
    Volume,
    address,
    difference,
    peer,
)

KEY = FlowKey(7, peer(ip_address("10.0.0.1")), 80, True, TCP)
volumes = st.builds(Volume, *[st.integers(0, 1 << 40)] * 4)


@given(st.lists(volumes, min_size=1))
def test_differences_of_readings_add_up_to_the_last_reading(steps):
    total, before, summed = Volume(), CounterSnapshot(), Volume()
    for step in steps:
        total += step
        after = CounterSnapshot({KEY: total})
        summed += difference(before, after).counters.get(KEY, Volume())
        before = after
    assert summed == total


def test_a_key_that_did_not_move_is_absent():
    snapshot = CounterSnapshot({KEY: Volume(1, 1, 1, 1)}, Missed(3, 1))
    assert difference(snapshot, snapshot) == Delta()


def test_a_counter_that_ran_backwards_has_begun_anew():
    result = difference(CounterSnapshot({KEY: Volume(100, 10)}), CounterSnapshot({KEY: Volume(7, 1)}))
    assert result.counters == {KEY: Volume(7, 1)}


def test_a_key_deleted_and_come_back_counts_from_nothing_even_if_it_grew():
    before = CounterSnapshot({KEY: Volume(100, 10)}, forgotten=frozenset({KEY}))
    assert difference(before, CounterSnapshot({KEY: Volume(113, 11)})).counters == {KEY: Volume(113, 11)}


def test_what_was_missed_is_a_difference_too():
    assert difference(CounterSnapshot(missed=Missed(5, 1)), CounterSnapshot(missed=Missed(18, 3))).missed == Missed(
        13, 2
    )


@pytest.mark.parametrize("text", ["10.1.2.3", "0.0.0.0", "::1", "2001:db8::7"])
def test_an_address_survives_its_sixteen_bytes(text):
    assert address(peer(ip_address(text))) == ip_address(text)


def test_a_mapped_address_is_the_ipv4_peer():
    assert address(peer(ip_address("::ffff:10.1.2.3"))) == ip_address("10.1.2.3")
