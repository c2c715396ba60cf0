"""Memory that two containers can both write: shared mappings of one file, memfd or SysV segment, found in procfs.

It shows that two share, not how busily; wake-ups show the rest. Reading the maps of 89 processes took 4.4 ms, so once a
minute is cheap.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path

from enforcer.observe.attribution.containers import LocalContainer
from enforcer.observe.attribution.edges import Edge, local

PROCESSES_MAX = 2048
LINES_MAX = 1 << 17
SEGMENTS_MAX = 2048
"""What is looked at of one container in one scan: processes, lines of their maps, and shared segments in each of them.
A process may have mapped 65,530 and fork: a container loses its own pairs by that, and nobody else time or memory.
"""

SIZED_MAX = 32
"""Processes of one container that are asked for resident sizes, each for LINES_MAX lines."""

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
    holders: dict[Segment, dict[LocalContainer, set[int]]] = defaultdict(lambda: defaultdict(set))
    for container in containers:
        for pid, segment in mapped(container, proc):
            holders[segment][container].add(pid)
    shared = {segment: by_container for segment, by_container in holders.items() if len(by_container) > 1}
    # Resident sizes cost a walk over page tables, so they are asked only of processes that do share.
    sharing: dict[LocalContainer, set[int]] = defaultdict(set)
    for by_container in shared.values():
        for container, pids in by_container.items():
            sharing[container] |= pids
    sized = {pid for pids in sharing.values() for pid in sorted(pids)[:SIZED_MAX]}
    sizes = {pid: resident(proc / str(pid)) for pid in sized}
    totals: dict[tuple[LocalContainer, LocalContainer], int] = defaultdict(int)
    for segment, by_container in shared.items():
        largest = {
            container: max((sizes[pid].get(segment, 0) for pid in pids & sized), default=0)
            for container, pids in by_container.items()
        }
        for pair in combinations(sorted(largest, key=lambda container: container.container_id), 2):
            totals[pair] += min(largest[pair[0]], largest[pair[1]])
    return tuple(
        Edge("shm", local(container), local(other), size, 0)
        for (container, other), size in totals.items()
        if size >= RESIDENT_MIN
    )


def mapped(container: LocalContainer, proc: Path) -> Iterator[tuple[int, Segment]]:
    """Segments that its processes have mapped shared and writable, as far as they are looked at."""
    pids = sorted(container.pids)[:PROCESSES_MAX]
    lines = islice(((pid, segment) for pid in pids for segment in _mapped(proc / str(pid))), LINES_MAX)
    shared = ((pid, segment) for pid, segment in lines if segment is not None)
    return islice(shared, SEGMENTS_MAX)


def _mapped(process: Path) -> Iterator[Segment | None]:
    """For each of its mappings; none if it has ended."""
    with suppress(OSError):
        namespace = (process / "ns" / "ipc").stat().st_ino
        with (process / "maps").open(errors="replace", newline=LINE_END) as lines:
            for line in lines:
                yield _segment(line, namespace)


def resident(process: Path) -> dict[Segment, int]:
    """Resident bytes of each segment that a process has mapped."""
    sizes: dict[Segment, int] = defaultdict(int)
    with suppress(OSError):
        namespace = (process / "ns" / "ipc").stat().st_ino
        with (process / "smaps").open(errors="replace", newline=LINE_END) as lines:
            for segment, size in _resident(islice(lines, LINES_MAX), namespace):
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
