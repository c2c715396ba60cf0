"""The kernel's text formats, each a function from text to values; ValueError says what is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.topology import UNREACHABLE

KIB = 1024

_MEMINFO_LINE = re.compile(r"(?:Node\s+\d+\s+)?(\S+):\s+(\d+)(?:\s+(kB))?")
_ZONE_HEAD = re.compile(r"Node\s+(\d+),\s+zone\s+(\S+)")
# The watermark is `high   75`; `high:  378` is the size of a per-CPU list.
_HIGH_MARK = re.compile(r"\s+high\s+(\d+)")
_HUGEPAGES = re.compile(r"hugepages-(\d+)kB")


def number(text: str) -> int:
    """One decimal number, which may be negative (`-1`: none)."""
    stripped = text.strip()
    if not re.fullmatch(r"-?[0-9]{1,20}", stripped):
        raise ValueError("not a number")
    return int(stripped)


def count(text: str) -> int:
    """One number that is not negative."""
    value = number(text)
    if value < 0:
        raise ValueError("negative")
    return value


def kernel_version(text: str) -> tuple[int, int]:
    """/proc/sys/kernel/osrelease (`5.14.0-503.el9.x86_64`): the first two of its numbers."""
    match = re.match(r"(\d{1,4})\.(\d{1,4})", text)
    if match is None:
        raise ValueError("not a kernel's release")
    return int(match[1]), int(match[2])


def list_or_null(text: str) -> CpuSet:
    """A list of CPUs; kernels built for many CPUs print a mask that was never made as `(null)`."""
    return CpuSet() if text.strip() == "(null)" else CpuSet.parse(text)


def distances(text: str) -> tuple[int, ...]:
    """A row of the SLIT (`10 21`)."""
    fields = text.split()
    if not fields or any(not re.fullmatch(r"[0-9]{1,10}", field) for field in fields):
        raise ValueError("not a row of distances")
    row = tuple(int(field) for field in fields)
    if any(not 0 < far <= UNREACHABLE for far in row):
        raise ValueError(f"a distance is within 1..{UNREACHABLE}")
    return row


def meminfo(text: str) -> Mapping[str, int]:
    """/proc/meminfo, or a NUMA node's: name to bytes (to a plain number where the kernel gives no unit)."""
    amounts = {}
    for line in text.splitlines():
        match = _MEMINFO_LINE.fullmatch(line.strip())
        if match is not None:
            amounts[match[1]] = int(match[2]) * (KIB if match[3] else 1)
    if "MemTotal" not in amounts:
        raise ValueError("holds no MemTotal")
    return amounts


def hugepage_size(folder: str) -> int | None:
    """Bytes of the pages that a folder named `hugepages-2048kB` is about; None for another name."""
    match = _HUGEPAGES.fullmatch(folder)
    return int(match[1]) * KIB if match else None


def high_watermarks(text: str, page_size: int) -> Mapping[int, int]:
    """/proc/zoneinfo: bytes below each NUMA node's `high` watermarks, the sum of its zones."""
    marks: dict[int, int] = {}
    node = None
    for line in text.splitlines():
        if head := _ZONE_HEAD.match(line):
            node = int(head[1])
            marks.setdefault(node, 0)
        elif node is not None and (mark := _HIGH_MARK.fullmatch(line.rstrip())):
            marks[node] += int(mark[1]) * page_size
    return marks


@dataclass(frozen=True, slots=True)
class CpuTime:
    """Ticks since boot of one CPU. `busy` counts time stolen by a hypervisor too: it is not ours to use."""

    busy: int
    total: int


def cpu_times(text: str) -> Mapping[int, CpuTime]:
    """/proc/stat: each online CPU's time."""
    times = {}
    for line in text.splitlines():
        match = re.match(r"cpu(\d+)((?: \d+){4,})", line)
        if match is None:
            continue
        # user nice system idle iowait irq softirq steal; guest time after these is counted in user already.
        ticks = [int(field) for field in match[2].split()][:8]
        idle = sum(ticks[3:5])
        times[int(match[1])] = CpuTime(busy=sum(ticks) - idle, total=sum(ticks))
    if not times:
        raise ValueError("holds no CPU's time")
    return times


_USAGE = re.compile(r"^usage_usec (\d{1,20})$", re.MULTILINE)
_KIND = re.compile(r"[=\s]")
_ON_NODE = re.compile(r"\bN(\d{1,4})=(\d{1,20})\b")
_STALL = re.compile(r"some avg10=(\d+\.\d+) avg60=\d+\.\d+ avg300=\d+\.\d+ total=(\d{1,20})")


def cpu_usage(text: str) -> int:
    """A cgroup's `cpu.stat`: the microseconds of CPU time that its tasks have taken."""
    match = _USAGE.search(text)
    if match is None:
        raise ValueError("holds no usage_usec")
    return int(match[1])


def numa_stat(text: str, page_size: int) -> Mapping[int, int]:
    """A cgroup's `memory.numa_stat`: bytes on each NUMA node, of anonymous memory and the page cache, shared memory
    included, of all cgroups below too. Version 2 has a line for each kind, in bytes; version 1 has sums, in pages.
    """
    lines = {_KIND.split(line, maxsplit=1)[0]: line for line in text.splitlines()}
    whole = lines.get("hierarchical_total", lines.get("total"))
    rows, unit = ([whole], page_size) if whole is not None else ([lines.get("anon"), lines.get("file")], 1)
    amounts: dict[int, int] = {}
    for row in rows:
        if row is None:
            raise ValueError("holds neither a total nor anon and file")
        for node, amount in _ON_NODE.findall(row):
            amounts[int(node)] = amounts.get(int(node), 0) + int(amount) * unit
    return amounts


def stall_share(text: str) -> float:
    """A PSI file: the share of time (0 to 1), over the last 10 s, in which some task was stalled."""
    return min(1.0, float(_some(text)[1]) / 100)


def stall_total(text: str) -> int:
    """A PSI file: the microseconds in which some task was stalled."""
    return int(_some(text)[2])


def _some(text: str) -> re.Match[str]:
    first, _, _ = text.partition("\n")
    match = _STALL.fullmatch(first)
    if match is None:
        raise ValueError("not a pressure stall record")
    return match
