"""What procfs and cgroups tell of a container, from its first process: the facts of LocalContainer."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from enforcer.observe.attribution.containers import Address, LocalContainer

PROC = Path("/proc")
MOUNTS = Path("/proc/self/mounts")

CGROUPS_MAX = 256
"""Cgroups below one container's that are told apart as its own; a container that runs systemd has some dozens."""


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """Where cgroups are mounted; None where they are not. `unified`: version 2. `cpuset`: that controller's hierarchy
    of version 1, in which a container has a cgroup of its own where it has none in version 2.
    """

    unified: Path | None
    cpuset: Path | None = None

    @classmethod
    def mounted(cls, mounts: Path = MOUNTS) -> "Hierarchies":
        unified = cpuset = None
        for line in mounts.read_text().splitlines():
            _, mount, kind, options, *_ = line.split()
            if kind == "cgroup2":
                unified = unified or Path(mount)
            elif kind == "cgroup" and "cpuset" in options.split(","):
                cpuset = cpuset or Path(mount)
        return cls(unified, cpuset)


def find_container(
    container_id: str,
    pod_uid: str,
    pid: int,
    *,
    addresses: tuple[Address, ...] = (),
    host_network: bool = False,
    hierarchies: Hierarchies,
    proc: Path = PROC,
) -> LocalContainer:
    """`pid` is the container's first process, in the host's pid namespace. ProcessLookupError if it has ended.

    Whether the pod is in the host's network is the runtime's to say: to compare namespaces takes CAP_SYS_PTRACE.
    """
    try:
        text = (proc / str(pid) / "cgroup").read_text()
        directories = list(_below(hierarchies.unified, cgroup_path(text)))
        processes = directories or list(_below(hierarchies.cpuset, cgroup_path(text, "cpuset")))
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessLookupError(f"process {pid} of container {container_id} has ended") from error
    ids = frozenset(inode for inode, _ in directories)
    pids = frozenset({pid}.union(*(members(directory) for _, directory in processes)))
    namespace = 0 if host_network else network_namespace(pid, proc)
    return LocalContainer(container_id, pod_uid, ids, addresses, host_network, pids, namespace)


def network_namespace(pid: int, proc: Path = PROC) -> int:
    """The inode of a process's network namespace; 0 if it has ended or may not be looked at."""
    try:
        return (proc / str(pid) / "ns" / "net").stat().st_ino
    except OSError:
        return 0


def cgroup_path(text: str, controller: str = "") -> str:
    """The path in /proc/PID/cgroup, relative to the root: of version 2, or of a controller of version 1. Empty for the
    root itself.
    """
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path.lstrip("/")
    return ""


def _below(root: Path | None, path: str) -> Iterator[tuple[int, Path]]:
    """A container in the root has no cgroup of its own: the ids and processes there are everyone's."""
    if root is not None and path:
        yield from cgroups(root / path)


def cgroups(directory: Path) -> Iterator[tuple[int, Path]]:
    """(id, path) of a cgroup and of all below it: the id that the kernel counts by is the directory's inode."""
    for count, (path, _, _) in enumerate(os.walk(directory)):
        if count == CGROUPS_MAX:
            return
        yield Path(path).stat().st_ino, Path(path)


def members(directory: Path) -> list[int]:
    """Processes in a cgroup; a threaded one does not say."""
    try:
        return [int(line) for line in (directory / "cgroup.procs").read_text().split()]
    except OSError:
        return []
