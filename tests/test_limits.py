"""docs/limits.md is what the code goes by."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_page_of_limits_is_current():
    done = subprocess.run([ROOT / "tools" / "setup" / "limits", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
