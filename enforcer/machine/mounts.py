"""Where cgroup hierarchies are mounted: /proc/mounts, read for cgroup v1, v2 and both at once (systemd's hybrid)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CONTROLLERS = frozenset({"cpuset", "cpu", "cpuacct", "memory"})
"""The v1 controllers that this package reads; the other words of a mount's options are of no concern."""

MOUNTS = Path("/proc/self/mounts")

_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class CgroupMounts:
    """Mount points: of the v2 hierarchy (None: not mounted), and of each v1 controller."""

    unified: Path | None = None
    controllers: Mapping[str, Path] = field(default_factory=dict, hash=False)


def mounted(mounts: Path = MOUNTS) -> CgroupMounts:
    """As this process sees them. A mount point of any user's may have any bytes in its name."""
    return cgroup_mounts(mounts.read_bytes().decode(errors="replace"))


def cgroup_mounts(text: str) -> CgroupMounts:
    """From the text of /proc/mounts. Of several mounts of one hierarchy the first counts: later ones are binds."""
    unified: Path | None = None
    controllers: dict[str, Path] = {}
    for line in text.split("\n"):
        fields = line.split(" ")
        if len(fields) < 4:
            continue
        point, kind, options = Path(_unescaped(fields[1])), fields[2], fields[3]
        if kind == "cgroup2":
            unified = unified or point
        elif kind == "cgroup":
            for controller in CONTROLLERS & set(options.split(",")):
                controllers.setdefault(controller, point)
    return CgroupMounts(unified, controllers)


def _unescaped(path: str) -> str:
    """The kernel writes a blank in a path as an octal escape."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), path)
