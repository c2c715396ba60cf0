"""Whether a process that another one has started has ended."""

from __future__ import annotations

from pathlib import Path


def ended(pid: str) -> bool:
    """It runs no more; a zombie does not, whoever is to wait for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
