"""Where runtimes put containers, by either cgroup driver and by OCI runtimes that make cgroups of their own below: what
is read, written and given back there, in this machine's kernel.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from enforcer.machine.cgroup import CPUS, MEMS, CgroupTree
from enforcer.machine.cgroup_path import folder_below_mount
from lab.standins.patience import until
from numakin.placement.model.cpuset import CpuSet

UID = "0f0b6d7e-8a7b-4e3b-9a53-0c6d9a7d2f11"
TOP = f"numakin{os.getpid()}"
TOUCHED = 32 << 20

LAYOUTS = {
    "containerd, cgroupfs": (f"/{TOP}/pod{UID}/c1", ""),
    "CRI-O, cgroupfs": (f"/{TOP}/pod{UID}/crio-c1", ""),
    "containerd, systemd": (f"{TOP}-pod{UID.replace('-', '_')}.slice:cri-containerd:c1", ""),
    "CRI-O with crun, systemd": (f"{TOP}-pod{UID.replace('-', '_')}.slice:crio:c1", "container"),
}
"""The path that the runtime gives, and the cgroup below in which the processes are."""


@dataclass(frozen=True)
class Layout:
    """A container's cgroup with one process that has touched TOUCHED bytes. inner: where that is, by controller."""

    tree: CgroupTree
    path: str
    pid: int


def _make(folder: Path, top: Path) -> list[Path]:
    """The folders that are new, the uppermost first; a cpuset of cgroup v1 is filled as the kubelet and runc do."""
    made = [above for above in (*reversed(folder.parents), folder) if top in above.parents and not above.exists()]
    for each in made:
        each.mkdir()
        for name in (CPUS, MEMS):
            if (each / name).exists() and (top / "cpuset.memory_migrate").exists():
                (each / name).write_text((each.parent / name).read_text())
        if (each / "cgroup.subtree_control").exists() and each != folder:
            (each / "cgroup.subtree_control").write_text("+cpuset +memory +cpu")
    return made


@pytest.fixture(params=[*LAYOUTS.values()], ids=[*LAYOUTS])
def layout(request: pytest.FixtureRequest) -> Iterator[Layout]:
    path, below = request.param
    tree = CgroupTree.discover()
    tops = {tree.folder("/", controller) for controller in ("cpuset", "memory", "cpuacct")}
    if os.geteuid() != 0 or None in tops:
        pytest.skip("no cgroup with cpusets, memory and CPU time can be made here")
    with ExitStack() as stack:
        inner = [top / folder_below_mount(path) / below for top in tops]
        for top, folder in zip(tops, inner, strict=True):
            for made in _make(folder, top):
                stack.callback(made.rmdir)
        joins = " && ".join(f"echo $$ > {folder}/cgroup.procs" for folder in inner)
        script = f"{joins} && head -c 1G /dev/zero | tail -c {TOUCHED} | sleep 600"
        process = subprocess.Popen(["sh", "-c", script], start_new_session=True)
        stack.callback(
            until, lambda: not any((folder / "cgroup.procs").read_text() for folder in inner), "the cgroups to be empty"
        )
        stack.callback(process.wait)
        stack.callback(os.killpg, process.pid, 9)
        folder = tree.folder(path)
        assert folder is not None
        until((folder / below / "cgroup.procs").read_text, "the process to be there")
        yield Layout(tree, path, process.pid)


def test_memory_and_cpu_time_are_those_of_all_processes_below(layout: Layout) -> None:
    def touched() -> bool:
        return sum((layout.tree.memory_by_numa_node(layout.path) or {}).values()) >= TOUCHED

    until(touched, "the kernel to count the memory")
    assert (layout.tree.cpu_seconds(layout.path) or 0.0) > 0


def test_the_pods_own_cgroup_is_known_as_such(layout: Layout) -> None:
    assert layout.tree.has_pod(layout.path, UID)
    assert not layout.tree.has_pod(layout.path, UID.replace("0", "1"))


def test_a_cpuset_is_read_as_it_was_written_and_given_back_whole(layout: Layout) -> None:
    before = layout.tree.cpuset(layout.path)
    assert before is not None
    first = CpuSet.of((min(before.effective_cpus),))
    if first == before.effective_cpus:
        pytest.skip("one CPU here")
    folder = layout.tree.folder(layout.path)
    assert folder is not None
    for inner in folder.glob("*/cpuset.memory_migrate"):  # on version 1 a cgroup has at least what one below it has
        (inner.parent / CPUS).write_text(str(first))
    layout.tree.set_cpuset(layout.path, first)
    pinned = layout.tree.cpuset(layout.path)
    assert pinned is not None
    assert (pinned.cpus, pinned.effective_cpus) == (first, first)
    allowed = Path(f"/proc/{layout.pid}/status").read_text().partition("Cpus_allowed_list:\t")[2].splitlines()[0]
    assert CpuSet.parse(allowed) == first
    layout.tree.open_cpuset(layout.path)
    opened = layout.tree.cpuset(layout.path)
    assert opened is not None
    assert opened.effective_cpus == before.effective_cpus
