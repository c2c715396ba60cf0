"""What is made of several parts comes up as a whole or not at all."""

from __future__ import annotations

import pytest

from lab.standins.all_or_nothing import AllOrNothing


class Parts(AllOrNothing):
    def __init__(self, *, broken: bool = False) -> None:
        self.ended: list[str] = []
        self._broken = broken

    def _start(self) -> None:
        self._stack.callback(self.ended.append, "first")
        self._stack.callback(self.ended.append, "second")
        if self._broken:
            raise RuntimeError("the third does not start")


def test_all_parts_are_up_in_the_block_and_ended_in_reverse_order_after_it():
    with Parts() as parts:
        assert parts.ended == []
    assert parts.ended == ["second", "first"]


def test_what_had_started_is_ended_when_a_part_does_not_start():
    parts = Parts(broken=True)
    with pytest.raises(RuntimeError, match="the third does not start"), parts:
        pytest.fail("the block was entered")
    assert parts.ended == ["second", "first"]


def test_an_error_in_the_block_ends_all_parts_and_is_raised():
    parts = Parts()
    with pytest.raises(KeyError), parts:
        raise KeyError
    assert parts.ended == ["second", "first"]
