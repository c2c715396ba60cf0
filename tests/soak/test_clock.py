"""A node's wall clock jumps for its processes alone, while they run; the monotonic clock does not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.soak.clock import JUMPS, LIBRARY, WallClock

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="needs Debian's package faketime")

READS = "import time\nwhile input(): print(time.time(), time.monotonic(), flush=True)"


@pytest.mark.parametrize("seconds", JUMPS)
def test_a_process_that_runs_sees_the_jump_and_the_jump_back(tmp_path: Path, seconds: int) -> None:
    clock = WallClock(tmp_path)
    command = [sys.executable, "-c", READS]
    with subprocess.Popen(
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | dict(clock.environment)
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def off_by() -> tuple[float, float]:
            process.stdin.write("read\n")
            process.stdin.flush()
            wall, monotonic = map(float, process.stdout.readline().split())
            return round((wall - time.time()) / 600) * 600, round((monotonic - time.monotonic()) / 600) * 600

        assert off_by() == (0, 0)
        with clock.jumped(seconds):
            while off_by()[0] == 0:
                time.sleep(0.05)
            assert off_by() == (seconds, 0)
        while off_by()[0] != 0:
            time.sleep(0.05)
        process.stdin.close()
