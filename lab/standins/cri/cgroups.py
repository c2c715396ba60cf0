"""A cgroup v2 hierarchy of plain files, and a /proc with its mount: what a follower reads and writes."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory


class Cgroups:
    """Below `folder`: cgroup/ and proc/. cpus, mems: all that there are, in the kernel's list format."""

    def __init__(self, folder: Path, cpus: str, mems: str) -> None:
        self.root, self.procfs = folder / "cgroup", folder / "proc"
        self._effective = {"cpuset.cpus.effective": cpus, "cpuset.mems.effective": mems}
        self.procfs.mkdir(parents=True)
        (self.procfs / "mounts").write_text(f"cgroup2 {self.root} cgroup2 rw 0 0\n")
        self._fill(self.root)

    def make(self, cgroups_path: str) -> None:
        folder = self._folder(cgroups_path)
        for above in (folder.parent, folder):
            self._fill(above)
            for file in ("cpuset.cpus", "cpuset.mems"):
                if not (above / file).exists():
                    (above / file).write_text("\n")

    def limit(self, cgroups_path: str, memory: int | None) -> None:
        """A pod's cgroup as the kubelet makes it: with a memory limit, in bytes, where all its containers have one."""
        self._fill(self._folder(cgroups_path))
        (self._folder(cgroups_path) / "memory.max").write_text(f"{memory or 'max'}\n")

    def remove(self, cgroups_path: str) -> None:
        """At once, as the kernel does it: no reader sees it with some of its files."""
        with suppress(FileNotFoundError), TemporaryDirectory(dir=self.root.parent) as elsewhere:
            self._folder(cgroups_path).rename(Path(elsewhere) / "removed")

    def cpuset(self, cgroups_path: str) -> tuple[str, str]:
        """cpus and mems as they were written; empty where nothing was."""
        folder = self._folder(cgroups_path)
        return (folder / "cpuset.cpus").read_text().strip(), (folder / "cpuset.mems").read_text().strip()

    def set_cpuset(self, cgroups_path: str, cpus: str, mems: str) -> None:
        """As the runtime does; an empty list changes nothing."""
        for file, ids in (("cpuset.cpus", cpus), ("cpuset.mems", mems)):
            if ids:
                (self._folder(cgroups_path) / file).write_text(ids + "\n")

    def set_cpus(self, cgroups_path: str, cpus: str) -> None:
        """As another owner would."""
        (self._folder(cgroups_path) / "cpuset.cpus").write_text(cpus + "\n")

    def narrow(self, cgroups_path: str, cpus: str) -> None:
        """All that this cgroup, to come, and those below it have."""
        self._fill(self._folder(cgroups_path))
        (self._folder(cgroups_path) / "cpuset.cpus.effective").write_text(cpus + "\n")

    def refuse(self, cgroups_path: str) -> None:
        """From here on this cgroup's CPUs can't be written, by root either: EACCES, and they read as some CPU."""
        file = self._folder(cgroups_path) / "cpuset.cpus"
        other = file.with_suffix(".refusing")
        other.symlink_to("/proc/sys/kernel/cap_last_cap")
        other.replace(file)

    def delay(self, cgroups_path: str) -> Path:
        """From here on who writes this cgroup's CPUs waits, as for the kernel that moves pages, until the test reads
        the path that is returned.
        """
        file = self._folder(cgroups_path) / "cpuset.cpus"
        file.unlink()
        os.mkfifo(file)
        return file

    def _folder(self, cgroups_path: str) -> Path:
        return self.root / cgroups_path.lstrip("/")

    def _fill(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in self._effective.items():
            if not (folder / file).exists():
                (folder / file).write_text(text + "\n")
