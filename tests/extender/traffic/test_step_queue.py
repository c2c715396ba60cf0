"""Steps of one thread, which is woken for some of them alone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from extender.traffic.learner import StepQueue
from lab.standins.patience import PATIENCE_S


@pytest.fixture
def done() -> list[int]:
    return []


def step(done: list[int], number: int) -> Callable[[], None]:
    return lambda: done.append(number)


def test_what_can_wait_is_done_with_what_can_not_and_in_the_order_in_which_it_came(done: list[int]):
    steps, begun = StepQueue(), Event()

    def round_of_the_thread() -> None:
        begun.set()
        for _ in range(steps.wait(PATIENCE_S)):
            steps.take()()

    with ThreadPoolExecutor() as threads:
        rounds = threads.submit(round_of_the_thread)
        assert begun.wait(PATIENCE_S)
        steps.put(step(done, 1), soon=False)
        steps.put(step(done, 2), soon=False)
        steps.put(step(done, 3))
        rounds.result(PATIENCE_S)
    assert done == [1, 2, 3]


def test_what_can_wait_is_found_by_who_looks():
    steps = StepQueue()
    steps.put(lambda: None, soon=False)
    assert steps.wait(0.0) == 1


def test_nothing_is_left_where_all_was_taken():
    steps = StepQueue()
    steps.put(lambda: None)
    steps.take()
    assert steps.wait(0.0) == 0
    with pytest.raises(IndexError):
        steps.take()
