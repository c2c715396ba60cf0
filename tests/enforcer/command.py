"""`numakin-enforcer` with some arguments, run to its end."""

import subprocess
import sys

from lab.standins.patience import PATIENCE_S


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "enforcer", *words], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
