"""What procfs and cgroups show of a container, from its first process: the facts of LocalContainer."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from enforcer.machine.cgroup_path import UNIFIED, folder_below_mount, paths_of_process
from enforcer.machine.errors import BadCgroupsPath
from enforcer.machine.mounts import CgroupMounts
from enforcer.observe.attribution.containers import Address, LocalContainer

PROC = Path("/proc")

HOST = 1
"""A process in the node's own network namespace."""

_PID = re.compile(rb"[1-9][0-9]{0,9}")

CGROUPS_MAX = 256
"""Cgroups below one container's that are told apart as its own; a container that runs systemd has some dozens."""


class TakenOver(ProcessLookupError):
    """Another process has the id of one that has ended."""


def find_container(
    container_id: str,
    pod_uid: str,
    pid: int,
    *,
    cgroups_path: str = "",
    addresses: tuple[Address, ...] = (),
    host_network: bool | None = False,
    mounts: CgroupMounts,
    proc: Path = PROC,
) -> LocalContainer:
    """`pid` is the container's first process, in the host's pid namespace. ProcessLookupError if it has ended, which is
    TakenOver if another pod's process has its id by now: `is_of` tells by the container's `cgroups_path`. The cgroups
    are read once, and last: what was read of the process before is then its own too.

    host_network: None where it is not known whether the pod is in the host's network. Then it is where its process has
    the node's own network namespace; to compare them takes CAP_SYS_PTRACE, and without it the pod is taken for one with
    its own.
    """
    namespace = 0 if host_network else network_namespace(pid, proc)
    if host_network is None:
        host_network = bool(namespace) and namespace == network_namespace(HOST, proc)
    try:
        paths = _own_cgroups(pid, cgroups_path, proc)
        directories = list(_below(mounts.unified, paths.get(UNIFIED, "")))
        # Where containers have no cgroup of their own in version 2, they have one for version 1's cpusets.
        processes = directories or list(_below(mounts.controllers.get("cpuset"), paths.get("cpuset", "")))
    except TakenOver:
        raise
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessLookupError(f"process {pid} of container {container_id} has ended") from error
    ids = frozenset(inode for inode, _ in directories)
    pids = frozenset({pid}.union(*(members(directory) for _, directory in processes)))
    return LocalContainer(container_id, pod_uid, ids, addresses, host_network, pids, 0 if host_network else namespace)


def _own_cgroups(pid: int, cgroups_path: str, proc: Path) -> Mapping[str, str]:
    paths = cgroups_of(pid, proc)
    if not is_of(paths, cgroups_path):
        raise TakenOver(f"process {pid} is another pod's by now than that of {cgroups_path}")
    return paths


def is_of(paths: Mapping[str, str], cgroups_path: str) -> bool:
    """Whether the process is in the cgroup of the container's pod, in any hierarchy; of a container whose start failed
    the runtime tells the process id for minutes, and it may be another pod's by then. That of a sandboxed one (gVisor)
    is its pod's sandbox. True where the runtime names no cgroup.

    paths: the process's, as `cgroups_of` has them. cgroups_path: the container's, as the runtime gives it.
    """
    try:
        pod, _, container = folder_below_mount(cgroups_path).rpartition("/")
    except BadCgroupsPath:
        return True
    folder = pod.rpartition("/")[2] or container
    return any(folder in path.split("/") for path in paths.values())


def cgroups_of(pid: int, proc: Path = PROC) -> Mapping[str, str]:
    """As `paths_of_process` has them. OSError if the process has ended."""
    return paths_of_process(os.fsdecode((proc / str(pid) / "cgroup").read_bytes()))


def network_namespace(pid: int, proc: Path = PROC) -> int:
    """The inode of a process's network namespace; 0 if it has ended or may not be looked at."""
    try:
        return (proc / str(pid) / "ns" / "net").stat().st_ino
    except OSError:
        return 0


def _below(root: Path | None, path: str) -> Iterator[tuple[int, Path]]:
    """A container in the root has no cgroup of its own: the ids and processes there are everyone's."""
    below = path.lstrip("/")
    if root is not None and below:
        yield from cgroups(root / below)


def cgroups(directory: Path) -> Iterator[tuple[int, Path]]:
    """(id, path) of a cgroup and of all below it: the id that the kernel counts by is the directory's inode. What goes
    meanwhile below is left out. FileNotFoundError if the cgroup itself goes.
    """
    for count, (path, _, _) in enumerate(os.walk(directory)):
        if count == CGROUPS_MAX:
            return
        try:
            inode = Path(path).stat().st_ino
        except FileNotFoundError:
            if not count:
                raise
            continue
        yield inode, Path(path)


def members(directory: Path) -> list[int]:
    """Processes in a cgroup; a threaded one does not say. What is no process id is passed over."""
    try:
        lines = (directory / "cgroup.procs").read_bytes().split()
    except OSError:
        return []
    return [int(line) for line in lines if _PID.fullmatch(line)]
