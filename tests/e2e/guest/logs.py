"""What the emulated machine's programs have logged, for whoever has to find out why a test failed there."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path

CONTAINERD = Path("/var/log")
"""The folder in which lab-containerd leaves containerd.log."""

SYSTEMD = Path("/run/systemd/system")
"""There where it is process 1, and has the runtimes' logs."""

RUNTIMES = ("containerd", "crio")
"""Their units."""

USUAL = re.compile(r"level=\"?(info|debug)")
"""In a line of a runtime's log: nothing that a failure is about."""

LAST = 5000
"""Characters of each log."""


def show(folder: Path) -> None:
    """Prints the ends of the runtimes' logs and of those in a folder, indented: no line is taken for a record."""
    if SYSTEMD.is_dir():
        for unit in RUNTIMES:
            journal = ("journalctl", "--unit", unit, "--no-pager", "--output", "cat")
            _print(unit, subprocess.run(journal, capture_output=True, text=True, check=False).stdout)
    for log in (*CONTAINERD.glob("containerd.log"), *sorted(folder.glob("*.log"))):
        _print(log.name, log.read_text(errors="replace"))


def _print(name: str, log: str) -> None:
    told = [line for line in log.splitlines() if not USUAL.search(line)]
    print(f"--- {name}", textwrap.indent("\n".join(told)[-LAST:], "    "), sep="\n")
