"""A small file of our own in the run folder: read only when no other user can have written it, replaced as a whole."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from numakin.process.files import read_regular


def read(path: Path, largest: int) -> str | None:
    """The text; None when there is no such file. OSError or UnicodeDecodeError when it can't be taken."""
    try:
        return read_regular(path, largest, private=True).decode()
    except FileNotFoundError:
        return None


def replace(path: Path, text: str) -> int:
    """Puts a new file in the place of whatever is there, whole or not at all; its inode. OSError when it can't be.

    Not synced to a disk: the run folder and the containers that the file is about live until the machine restarts, no
    longer.
    """
    draft = path.with_name(f".{path.name}.draft")
    with suppress(FileNotFoundError):
        draft.unlink()
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            inode = os.fstat(descriptor).st_ino
        draft.rename(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()
        raise
    return inode
