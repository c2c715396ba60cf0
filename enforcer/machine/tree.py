"""A folder of the kernel's small text files, read one by one: all the I/O of the readers in this package.

A file that is not there is None, since most files are optional from one kernel to the next; content that can't be
parsed is a `BadFile`.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from enforcer.machine.errors import BadFile, NotThere
from numakin.process.files import read_regular

T = TypeVar("T")

LARGEST_FILE = 16 << 20
"""Bytes. /proc/zoneinfo of the largest machines is about 1 MB; what is over this bound is not the kernel's."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Files under one root."""

    root: Path

    def at(self, below: str) -> Tree:
        return Tree(self.root / below)

    def text(self, name: str) -> str | None:
        """The content of a file; None when there is none."""
        path = f"{self.root}/{name}"  # a Path takes as long to make as a small file to read
        try:
            content = read_regular(path, LARGEST_FILE)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise BadFile(self.root / name, "", str(error.strerror)) from error
            raise NotThere(f"{path}: cannot be read: {error.strerror}") from error
        # Kernels before 3.x end the lists of NUMA nodes with a NUL.
        return content.replace(b"\0", b"").decode("utf-8", "replace")

    def parsed(self, name: str, parse: Callable[[str], T]) -> T | None:
        """The content of a file as `parse` understands it; None without a file; BadFile where `parse` refuses."""
        content = self.text(name)
        if content is None:
            return None
        try:
            return parse(content)
        except ValueError as error:
            raise BadFile(self.root / name, content, str(error)) from error

    def needed(self, name: str, parse: Callable[[str], T]) -> T:
        """Like `parsed`, but a missing file is NotThere."""
        value = self.parsed(name, parse)
        if value is None:
            raise NotThere(f"{self.root / name}: there is no such file")
        return value

    def numbered(self, prefix: str) -> list[int]:
        """The N of every entry named PREFIX + N, ascending; none when the folder is missing."""
        try:
            names = [entry.name for entry in self.root.iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        suffixes = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
        # Linux numbers at most 8192 CPUs and 1024 NUMA nodes.
        return sorted(int(suffix) for suffix in suffixes if re.fullmatch(r"[0-9]{1,4}", suffix))
