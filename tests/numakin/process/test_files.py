"""Only regular files are read, and nothing is waited for."""

import os
from pathlib import Path

import pytest

from numakin.process.files import read_regular, worded


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    content = os.urandom(200_000)
    (tmp_path / "file").write_bytes(content)
    assert read_regular(tmp_path / "file") == content


def test_the_kernels_own_are_read() -> None:
    assert b"processor" in read_regular("/proc/cpuinfo")


def test_a_bound_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    assert read_regular(tmp_path / "file", largest=100) == b"x" * 100
    with pytest.raises(OSError, match="longer than 99 bytes"):
        read_regular(tmp_path / "file", largest=99)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path)


def test_a_fifo_and_a_device_are_refused_by_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/zero")):
        with pytest.raises(OSError, match="not a regular file") as refused:
            read_regular(path)
        assert worded(refused.value) == f"{path}: not a regular file"


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as refused:
        read_regular(tmp_path / "none")
    assert worded(refused.value) == f"{tmp_path}/none: No such file or directory"
