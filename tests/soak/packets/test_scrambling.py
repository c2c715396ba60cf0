"""What goes into a crossing comes out of it, but for the share that is lost, and in another order."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.soak.packets.scrambling import CALM, Crossing, Shares

BAD = Shares(lost=0.02, duplicated=0.03, reordered=0.2, delay_s=0.5, held_s=20.0)
EVERY_S = 1.0
"""Between two packets."""


def crossed(shares: Shares, packets: int, seed: int = 1) -> tuple[Crossing, list[tuple[float, int]]]:
    """What came out: when, and the packet's number."""
    crossing = Crossing()
    crossing.scramble(shares, seed)
    out = []
    for number in range(packets):
        crossing.came(str(number).encode(), number * EVERY_S)
        while (at := crossing.next_s()) is not None and at < (number + 1) * EVERY_S:
            out += [(at, int(packet)) for packet in crossing.due(at)]
    while (at := crossing.next_s()) is not None:
        out += [(at, int(packet)) for packet in crossing.due(at)]
    return crossing, out


def test_without_shares_packets_leave_at_once_and_in_order() -> None:
    crossing, out = crossed(CALM, 1000)
    assert out == [(number * EVERY_S, number) for number in range(1000)]
    assert crossing.counts.came == 0


@given(
    st.builds(Shares, *(st.floats(0, 1),) * 3, delay_s=st.floats(0, 9), held_s=st.floats(0, 9)),
    st.integers(0, 200),
    st.integers(0, 1 << 32),
)
def test_each_packet_leaves_as_often_as_was_counted_and_within_its_time(
    shares: Shares, packets: int, seed: int
) -> None:
    crossing, out = crossed(shares, packets, seed)
    counts, times = crossing.counts, Counter(number for _, number in out)
    assert set(times) <= set(range(packets))
    assert set(times.values()) <= {1, 2}
    if shares != CALM:
        assert (counts.came, len(times)) == (packets, packets - counts.lost)
    assert len(out) == len(times) + counts.duplicated
    for at, number in out:
        late = at - number * EVERY_S
        assert shares.delay_s - 1e-6 <= late <= shares.delay_s + shares.held_s + 1e-6
    assert counts.waiting == 0


def test_the_shares_hold() -> None:
    crossing, _ = crossed(BAD, 50_000)
    counts = crossing.counts
    assert counts.lost / counts.came == pytest.approx(BAD.lost, abs=0.005)
    assert counts.duplicated / (counts.came - counts.lost) == pytest.approx(BAD.duplicated, abs=0.005)
    assert counts.held / (counts.came - counts.lost + counts.duplicated) == pytest.approx(BAD.reordered, abs=0.01)


def test_what_is_held_back_is_overtaken() -> None:
    crossing, out = crossed(BAD, 5000)
    order = [number for _, number in out]
    behind = sum(number < max(order[:place]) for place, number in enumerate(order) if place)
    assert 0 < behind <= crossing.counts.overtaken <= behind + crossing.counts.duplicated


def test_one_seed_gives_one_outcome_and_another_another() -> None:
    assert crossed(BAD, 1000, seed=5)[1] == crossed(BAD, 1000, seed=5)[1] != crossed(BAD, 1000, seed=6)[1]
