"""Whether a process listens at a unix socket, by the kernel's table of them: asked without a connection."""

from __future__ import annotations

import re
from pathlib import Path

ACCEPTS = 0x10000
"""The kernel's flag of a socket that listens (`__SO_ACCEPTCON` in the Flags of /proc/net/unix)."""


_ROW = re.compile(r"[0-9a-f]+: [0-9A-F]{8} [0-9A-F]{8} ([0-9A-F]{8}) [0-9A-F]{4} [0-9A-F]{2} +[0-9]+ (.+)")
"""Num RefCount Protocol Flags Type St Inode Path. A path has any character, line ends too: what follows them is no row.
"""


def listened_to(procfs: Path, path: Path) -> bool | None:
    """A socket is in the table of the network namespace in which it was made: ours, or the node's first process'. None
    where no table can be read, or has another socket of that name: its folder may be mounted elsewhere here.
    """
    tables = [table for namespace in ("1", "self") if (table := _table(procfs / namespace / "net/unix")) is not None]
    listening = {where for table in tables for row in table if (where := _listening(row))}
    if _plain(str(path)) in listening:
        return True
    return None if not tables or any(where.rpartition("/")[2] == path.name for where in listening) else False


def _table(file: Path) -> list[str] | None:
    try:
        return file.read_text(errors="replace").splitlines()[1:]
    except OSError:
        return None


def _listening(row: str) -> str:
    """The path of a socket that listens; empty for any other."""
    match = _ROW.fullmatch(row)
    return _plain(match[2]) if match is not None and int(match[1], 16) & ACCEPTS else ""


def _plain(path: str) -> str:
    """/var/run is /run everywhere."""
    return path.removeprefix("/var") if path.startswith("/var/run/") else path
