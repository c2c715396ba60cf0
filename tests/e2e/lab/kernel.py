"""What the kernel says of a process: the only witness that counts for a pin."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process may run and take memory, in the kernel's list format ("0-3,8")."""

    cpus: str
    mems: str


def allowed(pid: int) -> Place:
    """From /proc/PID/status: what is in force."""
    status = Path(f"/proc/{pid}/status").read_text()
    return Place(*(re.findall(rf"^{what}_allowed_list:\s*(\S*)", status, re.MULTILINE)[0] for what in ("Cpus", "Mems")))


def cgroup(pid: int, controller: str) -> Path:
    """The folder of a process's cgroup: on cgroup v1 the controller's, on v2 the only one."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return CGROUPS / controller / path.lstrip("/")
        if not controllers and (folder := CGROUPS / path.lstrip("/")) and (folder / "cgroup.controllers").exists():
            return folder
    raise LookupError(f"process {pid} is in no {controller} cgroup")


def cpuset(pid: int) -> Place:
    """From the container's own cgroup files: what was asked for; empty where nothing was (cgroup v2 only)."""
    folder = cgroup(pid, "cpuset")
    return Place(*((folder / f"cpuset.{what}").read_text().strip() for what in ("cpus", "mems")))


def anonymous_pages(pid: int) -> Counter[int]:
    """NUMA node -> bytes of anonymous memory that a container's processes have there, from their numa_maps.

    pid: any of the processes. Mappings of files are left out, the written ones too, since they are counted together with
    the page cache's pages, which stay on the NUMA node of whoever read them first.
    """
    result: Counter[int] = Counter()
    for part in (cgroup(pid, "memory") / "cgroup.procs").read_text().split():
        for line in Path(f"/proc/{part}/numa_maps").read_text().splitlines():
            if " anon=" in line and " file=" not in line:
                size = int(re.findall(r"kernelpagesize_kB=(\d+)", line)[0]) << 10
                for node, pages in re.findall(r"\bN(\d+)=(\d+)", line):
                    result[int(node)] += int(pages) * size
    return result


def anonymous_memory(pid: int) -> Counter[int]:
    """NUMA node -> bytes of anonymous memory of a container, from its cgroup's memory.numa_stat (cgroup v2)."""
    for line in (cgroup(pid, "memory") / "memory.numa_stat").read_text().splitlines():
        kind, *nodes = line.split()
        if kind == "anon":
            return Counter({int(node[1:]): int(size) for node, size in (entry.split("=") for entry in nodes)})
    raise LookupError("memory.numa_stat has no anon line")


def online_cpus() -> str:
    return Path("/sys/devices/system/cpu/online").read_text().strip()
