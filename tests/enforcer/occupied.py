"""A real cgroup for a container of the stand-in runtime, with memory that a process has touched.

The machine that the enforcer is shown has two NUMA nodes; the kernel beneath has what it has, and all that processes
touch here is on its own ones.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from enforcer.machine.cgroup import CgroupTree
from lab.standins.patience import until
from lab.standins.runtime.records import Container

TOUCHED = 48 << 20


@pytest.fixture
def memory_cgroups() -> Path:
    """Where those with memory are; all of it is on NUMA node 0."""
    tree = CgroupTree.discover()
    folder = tree.folder("/", "memory")
    if folder is None or os.geteuid() != 0 or not (folder / "memory.numa_stat").exists():
        pytest.skip("no cgroup whose memory is counted can be made here")
    if (Path("/sys/devices/system/node/online")).read_text().strip() != "0":
        pytest.skip("processes may touch memory on several NUMA nodes here")
    return folder


@contextmanager
def occupied(top: Path, container: Container) -> Iterator[None]:
    """A real cgroup where the runtime says that the container's is, with a process that has touched memory."""
    path = container.message().linux.cgroups_path.lstrip("/")
    made = [folder for folder in (top / path, *(top / path).parents) if top in folder.parents and not folder.exists()]
    (top / path).mkdir(parents=True)
    script = f"echo $$ > {top / path}/cgroup.procs && head -c 1G /dev/zero | tail -c {TOUCHED} | sleep 600"
    process = subprocess.Popen(["sh", "-c", script], start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, 9)
        process.wait()
        until(lambda: not (top / path / "cgroup.procs").read_text(), "the cgroup to be empty")
        for folder in made:
            folder.rmdir()
