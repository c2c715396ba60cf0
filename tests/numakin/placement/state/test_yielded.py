"""From which share on other owners leave numakin too little of a node."""

import pytest

from numakin.placement.state.yielded import NONE, Yielded


@pytest.mark.parametrize(
    ("yielded", "powerless"),
    [(NONE, False), (Yielded(0, 5), False), (Yielded(1, 3), False), (Yielded(1, 2), True), (Yielded(1, 1), True)],
    ids=["nobody", "all are placed", "a third", "half", "all"],
)
def test_from_half_on_it_counts_as_powerless(yielded: Yielded, *, powerless: bool) -> None:
    assert yielded.powerless == powerless


def test_it_is_worded_with_what_is_claimed_later() -> None:
    assert str(Yielded(1, 4)) == "1 of 4 containers that opted in have their cpuset set by another owner"
    assert str(Yielded(2, 4, 1)).endswith("another owner, 1 of them by an NRI plugin that is asked later")
