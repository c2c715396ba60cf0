"""What sysfs, procfs and cgroupfs say of a machine, as files in a folder."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath

from enforcer.machine import cgroup_path
from enforcer.machine.cgroup import CgroupTree
from enforcer.machine.errors import MachineError
from enforcer.machine.load import cpu_times, memory_stall
from enforcer.machine.memory import free_hugepages, free_memory
from enforcer.machine.mounts import cgroup_mounts
from enforcer.machine.sysfs import read
from lab.standins.machines import MACHINES, write_sysfs
from tests.fuzz.target import Target, must

SEPARATOR = b"\xfe"
"""Between the files of one input; no kernel file has it."""

FILES = (
    "devices/system/cpu/online",
    "devices/system/cpu/isolated",
    "devices/system/cpu/cpu0/topology/core_cpus_list",
    "devices/system/cpu/cpu0/cache/index3/shared_cpu_list",
    "devices/system/cpu/cpu0/cache/index3/level",
    "devices/system/cpu/cpu0/topology/physical_package_id",
    "devices/system/node/online",
    "devices/system/node/has_normal_memory",
    "devices/system/node/node0/cpulist",
    "devices/system/node/node0/distance",
    "devices/system/node/node0/meminfo",
    "devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
    "devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages",
)
PROC_FILES = ("stat", "zoneinfo", "meminfo", "pressure/memory", "mounts")


def machine(data: bytes) -> None:
    """MachineError, or a machine whose NUMA nodes share no CPU."""
    root = _sysfs()
    _fill(root, FILES, data)
    try:
        nodes = read(root, "n1").machine.numa_nodes
        must(sum(len(node.cpus) for node in nodes) == len(frozenset(c for n in nodes for c in n.cpus)), "disjoint CPUs")
    except MachineError:
        pass
    with suppress(MachineError):
        must(min(free_memory(root, root).values(), default=0) >= 0, "no amount of memory is negative")
    with suppress(MachineError):
        pages = [amount for sizes in free_hugepages(root).values() for amount in sizes.values()]
        must(min(pages, default=0) >= 0, "no amount of pages is negative")


def procfs(data: bytes) -> None:
    root = _procfs()
    _fill(root, PROC_FILES, data)
    for reading in (
        lambda: cpu_times(root),
        lambda: memory_stall(root),
        lambda: free_memory(root / "none", root),
        lambda: CgroupTree.discover(root),
    ):
        with suppress(MachineError):
            reading()


def cgroup(data: bytes) -> None:
    """A cgroup's path by the runtime's word: never outside of its mount; and a process's own."""
    text = data.decode(errors="replace")
    cgroup_path.path_of_container(text, "id")
    cgroup_mounts(text)
    try:
        place = cgroup_path.folder_below_mount(text)
    except MachineError:
        return
    must(not place.startswith("/") and ".." not in place.split("/"), "no cgroup lies outside of its mount")
    must(PurePosixPath("/mount") in (PurePosixPath("/mount") / place / "x").parents, "below the mount")
    CgroupTree(Path("/nowhere")).cpuset(text)


def _fill(root: Path, files: tuple[str, ...], data: bytes) -> None:
    """A part that is missing leaves its file out."""
    parts = data.split(SEPARATOR)
    for file, part in zip(files, [*parts, *[None] * len(files)], strict=False):
        path = root / file
        if part is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(part)


@cache
def _sysfs() -> Path:
    """A small machine; the files of FILES are of each input."""
    root = scratch()
    write_sysfs(MACHINES["laptop-no-numa"], root)
    return root


@cache
def _procfs() -> Path:
    return scratch()


def scratch() -> Path:
    """In memory where there is such a place: thousands of inputs are written there."""
    memory_backed = Path("/dev/shm")
    root = Path(tempfile.mkdtemp(prefix="numakin-fuzz-", dir=memory_backed if memory_backed.is_dir() else None))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return root


def _machines() -> Iterator[bytes]:
    parts = (
        b"0-7", b"2", b"0,4", b"0-7", b"3", b"0", b"0", b"0", b"0-7", b"10",
        b"Node 0 MemTotal: 16384 kB\nNode 0 MemFree: 8192 kB\nNode 0 Inactive(file): 10 kB\n", b"4", b"2",
    )  # fmt: skip
    yield SEPARATOR.join(parts)
    yield SEPARATOR.join(parts[:4])


def _procs() -> Iterator[bytes]:
    stat = b"cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 10 0 20 300 4 0 1 0 0 0\ncpu1 10 0 20 300 4 0 1 0 0 0\nintr 1\n"
    zones = b"Node 0, zone   Normal\n  pages free 100\n        min 1\n        low 2\n        high 75\n"
    meminfo = b"MemTotal: 16384 kB\nMemFree: 1000 kB\nHugePages_Total: 3\n"
    stall = b"some avg10=1.50 avg60=0.10 avg300=0.00 total=123\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
    mounts = b"cgroup2 /sys/fs/cgroup/uni\\040fied cgroup2 rw 0 0\ncgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n"
    yield SEPARATOR.join((stat, zones, meminfo, stall, mounts))


def _cgroups() -> Iterator[bytes]:
    yield b"/kubepods/burstable/pod1234/0123abcd"
    yield b"kubepods-burstable-pod1234.slice:cri-containerd:0123abcd"
    yield b"system.slice::a.slice"
    yield b"12:cpuset:/kubepods/pod1\n0::/kubepods.slice/a.scope\n"
    yield b"cgroup2 /sys/fs/cgroup cgroup2 rw 0 0"


TARGETS = (
    Target("sysfs", machine, _machines),
    Target("procfs", procfs, _procs),
    Target("cgroup-paths", cgroup, _cgroups),
)
