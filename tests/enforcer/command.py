"""`numakin-enforcer` with some arguments, run to its end."""

import os
import subprocess

from tests import forked


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return forked.run("numakin-enforcer", words, os.environ)
