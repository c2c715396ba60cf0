"""What the emulated machine's programs have logged, for whoever has to find out why a test failed there."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

CONTAINERD = Path("/var/log")
"""The folder in which lab-containerd leaves containerd.log."""

USUAL = re.compile(r"level=(info|debug)")
"""In a line of containerd's log: nothing that a failure is about."""

LAST = 5000
"""Characters of each log."""


def show(folder: Path) -> None:
    """Prints the ends of containerd's log and of those in a folder, indented: no line is taken for a record."""
    for log in (*CONTAINERD.glob("containerd.log"), *sorted(folder.glob("*.log"))):
        told = [line for line in log.read_text(errors="replace").splitlines() if not USUAL.search(line)]
        print(f"--- {log.name}", textwrap.indent("\n".join(told)[-LAST:], "    "), sep="\n")
