"""This machine's procfs, but for its CPUs, which are never used: where a pod goes then hangs on requests alone, whatever
else the machine is doing.
"""

from __future__ import annotations

from pathlib import Path


def idle_procfs(folder: Path) -> Path:
    """Made below `folder`, of links; without processes."""
    made = folder / "proc"
    made.mkdir(parents=True)
    for one in Path("/proc").iterdir():
        if not one.name.isdecimal() and one.name != "stat":
            (made / one.name).symlink_to(one)
    (made / "stat").write_text(Path("/proc/stat").read_text())
    return made
