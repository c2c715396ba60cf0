"""Signals of a process that is ending."""

from __future__ import annotations

import subprocess
import sys

TWICE = """
import os, signal
from numakin.process.signals import received

signals = received((signal.SIGTERM,))
os.kill(os.getpid(), signal.SIGTERM)
assert signals.recv(1) == bytes([signal.SIGTERM])
signals.close()
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_a_signal_that_comes_once_more_while_a_process_ends_is_not_complained_of() -> None:
    """As at ^C in a terminal: from there, and from the supervisor."""
    done = subprocess.run([sys.executable, "-c", TWICE], capture_output=True, text=True, check=True)
    assert done.stderr == ""
