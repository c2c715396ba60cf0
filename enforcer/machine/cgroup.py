"""The cgroups of containers, version 1 or 2 as mounted: their cpusets, CPU time and memory, and their pods' limits."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeVar

from enforcer.machine import formats
from enforcer.machine.cgroup_path import SCOPE, SLICE, folder_below_mount
from enforcer.machine.errors import CgroupRefused, NotThere
from enforcer.machine.memory import PAGE_SIZE
from enforcer.machine.mounts import cgroup_mounts
from enforcer.machine.sysfs import PROCFS
from enforcer.machine.tree import Tree
from numakin.placement.model.cpuset import CpuSet, IdSet, NumaSet

CPUS = "cpuset.cpus"
MEMS = "cpuset.mems"

EFFECTIVE_V1 = {CPUS: "cpuset.effective_cpus", MEMS: "cpuset.effective_mems"}
EFFECTIVE_V2 = {CPUS: "cpuset.cpus.effective", MEMS: "cpuset.mems.effective"}

MEMORY_LIMIT_V1 = "memory.limit_in_bytes"
MEMORY_LIMIT_V2 = "memory.max"
MEMORY_BY_NODE = "memory.numa_stat"
CPU_TIME_CONTROLLER = "cpuacct"
"""Of version 1; version 2 counts in every cgroup."""

OF_ALL_PODS = ("/kubepods.slice", "/kubepods")
"""By the systemd driver, and by the cgroupfs driver."""

OF_PROCESSES = "container"
"""The cgroup of a container's processes that crun makes below the scope that systemd has; CRI-O knows it by that name.
The cpuset that a container is created or updated with is set in both.
"""

NO_LIMIT_V1 = 1 << 62
"""Version 1 has the largest multiple of a page below 2^63 where there is none."""

CpusAndMems = tuple[CpuSet, NumaSet]
"""What a container was given: its CPUs and the NUMA nodes of its memory; an empty set: nothing was."""

S = TypeVar("S", bound=IdSet)


@dataclass(frozen=True, slots=True)
class Cpuset:
    """What a cgroup is set to (empty: nothing of its own, on version 2), and what its tasks effectively get."""

    cpus: CpuSet
    mems: NumaSet
    effective_cpus: CpuSet
    effective_mems: NumaSet


@dataclass(frozen=True, slots=True)
class CgroupTree:
    """The mounted hierarchies: version 1 mount points by controller; what is not among them is in `unified`."""

    unified: Path | None = None
    controllers: Mapping[str, Path] = field(default_factory=dict, hash=False)

    @classmethod
    def discover(cls, proc_root: Path = PROCFS) -> Self:
        """As mounted, by `mounts` under proc_root. NotThere when no hierarchy holds the cpuset controller."""
        proc = Path(proc_root)
        mounts = cgroup_mounts(Tree(proc).needed("mounts", str))
        if "cpuset" not in mounts.controllers and mounts.unified is None:
            raise NotThere(f"{proc / 'mounts'}: no cgroup hierarchy with cpusets is mounted")
        return cls(mounts.unified, mounts.controllers)

    def version(self, controller: str = "cpuset") -> int:
        """1 or 2: which one holds this controller."""
        return 1 if controller in self.controllers else 2

    def folder(self, cgroups_path: str, controller: str = "cpuset") -> Path | None:
        """The cgroup's folder in the hierarchy of this controller; None when there is none (the container is gone)."""
        folder = self._place(cgroups_path, controller)
        return folder if folder is not None and folder.is_dir() else None

    def cpuset(self, cgroups_path: str) -> Cpuset | None:
        """The cgroup's cpuset, as far as its processes have it; None when there is no such cgroup."""
        folder = self.folder(cgroups_path)
        if folder is None:
            return None
        below = self._of_processes(folder)
        return Cpuset(
            cpus=_own(folder, below, CPUS, CpuSet),
            mems=_own(folder, below, MEMS, NumaSet),
            effective_cpus=self._effective(below or folder, CPUS, CpuSet),
            effective_mems=self._effective(below or folder, MEMS, NumaSet),
        )

    def widest_cpuset(self, cgroups_path: str) -> tuple[CpuSet, NumaSet] | None:
        """All that the cgroup above this one has; None when there is no such cgroup."""
        folder = self.folder(cgroups_path)
        if folder is None or folder == self._place("/", "cpuset"):
            return None
        return self._effective(folder.parent, CPUS, CpuSet), self._effective(folder.parent, MEMS, NumaSet)

    def of_all_pods(self) -> tuple[Path, CpusAndMems, CpuSet] | None:
        """The cgroup that the kubelet makes for all pods, what it may have, and the CPUs of the one above; None where
        there is none.
        """
        for name in OF_ALL_PODS:
            folder = self.folder(name)
            if folder is not None:
                has = self._effective(folder, CPUS, CpuSet), self._effective(folder, MEMS, NumaSet)
                return folder, has, self._effective(folder.parent, CPUS, CpuSet)
        return None

    def set_cpuset(self, cgroups_path: str, cpus: CpuSet = CpuSet(), mems: NumaSet = NumaSet()) -> None:
        """Sets what is not empty; leaves the other as it is.

        CgroupRefused says which rule of the kernel was in the way, and all is as it was; NotThere: no such cgroup (the
        container is gone).

        Version 2 moves the pages when mems change; version 1 only where its `cpuset.memory_migrate` is 1.
        """
        folder = self._settable(cgroups_path)
        # Version 2 would take ids that its parent has not, and then grant the parent's whole set: a pin that is none.
        self._check_within_parent(folder, CPUS, cpus)
        self._check_within_parent(folder, MEMS, mems)
        before = Tree(folder).parsed(MEMS, NumaSet.parse) or self._effective(folder.parent, MEMS, NumaSet)
        if mems:
            self._write_line(folder / MEMS, str(mems))
        try:
            if cpus:
                self._write_line(folder / CPUS, str(cpus))
        except CgroupRefused:
            if mems:
                self._write_line(folder / MEMS, str(before))
            raise
        self._set_below(folder, cpus, mems)

    def open_cpuset(self, cgroups_path: str, *, cpus: bool = True, mems: bool = True) -> None:
        """Gives back all that the parent has; what is False is left as it is. Raises as `set_cpuset`.

        By name: neither version takes an empty list while there are tasks (ENOSPC).
        """
        above = self._settable(cgroups_path).parent
        self.set_cpuset(
            cgroups_path,
            self._effective(above, CPUS, CpuSet) if cpus else CpuSet(),
            self._effective(above, MEMS, NumaSet) if mems else NumaSet(),
        )

    def pod_limits_memory(self, cgroups_path: str, pod: str) -> bool | None:
        """Whether the pod's own cgroup, the one above this container's, has a memory limit: the kubelet gives it one
        when every container of the pod has one, and before it makes the first. None when it is not known: the kubelet
        has made no cgroup for the pod (pod: its uid), or none that is seen from here.
        """
        mount = self.controllers.get("memory", self.unified)
        above = _of_pod(cgroups_path, pod) if mount is not None else None
        if mount is None or above is None:
            return None
        if self.version("memory") == 2:
            text = Tree(mount).text(f"{above}/{MEMORY_LIMIT_V2}")
            return None if text is None else text.strip() != "max"
        limit = Tree(mount).parsed(f"{above}/{MEMORY_LIMIT_V1}", formats.number)
        return None if limit is None else 0 <= limit < NO_LIMIT_V1

    def cpu_seconds(self, cgroups_path: str) -> float | None:
        """The CPU time that the cgroup's tasks have taken; None where it is not counted, or there is no such cgroup."""
        place = self._place(cgroups_path, CPU_TIME_CONTROLLER)
        if place is None:
            return None
        if self.version(CPU_TIME_CONTROLLER) == 1:
            nanoseconds = Tree(place).parsed("cpuacct.usage", formats.number)
            return None if nanoseconds is None else nanoseconds / 1e9
        microseconds = Tree(place).parsed("cpu.stat", formats.cpu_usage)
        return None if microseconds is None else microseconds / 1e6

    def cpu_waited(self, cgroups_path: str) -> float | None:
        """The seconds in which some task of the cgroup was ready and had no CPU. None where that is not counted
        (version 1, Linux before 4.20, psi=0), or there is no such cgroup.
        """
        place = self._place(cgroups_path, "cpu") if self.version("cpu") == 2 else None
        if place is None:
            return None
        microseconds = Tree(place).parsed("cpu.pressure", formats.stall_total)
        return None if microseconds is None else microseconds / 1e6

    def memory_by_numa_node(self, cgroups_path: str) -> Mapping[int, int] | None:
        """Bytes that the cgroup has on each NUMA node, as `formats.numa_stat` counts them; the kernel's figure is up to
        two seconds old. None where it keeps none, or there is no such cgroup.
        """
        place = self._place(cgroups_path, "memory")
        if place is None:
            return None
        return Tree(place).parsed(MEMORY_BY_NODE, lambda text: formats.numa_stat(text, PAGE_SIZE))

    def has_pod(self, cgroups_path: str, pod: str) -> bool:
        """Whether the pod's own cgroup, the one above this container's, is there. pod: its uid."""
        mount = self.controllers.get("cpuset", self.unified)
        above = _of_pod(cgroups_path, pod) if mount is not None else None
        return mount is not None and above is not None and (mount / above).is_dir()

    def _of_processes(self, folder: Path) -> Path | None:
        """crun's cgroup below a container's, where there is one with a cpuset."""
        below = folder / OF_PROCESSES
        scope = folder.name.endswith(SCOPE) and self.version() == 2
        return below if scope and (below / CPUS).exists() else None

    def _set_below(self, folder: Path, cpus: CpuSet, mems: NumaSet) -> None:
        """What has nothing of its own there follows by itself."""
        below = self._of_processes(folder)
        for file, ids in ((CPUS, cpus), (MEMS, mems)):
            if below is not None and ids and (Tree(below).text(file) or "").strip():
                self._write_line(below / file, str(ids))

    def _place(self, cgroups_path: str, controller: str) -> Path | None:
        mount = self.controllers.get(controller, self.unified)
        return mount / folder_below_mount(cgroups_path) if mount else None

    def _effective(self, folder: Path, file: str, kind: type[S]) -> S:
        """Of the cgroup, or of the nearest parent for which the controller is on."""
        mount = self.controllers.get("cpuset", self.unified)
        names = (EFFECTIVE_V1 if self.version() == 1 else EFFECTIVE_V2)[file], file
        for above in (folder, *folder.parents):
            for name in names:
                ids = Tree(above).parsed(name, kind.parse)
                if ids:
                    return ids
            if above == mount:
                break
        return kind()

    def _check_within_parent(self, folder: Path, file: str, ids: IdSet) -> None:
        allowed = self._effective(folder.parent, file, type(ids))
        if ids and not ids <= allowed:
            raise CgroupRefused(
                f"{folder / file}: {ids - allowed} of {ids} is not in {allowed}, all that its parent has"
            )

    def _settable(self, cgroups_path: str) -> Path:
        folder = self.folder(cgroups_path)
        if folder is None:
            raise NotThere(f"{self._place(cgroups_path, 'cpuset')}: there is no such cgroup")
        if folder == self._place("/", "cpuset"):
            raise CgroupRefused(f"{folder}: the root cgroup always has every CPU and all memory")
        if not (folder / CPUS).exists():
            raise CgroupRefused(f"{folder / CPUS}: the cpuset controller is not on for this cgroup")
        return folder

    def _write_line(self, path: Path, text: str) -> None:
        try:
            path.write_text(f"{text}\n")
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENODEV):
                raise NotThere(f"{path}: the cgroup has gone") from error
            raise CgroupRefused(f"{path}: the kernel refuses {text!r}: {error.strerror}") from error


def _own(folder: Path, below: Path | None, file: str, kind: type[S]) -> S:
    """What a cgroup is set to, or of that what the one below leaves its processes; where that leaves none, the kernel
    gives them all of it.
    """
    own = Tree(folder).parsed(file, kind.parse) or kind()
    inner = (Tree(below).parsed(file, kind.parse) if below is not None else None) or kind()
    return (own & inner or own or inner) if inner else own


def _of_pod(cgroups_path: str, pod: str) -> str | None:
    """The folder above, below its mount, where the kubelet gave it its name of the pod with this uid, by either cgroup
    driver. Text: a container may wait, and parts of a `Path` take longer than all else here.
    """
    *above, _ = ("", *(part for part in folder_below_mount(cgroups_path).split("/") if part not in ("", ".")))
    name = above[-1] if above else ""
    own = name == f"pod{pod}" or name.endswith(f"-pod{pod.replace('-', '_')}{SLICE}")
    return "/".join(above[1:]) if own else None
