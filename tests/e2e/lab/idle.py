"""This machine's procfs, but for its CPUs, which are never used: where a pod goes then hangs on requests alone, whatever
else the machine is doing.
"""

from __future__ import annotations

from pathlib import Path


def idle_procfs(folder: Path) -> Path:
    """Made below `folder`, of links; without processes."""
    made = folder / "proc"
    made.mkdir(parents=True)
    for path in Path("/proc").iterdir():
        if not path.name.isdecimal() and path.name != "stat":
            (made / path.name).symlink_to(path)
    (made / "stat").write_text(Path("/proc/stat").read_text())
    return made
