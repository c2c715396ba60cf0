"""Whatever happens on a node, and whenever the enforcer or the runtime dies over it: what was promised is kept, what is
in the cgroups is what the ledger says, and nothing of others' is touched.

    NUMAKIN_HISTORIES=5000 python -m pytest tests/enforcer/test_histories.py

plays a million steps by hand: histories of 200 steps each.
"""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Iterator
from random import Random

import pytest

from tests.enforcer.history.steps import STEPS, History

HISTORIES = int(os.environ.get("NUMAKIN_HISTORIES", "50"))
LENGTH = 200

Step = tuple[str, int]

Failure = tuple[int, Exception]
"""At which step something did not hold, and what."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Each history logs hundreds of lines."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(before)


def drawn(seed: int, length: int) -> list[Step]:
    draw = Random(seed)
    names = draw.choices([*STEPS], [weight for weight, _ in STEPS.values()], k=length)
    return [(name, draw.getrandbits(32)) for name in names]


def played(seed: int, steps: list[Step]) -> Failure | None:
    with History(seed) as history:
        for number, (name, own) in enumerate(steps):
            try:
                history.step(name, own)
            except Exception as error:  # noqa: BLE001 - of whatever kind
                return number, error
    return None


def _what(failure: Failure) -> tuple[str, int | None]:
    """Where it was seen."""
    last = traceback.extract_tb(failure[1].__traceback__)[-1]
    return last.filename, last.lineno


def shortened(seed: int, steps: list[Step], failure: Failure) -> tuple[list[Step], Failure]:
    """Without the steps that the failure does not need: halves, quarters and so on are left out while it is seen."""
    steps, size = steps[: failure[0] + 1], len(steps) // 2
    while size:
        at = 0
        while at < len(steps):
            fewer = steps[:at] + steps[at + size :]
            now = played(seed, fewer)
            if now is None or _what(now) != _what(failure):
                at += size
            else:
                steps, failure = fewer[: now[0] + 1], now
        size //= 2
    return steps, failure


@pytest.mark.parametrize("part", range(5))
def test_any_history_keeps_what_was_promised(part: int) -> None:
    """What fails is told as the fewest steps that show it: `played(seed, steps)` plays them again."""
    for seed in range(part, HISTORIES, 5):
        steps = drawn(seed, LENGTH)
        failure = played(seed, steps)
        if failure is not None:
            steps, failure = shortened(seed, steps, failure)
            pytest.fail(f"{type(failure[1]).__name__}: {failure[1]}\nplayed({seed}, {steps})")
