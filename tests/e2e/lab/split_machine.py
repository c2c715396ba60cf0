"""A sysfs tree that shows this machine's CPUs as two NUMA nodes, or as one, so that a pin is seen on a machine with one.

NUMA node 0 has the first half of the CPUs and all of the memory, NUMA node 1 the other half and none: cpusets made
from it are ones that the real kernel takes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.lab import kernel


@dataclass(frozen=True, slots=True)
class SplitMachine:
    """sysfs: the tree's root. halves: the CPUs of NUMA nodes 0 and 1; whole: all; in the kernel's list format."""

    sysfs: Path
    halves: tuple[str, str]
    whole: str


def split(root: Path, *, numa_nodes: int = 2) -> SplitMachine:
    """Writes the tree below `root`, with one or two of them. Raises ValueError with fewer than two CPUs."""
    cpus = _ids(kernel.online_cpus())
    if len(cpus) < 2:
        raise ValueError("this machine has one CPU: it can't be split")
    middle = (len(cpus) + 1) // 2
    halves = (cpus[:middle], cpus[middle:])
    for cpu in cpus:
        _write(root, f"cpu/cpu{cpu}/topology/thread_siblings_list", str(cpu))
        _write(root, f"cpu/cpu{cpu}/topology/core_cpus_list", str(cpu))
        _write(root, f"cpu/cpu{cpu}/topology/core_id", str(cpu))
        _write(root, f"cpu/cpu{cpu}/topology/physical_package_id", "0")
    for where in ("online", "present", "possible"):
        _write(root, f"cpu/{where}", kernel.online_cpus())
    memory = re.findall(r"^(MemTotal|MemFree):\s+(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
    for node, members in enumerate(halves if numa_nodes == 2 else (cpus,)):
        _write(root, f"node/node{node}/cpulist", _text(members))
        _write(root, f"node/node{node}/distance", ("10 20", "20 10")[node] if numa_nodes == 2 else "10")
        lines = (f"Node {node} {key}: {0 if node else value} kB" for key, value in memory)
        _write(root, f"node/node{node}/meminfo", "\n".join(lines))
    all_of_them = "0-1" if numa_nodes == 2 else "0"
    for where in ("online", "possible", "has_cpu"):
        _write(root, f"node/{where}", all_of_them)
    _write(root, "node/has_memory", "0")
    return SplitMachine(root, (_text(halves[0]), _text(halves[1])), _text(cpus))


def _write(root: Path, path: str, text: str) -> None:
    file = root / "devices/system" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n")


def _ids(text: str) -> list[int]:
    ranges = (part.partition("-") for part in text.split(","))
    return [cpu for low, _, high in ranges for cpu in range(int(low), int(high or low) + 1)]


def _text(cpus: list[int]) -> str:
    """In the kernel's list format."""
    starts = [cpu for cpu in cpus if cpu - 1 not in cpus]
    ends = [cpu for cpu in cpus if cpu + 1 not in cpus]
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in zip(starts, ends, strict=True))
