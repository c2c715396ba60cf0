"""What tests of forked processes share."""

import gc
import os
from collections.abc import Callable, Iterator, Sequence

import pytest

from process.forked import Forked, Program, forked
from standins.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    """What a supervisor freezes for good."""
    yield
    gc.unfreeze()


def started(main: Callable[[Sequence[str]], int | None], *descriptors: int, **variables: str) -> Forked:
    return forked(Program("numakin-tried", ("--option", "value"), main), descriptors, variables)


def written(main: Callable[[int], int | None]) -> bytes:
    """What a program writes to the descriptor that it was given."""
    read, write = os.pipe()
    process = started(lambda _arguments: main(write), write)
    os.close(write)
    with os.fdopen(read, "rb") as output:
        data = output.read()
    assert process.wait(PATIENCE_S) == 0
    return data
