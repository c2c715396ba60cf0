"""Run on the real procfs, with processes that the tests start."""

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from enforcer.observe.attribution.containers import LocalContainer
from enforcer.observe.attribution.edges import Edge, Local
from enforcer.observe.attribution.shared_memory import scan
from tests.enforcer.observe.observe_lab import end

MIB = 1 << 20

# Maps a file shared (or private, or read only), touches so many bytes of it, says so and waits.
HOLDER = """
import mmap, os, sys
path, size, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
fd = os.open(path, os.O_RDWR)
flags = mmap.MAP_PRIVATE if how == "private" else mmap.MAP_SHARED
protection = mmap.PROT_READ if how == "read" else mmap.PROT_READ | mmap.PROT_WRITE
held = mmap.mmap(fd, 0, flags, protection)
for at in range(0, size, 4096):
    held[at] if how == "read" else held.__setitem__(at, 1)
print("ready", flush=True)
sys.stdin.read()
"""

# The first System V segment of a new IPC namespace: its id, and so its inode, is the same in each.
SYSV_HOLDER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
assert libc.unshare(0x08000000) == 0
segment = libc.shmget(0, 1 << 20, 0o1600)
assert segment >= 0
ctypes.memset(libc.shmat(segment, None, 0), 1, 1 << 20)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def hold():
    """Starts a process and makes it a container."""
    started = []

    def start(name, program, *arguments):
        command = [sys.executable, "-SE", "-c", program, *map(str, arguments)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return LocalContainer(name, f"pod-{name}", frozenset(), pids=frozenset({process.pid}))

    yield start
    for process in started:
        process.stdin.close()
        end(process)


@pytest.fixture
def segment(tmp_path):
    path = tmp_path / "segment"
    path.write_bytes(b"")
    os.truncate(path, 8 * MIB)
    return path


def test_two_that_share_a_writable_mapping_share_the_smaller_resident_size(hold, segment):
    first, other = hold("one", HOLDER, segment, 4 * MIB, "write"), hold("other", HOLDER, segment, 2 * MIB, "write")
    (edge,) = scan([other, first])
    assert (edge.kind, edge.source, edge.target) == ("shm", Local("pod-one", "one"), Local("pod-other", "other"))
    # Mapping around a fault brings in neighbours of what was touched.
    assert 2 * MIB <= edge.bytes <= 4 * MIB


@pytest.mark.parametrize("how", ["private", "read"])
def test_a_mapping_that_one_of_them_cannot_write_for_the_other_is_not_shared(hold, segment, how):
    assert scan([hold("one", HOLDER, segment, 4 * MIB, "write"), hold("other", HOLDER, segment, 4 * MIB, how)]) == ()


def test_a_page_of_locks_is_not_data(hold, segment):
    os.truncate(segment, 4096)
    assert scan([hold("one", HOLDER, segment, 4096, "write"), hold("other", HOLDER, segment, 4096, "write")]) == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="makes IPC namespaces")
def test_segments_of_two_ipc_namespaces_are_two_segments(hold):
    assert scan([hold("one", SYSV_HOLDER), hold("other", SYSV_HOLDER)]) == ()


def written(proc: Path, pid: int, name: str, *smaps: str) -> LocalContainer:
    """A container of one process that has this mapped, shared and writable."""
    (proc / str(pid) / "ns").mkdir(parents=True)
    (proc / str(pid) / "ns" / "ipc").touch()
    line = f"7f00-7f10 rw-s 00000000 00:0e 1057 {name}\n"
    (proc / str(pid) / "maps").write_text(line)
    (proc / str(pid) / "smaps").write_text(line + "".join(f"{row}\n" for row in smaps))
    return LocalContainer(f"c{pid}", f"pod-{pid}", frozenset(), pids=frozenset({pid}))


def test_huge_pages_are_shared_memory_too(tmp_path: Path):
    pages = ("Rss:                   0 kB", "Shared_Hugetlb:     2048 kB", "Private_Hugetlb:       0 kB")
    (edge,) = scan([written(tmp_path, pid, "/dev/hugepages/ring", *pages) for pid in (1, 2)], tmp_path)
    assert edge.bytes == 2 * MIB


def test_the_kernels_own_rings_which_all_have_one_inode_are_not_shared(tmp_path: Path):
    rings = [written(tmp_path, pid, "anon_inode:[io_uring]", "Rss:                 256 kB") for pid in (1, 2)]
    assert scan(rings, tmp_path) == ()


def test_a_file_may_have_a_carriage_return_in_its_name(hold, tmp_path: Path):
    """Any pod may map one: it must not cost the node its traffic."""
    segment = tmp_path / "a\rRss: none"
    segment.write_bytes(bytes(2 * MIB))
    (edge,) = scan([hold(name, HOLDER, segment, MIB, "write") for name in ("one", "other")])
    assert edge.bytes >= MIB


def test_a_container_with_many_processes_hides_no_others_pair(tmp_path: Path):
    many = LocalContainer("many", "pod", frozenset(), pids=frozenset(range(100, 5_000)))
    pair = [written(tmp_path, pid, "/dev/shm/ring", "Rss:                2048 kB") for pid in (1, 2)]
    (edge,) = scan([many, *pair], tmp_path)
    assert edge.bytes == 2 * MIB


def test_a_container_that_maps_a_segment_again_and_again_and_forks_costs_its_own_pairs_alone(tmp_path: Path):
    """As many as the kernel lets it, in each process."""
    pair = [written(tmp_path, pid, "/dev/shm/ring", "Rss:                2048 kB") for pid in (1, 2)]
    maps = tmp_path / "maps"
    maps.write_text("".join(f"7f00-7f10 rw-s 00000000 00:0e {inode} /memfd:x (deleted)\n" for inode in range(9, 8009)))
    for pid in range(100, 164):
        (tmp_path / str(pid) / "ns").mkdir(parents=True)
        (tmp_path / str(pid) / "ns" / "ipc").touch()
        (tmp_path / str(pid) / "maps").hardlink_to(maps)
    greedy = LocalContainer("greedy", "pod", frozenset(), pids=frozenset(range(100, 164)))
    tracemalloc.start()
    try:
        (edge,) = scan([greedy, *pair], tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert edge.bytes == 2 * MIB
    assert peak < 16 * MIB


def test_a_process_that_has_ended_shares_nothing():
    gone = LocalContainer("gone", "pod", frozenset(), pids=frozenset({(1 << 22) + 1}))
    assert scan([gone, gone]) == ()


def test_edges_of_shared_memory_are_states_without_messages(hold, segment):
    first, other = hold("one", HOLDER, segment, MIB, "write"), hold("other", HOLDER, segment, MIB, "write")
    (edge,) = scan([first, other])
    assert edge == Edge("shm", Local("pod-one", "one"), Local("pod-other", "other"), edge.bytes, 0)
