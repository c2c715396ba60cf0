"""What the emulated machine has of the one outside, and what it tells whoever waits there."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path


def mount(tag: str, folder: Path) -> None:
    """A folder that QEMU shares."""
    folder.mkdir()
    options = "trans=virtio,version=9p2000.L,msize=512000,cache=loose"
    subprocess.run(["mount", "-t", "9p", "-o", options, tag, folder], check=True)


def options(tag: str, folder: Path) -> tuple[str, str]:
    """QEMU's, which share it."""
    return "-virtfs", f"local,path={folder},mount_tag={tag},security_model=none,readonly=on"


def reached(what: str) -> None:
    """For whoever has to find out which step took so long."""
    print(f"{time.clock_gettime(time.CLOCK_BOOTTIME):.0f} s after the start: {what}", flush=True)
