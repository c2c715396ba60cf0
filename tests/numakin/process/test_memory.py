"""What is given back, in a process of its own."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from numakin.process.memory import BLOCK, give_back, leave_files, return_blocks
from tests.numakin.process.forking import written

pytestmark = pytest.mark.alone

MIB = 1 << 20


def resident(what: str = "VmRSS") -> int:
    """Bytes of this process."""
    size = re.search(rf"^{what}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert size
    return int(size[1]) << 10


def kept(block: int, before: Callable[[], None], after: Callable[[], None]) -> int:
    """Bytes that stay of 64 MiB of blocks, all but the last freed."""
    before()
    start = resident()
    blocks = [bytearray(block) for _ in range(64 * MIB // block)]
    assert resident() - start > 32 * MIB
    del blocks[:-1]
    after()
    return resident() - start


def measured(block: int, before: Callable[[], None], after: Callable[[], None]) -> int:
    return int(written(lambda out: _sent(out, kept(block, before, after))))


def _sent(out: int, number: int) -> int:
    os.write(out, str(number).encode())
    return 0


def nothing() -> None:
    pass


def test_freed_memory_below_what_is_in_use_goes_back() -> None:
    assert measured(4096, nothing, nothing) > 32 * MIB
    assert measured(4096, nothing, give_back) < 8 * MIB


def test_blocks_of_large_messages_go_back_by_themselves() -> None:
    assert measured(2 * BLOCK, nothing, nothing) > 32 * MIB
    assert measured(2 * BLOCK, return_blocks, nothing) < 8 * MIB


def test_what_is_not_used_of_libraries_is_unmapped_and_the_rest_still_works() -> None:
    def run(out: int) -> int:
        import decimal  # noqa: PLC0415

        decimal.Decimal(2).sqrt()
        before = resident("RssFile")
        leave_files()
        after = resident("RssFile")
        assert decimal.Decimal(2).sqrt() ** 2 != 2
        return _sent(out, 100 * after // before)

    assert int(written(run)) < 75
