from pathlib import Path

import pytest

from lab.standins.machines import MACHINES, write_sysfs
from tests.trees import tmp_path

__all__ = ["tmp_path"]


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """The 4n machine's sysfs, to be spoiled."""
    write_sysfs(MACHINES["qemu-4n"], tmp_path / "sys")
    return tmp_path / "sys"
