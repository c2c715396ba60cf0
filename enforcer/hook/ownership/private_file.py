"""A small file of our own in the run folder: read only when nobody else can have written it, replaced as a whole."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


class NotOurs(OSError):
    """Something is there that we have not written, or that others may write; the text says what."""


def read(path: Path, most: int) -> str | None:
    """The text; None when there is no such file. OSError (NotOurs among them) or UnicodeDecodeError when it can't be
    taken. most: bytes; a longer file is refused. Follows no link, and waits for no FIFO's writer.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise NotOurs("not a regular file")
        if about.st_uid != os.geteuid() or about.st_mode & 0o077:
            raise NotOurs(f"owner {about.st_uid}, mode {stat.S_IMODE(about.st_mode):04o}: others may write or read it")
        if about.st_size > most:
            raise NotOurs(f"{about.st_size} bytes; at most {most} are taken")
        return file.read(most).decode()


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
