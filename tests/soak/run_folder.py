"""An enforcer's run folder on a file system of its own, which can be full or read-only."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from enforcer.hook.ownership.recorder import spare_of

SIZE = "256k"


@contextmanager
def mounted(folder: Path) -> Iterator[None]:
    """A small tmpfs, while the body runs."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "numakin-soak", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        spare_of(folder).unlink(missing_ok=True)


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Not a byte is left on it."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    try:
        yield
    finally:
        ballast.unlink(missing_ok=True)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Forced by a bind mount's own flag: files that are open for writing would keep the file system writable."""
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
