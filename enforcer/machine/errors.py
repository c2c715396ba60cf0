"""What the machine's files can be wrong about: one root, one class for each kind of trouble."""

from __future__ import annotations

from pathlib import Path


class MachineError(Exception):
    """The root of every error that this package raises."""


class BadFile(MachineError):
    """A file of sysfs or procfs that does not hold what the kernel writes there. Names the file, shows the content."""

    def __init__(self, path: Path, content: str, why: str) -> None:
        self.path, self.content, self.why = path, content, why
        shown = content if len(content) <= 80 else content[:77] + "..."
        super().__init__(f"{path}: {shown!r}: {why}")


class NotThere(MachineError):
    """A file or folder that must be there is missing, or must not be read."""


class BadCgroupsPath(MachineError):
    """A `cgroups_path` in neither the cgroupfs nor the systemd form."""


class CgroupRefused(MachineError):
    """The kernel's rules do not let a cgroup have this cpuset."""
