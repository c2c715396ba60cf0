"""From the `cgroups_path` that a runtime gives to the cgroup's folder below its mount point, as runc and crun place it.

Two forms: the cgroupfs driver's is the path itself (`/kubepods/burstable/podUID/ID`); the systemd driver's is
`SLICE:PREFIX:NAME`, where a slice's name spells its parents (`a-b.slice` lies in `a.slice`) and the container is the
scope PREFIX-NAME.scope in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from enforcer.machine.errors import BadCgroupsPath

SLICE, SCOPE = ".slice", ".scope"
ROOT_SLICE = "-.slice"
DEFAULT_SLICE = "system.slice"
"""Where runc and crun put a container whose path names no slice."""

LONGEST_PATH = 4096
"""PATH_MAX."""


def folder_below_mount(cgroups_path: str) -> str:
    """The cgroup's folder, relative to the mount point of its hierarchy. BadCgroupsPath names what is wrong.

    Text, since a `Path` takes longer to make than all else here, and each running container asks three times.
    """
    if not cgroups_path or len(cgroups_path) > LONGEST_PATH or "\0" in cgroups_path:
        raise _bad(cgroups_path, f"not a path of 1..{LONGEST_PATH} characters")
    parts = cgroups_path.split(":")
    # A cgroupfs path may hold colons (a pod's static name can), but starts with a slash then.
    if len(parts) == 3 and "/" not in cgroups_path:
        return _of_systemd(cgroups_path, *parts)
    path = cgroups_path.lstrip("/")
    if ".." in path.split("/"):
        raise _bad(cgroups_path, "leads upwards")
    return path


UNIFIED = ""
"""In place of a controller: the hierarchy of version 2."""


def paths_of_process(text: str) -> Mapping[str, str]:
    """From the text of /proc/PID/cgroup: its path by each controller of version 1, and in version 2 (UNIFIED).

    A container that may make cgroups names them as it likes: only a line feed, which is in none, ends a line.
    """
    paths: dict[str, str] = {}
    for line in filter(None, text.split("\n")):
        _, _, hierarchy = line.partition(":")
        controllers, _, path = hierarchy.partition(":")
        paths.update(dict.fromkeys(controllers.split(","), path))
    return paths


def path_of_process(text: str) -> str:
    """From the text of /proc/PID/cgroup, the path in the hierarchy with cpusets, version 1 or 2; empty when in none."""
    paths = paths_of_process(text)
    return paths.get("cpuset") or paths.get(UNIFIED) or ""


def path_of_container(text: str, container: str) -> str:
    """From the text of /proc/PID/cgroup of its process, the path of the container with this id, which may have made
    cgroups below its own; empty where another process has the pid by now.
    """
    path = path_of_process(text)
    if not container or container not in path:
        return ""
    before, _, after = path.partition(container)
    return f"{before}{container}{after.partition('/')[0]}"


def _of_systemd(whole: str, slice_name: str, prefix: str, name: str) -> str:
    if not name:
        raise _bad(whole, "names no unit")
    # runc and crun: a name that is itself a slice is taken as it is; without a prefix there is no dash.
    unit = name if name.endswith(SLICE) else f"{prefix}-{name}{SCOPE}" if prefix else f"{name}{SCOPE}"
    return "/".join((*_slices(whole, slice_name or DEFAULT_SLICE), unit))


def _slices(whole: str, name: str) -> list[str]:
    """`a-b-c.slice` is a.slice/a-b.slice/a-b-c.slice (systemd.slice(5))."""
    if name == ROOT_SLICE:
        return []
    steps = name.removesuffix(SLICE).split("-")
    if not name.endswith(SLICE) or not all(steps):
        raise _bad(whole, f"{name!r} is not a slice's name")
    return ["-".join(steps[: depth + 1]) + SLICE for depth in range(len(steps))]


def _bad(cgroups_path: str, why: str) -> BadCgroupsPath:
    shown = cgroups_path if len(cgroups_path) <= 80 else cgroups_path[:77] + "..."
    return BadCgroupsPath(f"cgroups path {shown!r}: {why}")
