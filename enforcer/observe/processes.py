"""What procfs and cgroup v2 tell of a container, from its first process: the facts of LocalContainer."""

import os
from collections.abc import Iterator
from pathlib import Path

from enforcer.observe.residents import Address, LocalContainer

PROC = Path("/proc")
INIT = 1

CGROUPS_MAX = 256
"""Cgroups below one container's that are told apart as its own; a container that runs systemd has some dozens."""


def find_container(
    pid: int,
    container_id: str,
    pod_uid: str,
    addresses: tuple[Address, ...],
    *,
    cgroup_root: Path,
    proc: Path = PROC,
) -> LocalContainer:
    """`pid` is the container's first process, in the host's pid namespace. ProcessLookupError if it has ended."""
    try:
        path = cgroup_path((proc / str(pid) / "cgroup").read_text())
        # A container in the root has no cgroup v2 of its own: the ids below are everyone's.
        directories = list(cgroups(cgroup_root / path)) if path else []
        host_network = namespace(proc, pid) == namespace(proc, INIT)
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessLookupError(f"process {pid} of container {container_id} has ended") from error
    return LocalContainer(
        container_id,
        pod_uid,
        frozenset(inode for inode, _ in directories),
        addresses,
        host_network,
        frozenset({pid}.union(*(members(directory) for _, directory in directories))),
    )


def namespace(proc: Path, pid: int) -> int:
    """The inode of a process's network namespace."""
    return (proc / str(pid) / "ns" / "net").stat().st_ino


def cgroup_path(text: str) -> str:
    """The cgroup v2 path in /proc/PID/cgroup, relative to the root. Empty for the root itself."""
    for line in text.splitlines():
        if line.startswith("0::"):
            return line.removeprefix("0::").lstrip("/")
    return ""


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
