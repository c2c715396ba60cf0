"""What tests of forked processes share."""

import os
from collections.abc import Callable, Sequence

from lab.standins.patience import PATIENCE_S
from numakin.process.forked import Forked, Program, forked


def started(main: Callable[[Sequence[str]], int | None], *descriptors: int) -> Forked:
    return forked(Program("numakin-tried", ("--option", "value"), main), descriptors, {})


def written(main: Callable[[int], int | None]) -> bytes:
    """What a program writes to the descriptor that it was given."""
    read, write = os.pipe()
    process = started(lambda _arguments: main(write), write)
    os.close(write)
    with os.fdopen(read, "rb") as output:
        data = output.read()
    assert process.wait(PATIENCE_S) == 0
    return data
