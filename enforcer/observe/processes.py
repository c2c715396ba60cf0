"""What procfs and cgroup v2 tell of a container, from its first process: the facts of LocalContainer."""

import os
from collections.abc import Iterator
from pathlib import Path

from enforcer.observe.residents import Address, LocalContainer

PROC = Path("/proc")

CGROUPS_MAX = 256
"""Cgroups below one container's that are told apart as its own; a container that runs systemd has some dozens."""


def find_container(
    container_id: str,
    pod_uid: str,
    pid: int,
    *,
    addresses: tuple[Address, ...] = (),
    host_network: bool = False,
    cgroup_root: Path,
    proc: Path = PROC,
) -> LocalContainer:
    """`pid` is the container's first process, in the host's pid namespace. ProcessLookupError if it has ended.

    Whether the pod is in the host's network is the runtime's to say: to compare namespaces takes CAP_SYS_PTRACE.
    """
    try:
        path = cgroup_path((proc / str(pid) / "cgroup").read_text())
        # A container in the root has no cgroup v2 of its own: the ids below are everyone's.
        directories = list(cgroups(cgroup_root / path)) if path else []
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessLookupError(f"process {pid} of container {container_id} has ended") from error
    ids = frozenset(inode for inode, _ in directories)
    pids = frozenset({pid}.union(*(members(directory) for _, directory in directories)))
    return LocalContainer(container_id, pod_uid, ids, addresses, host_network, pids)


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
