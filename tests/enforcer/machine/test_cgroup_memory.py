"""A cgroup's memory by NUMA node, from the files of either version and from this machine's kernel."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from enforcer.machine.cgroup import CgroupTree
from enforcer.machine.errors import BadFile
from enforcer.machine.memory import PAGE_SIZE
from lab.standins.patience import until

V1 = "total=3 N0=1 N1=2\nhierarchical_total=7 N0=2 N1=5\n"
V2 = "anon N0=100 N1=20\nfile N0=3 N1=0\n"


@pytest.mark.parametrize("version", [1, 2])
def test_it_is_read_in_either_version(tmp_path: Path, version: int) -> None:
    (tmp_path / "podx/c1").mkdir(parents=True)
    (tmp_path / "podx/c1/memory.numa_stat").write_text(V1 if version == 1 else V2)
    hybrid = CgroupTree(unified=tmp_path / "unified", controllers={"memory": tmp_path})
    tree = hybrid if version == 1 else CgroupTree(unified=tmp_path)
    wanted = {0: 2 * PAGE_SIZE, 1: 5 * PAGE_SIZE} if version == 1 else {0: 103, 1: 20}
    assert tree.memory_by_numa_node("/podx/c1") == wanted


def test_without_the_file_it_is_not_known(tmp_path: Path) -> None:
    """Before 5.9 on version 2, without the memory controller, and when the container has gone."""
    (tmp_path / "podx").mkdir()
    assert CgroupTree(unified=tmp_path).memory_by_numa_node("/podx") is None
    assert CgroupTree(unified=tmp_path).memory_by_numa_node("/gone") is None
    assert CgroupTree(controllers={"cpuset": tmp_path}).memory_by_numa_node("/podx") is None


def test_a_file_of_another_form_is_named(tmp_path: Path) -> None:
    (tmp_path / "memory.numa_stat").write_text("nonsense\n")
    with pytest.raises(BadFile, match="neither a total nor anon and file"):
        CgroupTree(unified=tmp_path).memory_by_numa_node("/")


@pytest.fixture
def real() -> Iterator[tuple[CgroupTree, str]]:
    """A cgroup of this test's own."""
    tree = CgroupTree.discover()
    path = f"/numakin-memory-{os.getpid()}"
    top = tree.folder("/", "memory")
    if top is None or os.geteuid() != 0:
        pytest.skip("no cgroup with memory can be made here")
    folder = top / path[1:]
    folder.mkdir()
    try:
        if not (folder / "memory.numa_stat").exists():
            pytest.skip("this kernel counts no cgroup's memory by NUMA node")
        yield tree, path
    finally:
        folder.rmdir()


def test_what_a_process_has_touched_is_there(real: tuple[CgroupTree, str]) -> None:
    tree, path = real
    folder = tree.folder(path, "memory")
    script = f"echo $$ > {folder}/cgroup.procs && exec head -c 1G /dev/zero | tail -c 64M | sleep 600"
    process = subprocess.Popen(["sh", "-c", script], start_new_session=True)

    def touched() -> bool:
        return sum((tree.memory_by_numa_node(path) or {}).values()) >= 64 << 20

    try:
        until(touched, "the kernel to count it")
    finally:
        os.killpg(process.pid, 9)
        process.wait()
        assert folder is not None
        until(lambda: not (folder / "cgroup.procs").read_text(), "the cgroup to be empty")
