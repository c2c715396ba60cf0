"""Whether somebody listens at a unix socket, by the kernel's table of them: asked without a connection."""

from __future__ import annotations

from pathlib import Path

ACCEPTS = 0x10000
"""The kernel's flag of a socket that listens (`__SO_ACCEPTCON` in the Flags of /proc/net/unix)."""


def listened_to(procfs: Path, path: Path) -> bool | None:
    """None where no table can be read. A socket is in the table of the network namespace in which it was made: the
    node's first process' too. Known by its name there, since its folder may be mounted elsewhere here.
    """
    tables = [table for namespace in ("1", "self") if (table := _table(procfs / namespace / "net/unix")) is not None]
    if not tables:
        return None
    return any(_listens(row, path.name) for table in tables for row in table)


def _table(file: Path) -> list[str] | None:
    try:
        return file.read_text(errors="replace").splitlines()[1:]
    except OSError:
        return None


def _listens(row: str, name: str) -> bool:
    """Num RefCount Protocol Flags Type St Inode Path."""
    fields = row.split(None, 7)
    return len(fields) == 8 and int(fields[3], 16) & ACCEPTS != 0 and fields[7].rpartition("/")[2] == name
