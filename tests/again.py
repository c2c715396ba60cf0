"""What failed in a run of all tests is run once more, alone, and is named whatever comes of it.

    python -m pytest --cache-clear ... || python -m tests.again $?

A test that fails again has failed. One that passes alone depends on what runs beside it: that is a defect too, of the test or
of what it tests, but none that should hide what the rest of the run says.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FAILED = Path(".pytest_cache/v/cache/lastfailed")

MOST = 10
"""Files: what their tests share fails for all of them. Where more failed, it is no matter of what ran beside them."""


def main(status: int) -> int:
    """The status of the run, or that of the second one where some tests failed."""
    if status != pytest.ExitCode.TESTS_FAILED:
        return status
    failed = sorted(json.loads(FAILED.read_text()))
    files = {name.partition("::")[0] for name in failed}
    if len(files) > MOST:
        print(f"{len(failed)} tests of {len(files)} files failed: those of more than {MOST} are not run once more")
        return status
    second = subprocess.run([sys.executable, "-m", "pytest", *failed], check=False).returncode
    for name in failed:
        print(f"FAILED BESIDE OTHERS{', PASSED ALONE' if second == 0 else ''}: {name}")
    return second


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
