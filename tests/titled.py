"""The enforcer's processes, which its supervisor forks, by their titles in procfs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

TITLE = b"numakin-"
"""What the titles begin with."""


def children(supervisor: int) -> dict[str, int]:
    """role -> pid. Whoever has gone meanwhile is left out; one without a title yet is "just forked"."""
    named: dict[str, int] = {}
    with suppress(OSError):
        for child in Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split():
            with suppress(OSError):
                title = Path(f"/proc/{child}/cmdline").read_bytes().partition(b"\0")[0]
                role = title.removeprefix(TITLE).decode() if title.startswith(TITLE) else "just forked"
                named[role] = int(child)
    return named
