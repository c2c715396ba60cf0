"""Memory that two containers can both write: shared mappings of one file, memfd or SysV segment, found in procfs.

It shows that two share, not how busily; wake-ups show the rest. Reading the maps of 89 processes took 4.4 ms, so once a
minute is cheap.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from enforcer.observe.attribution.containers import LocalContainer
from enforcer.observe.attribution.edges import Edge, local

PROCESSES_MAX = 4096
"""Processes looked at in one scan; the rest of a larger node's are left out."""

RESIDENT_MIN = 64 << 10
"""Shared mappings with less resident memory carry locks and counters, not data."""

SIZES = ("Rss:", "Shared_Hugetlb:", "Private_Hugetlb:")
"""Lines of smaps that add up to what is resident: hugetlbfs pages are not in the first."""

LINE_END = "\n"
"""The one character that the kernel escapes in a file's name: a carriage return is a part of it."""

NOT_MEMORY = "anon_inode:"
"""Before the names of what the kernel maps for rings and counters (io_uring, perf): all have one inode between them."""


@dataclass(frozen=True, slots=True)
class Segment:
    """What is mapped. `namespace` is the IPC namespace of a SysV segment, whose inode is only its id in there."""

    device: str
    inode: str
    namespace: int = 0


def scan(containers: Iterable[LocalContainer], proc: Path = Path("/proc")) -> tuple[Edge, ...]:
    """An edge of kind shm for each pair that shares memory: the smaller of the two resident sizes, all segments."""
    processes = [(pid, container) for container in containers for pid in container.pids][:PROCESSES_MAX]
    holders: dict[Segment, dict[LocalContainer, set[int]]] = defaultdict(lambda: defaultdict(set))
    for pid, container in processes:
        for segment in mapped(proc / str(pid)):
            holders[segment][container].add(pid)
    shared = {segment: by_container for segment, by_container in holders.items() if len(by_container) > 1}
    # Resident sizes cost a walk over page tables, so they are asked only of processes that do share.
    sharing = {pid for by_container in shared.values() for pids in by_container.values() for pid in pids}
    sizes = {pid: resident(proc / str(pid)) for pid in sharing}
    totals: dict[tuple[LocalContainer, LocalContainer], int] = defaultdict(int)
    for segment, by_container in shared.items():
        largest = {
            container: max(sizes[pid].get(segment, 0) for pid in pids) for container, pids in by_container.items()
        }
        for pair in combinations(sorted(largest, key=lambda container: container.container_id), 2):
            totals[pair] += min(largest[pair[0]], largest[pair[1]])
    return tuple(
        Edge("shm", local(container), local(other), size, 0)
        for (container, other), size in totals.items()
        if size >= RESIDENT_MIN
    )


def mapped(process: Path) -> set[Segment]:
    """Segments that a process has mapped shared and writable; none if it has ended."""
    segments: set[Segment] = set()
    with suppress(OSError):
        namespace = (process / "ns" / "ipc").stat().st_ino
        with (process / "maps").open(errors="replace", newline=LINE_END) as lines:
            segments.update(segment for line in lines if (segment := _segment(line, namespace)))
    return segments


def resident(process: Path) -> dict[Segment, int]:
    """Resident bytes of each segment that a process has mapped."""
    sizes: dict[Segment, int] = defaultdict(int)
    with suppress(OSError):
        namespace = (process / "ns" / "ipc").stat().st_ino
        with (process / "smaps").open(errors="replace", newline=LINE_END) as lines:
            for segment, size in _resident(lines, namespace):
                sizes[segment] += size
    return sizes


def _resident(lines: Iterable[str], namespace: int) -> Iterator[tuple[Segment, int]]:
    segment: Segment | None = None
    for line in lines:
        if line.startswith(SIZES):
            if segment:
                yield segment, int(line.split()[1]) << 10
        elif "-" in line.split(" ", 1)[0]:
            segment = _segment(line, namespace)


def _segment(line: str, namespace: int) -> Segment | None:
    """From "7f00-7f10 rw-s 00000000 00:01 1024 /memfd:x": the segment, if it is shared, writable and of a file."""
    _, permissions, _, device, inode, *name = line.split(None, 5)
    path = name[0] if name else ""
    if permissions[1] != "w" or permissions[3] != "s" or inode == "0" or path.startswith(NOT_MEMORY):
        return None
    return Segment(device, inode, namespace if path.startswith("/SYSV") else 0)
