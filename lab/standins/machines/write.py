"""Lays out a described machine's sysfs and procfs as folders of files: those that the enforcer and lscpu read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from lab.standins.machines.description import Description
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine, NumaNode

KIB = 1024
PAGE = 4096

# The topology files of a core and of a socket. Kernels since 5.3 write the new names beside the old ones.
OLD_NAMES = ("thread_siblings", "core_siblings")
NEW_NAMES = ("core_cpus", "package_cpus")


def write_sysfs(description: Description, folder: Path) -> None:
    """Makes `folder` a sysfs root with this machine's CPUs and NUMA nodes."""
    _write(Path(folder), sysfs_files(description))


def switch_cpus(folder: Path, online: CpuSet) -> None:
    """As the kernel changes a written sysfs root when CPUs go offline or come back: those that are not named are off.
    The CPUs' topology files stay: siblings that are offline make no difference to a reader that knows who is online.
    """
    cpu = folder / "devices/system/cpu"
    present = CpuSet.parse((cpu / "present").read_text())
    for node in (folder / "devices/system/node").glob("node[0-9]*"):
        former = node / "cpulist.present"
        if not former.exists():
            former.write_text((node / "cpulist").read_text())
        _replace(node / "cpulist", CpuSet.parse(former.read_text()) & online)
    _replace(cpu / "offline", present - online)
    _replace(cpu / "online", online)


def write_procfs(description: Description, folder: Path) -> None:
    """Makes `folder` a procfs root with this machine's memory and CPU times, just after boot."""
    _write(Path(folder), procfs_files(description))


def sysfs_files(description: Description) -> Iterator[tuple[str, str]]:
    """Each file below the sysfs root, and its content."""
    machine, present = description.machine, description.present
    cpu = "devices/system/cpu"
    for name, cpus in (
        ("online", machine.all_cpus),
        ("offline", description.offline),
        ("present", present),
        ("possible", present),
        ("isolated", machine.all_cpus - machine.cpus),
    ):
        yield f"{cpu}/{name}", f"{cpus}"
    # A kernel without the boot option, as those built for many CPUs print it.
    yield f"{cpu}/nohz_full", "  (null)"
    yield f"{cpu}/kernel_max", f"{max(present)}"
    for number in present:
        # Linux writes no `online` for CPU 0 where it cannot be taken offline.
        if number:
            yield f"{cpu}/cpu{number}/online", f"{int(number in machine.all_cpus)}"
    yield from _topology(description)
    for cluster in machine.clusters:
        for number in cluster:
            yield from _both_forms(f"{cpu}/cpu{number}/topology/cluster_cpus", cluster)
    yield from _caches(description)
    if description.numa:
        yield from _numa_nodes(machine)


def _topology(description: Description) -> Iterator[tuple[str, str]]:
    machine = description.machine
    names = (OLD_NAMES,) if description.old_kernel else (OLD_NAMES, NEW_NAMES)
    for number, socket in enumerate(machine.sockets):
        for core_id, core in enumerate(core for core in machine.cores if core <= socket):
            for cpu in core:
                folder = f"devices/system/cpu/cpu{cpu}/topology"
                yield f"{folder}/physical_package_id", f"{number}"
                yield f"{folder}/core_id", f"{core_id}"
                for siblings, package in names:
                    yield from _both_forms(f"{folder}/{siblings}", core)
                    yield from _both_forms(f"{folder}/{package}", socket)


def _caches(description: Description) -> Iterator[tuple[str, str]]:
    for number, cache in enumerate(description.machine.caches):
        for cpu in cache:
            folder = f"devices/system/cpu/cpu{cpu}/cache"
            for index, level, kind, shared in (
                (0, 1, "Data", description.machine.core_of(cpu)),
                (1, 1, "Instruction", description.machine.core_of(cpu)),
                (2, description.cache_level, "Unified", cache),
            ):
                yield f"{folder}/index{index}/level", f"{level}"
                yield f"{folder}/index{index}/type", kind
                yield f"{folder}/index{index}/id", f"{number}"
                yield f"{folder}/index{index}/shared_cpu_list", _listed(shared)
                yield f"{folder}/index{index}/shared_cpu_map", mask(shared)


def _numa_nodes(machine: Machine) -> Iterator[tuple[str, str]]:
    every = NumaSet.of(node.id for node in machine.numa_nodes)
    top = "devices/system/node"
    for name, ids in (
        ("online", every),
        ("possible", every),
        ("has_cpu", NumaSet.of(node.id for node in machine.numa_nodes if node.all_cpus)),
        ("has_memory", machine.all_mems),
        ("has_normal_memory", machine.mems),
    ):
        yield f"{top}/{name}", f"{ids}"
    for node in machine.numa_nodes:
        folder = f"{top}/node{node.id}"
        yield f"{folder}/cpulist", f"{node.all_cpus}"
        yield f"{folder}/cpumap", mask(node.all_cpus)
        yield f"{folder}/distance", " ".join(str(far) for far in node.distances.values())
        yield f"{folder}/meminfo", "\n".join(f"Node {node.id} {line}" for line in _meminfo(node))
        for size, reserved in node.hugepages.items():
            pages = f"{folder}/hugepages/hugepages-{size // KIB}kB"
            yield f"{pages}/nr_hugepages", f"{reserved // size}"
            yield f"{pages}/free_hugepages", f"{reserved // size}"


def procfs_files(description: Description) -> Iterator[tuple[str, str]]:
    """Each file below the procfs root, and its content."""
    machine = description.machine
    total = NumaNode(0, machine.all_cpus, sum(node.memory for node in machine.numa_nodes), {0: 10})
    yield "meminfo", "\n".join(_meminfo(total))
    # lscpu leaves out CPUs of no model.
    yield (
        "cpuinfo",
        "\n".join(f"processor\t: {all_cpu}\nmodel name\t: {description.title}\n" for all_cpu in machine.all_cpus),
    )
    times = [f"cpu{all_cpu} 100 0 100 1000 0 0 0 0 0 0" for all_cpu in machine.all_cpus]
    yield "stat", "\n".join([f"cpu  {100 * len(times)} 0 {100 * len(times)} {1000 * len(times)} 0 0 0 0 0 0", *times])
    yield "zoneinfo", "\n".join(line for node in machine.numa_nodes if node.memory for line in _zone(node))


def _meminfo(node: NumaNode) -> list[str]:
    """A machine just booted: a sixteenth of its memory in use, part of that reclaimable."""
    free = node.memory - node.memory // 16 - sum(node.hugepages.values())
    lines = {
        "MemTotal": node.memory,
        "MemFree": max(0, free),
        "Active(file)": node.memory // 64,
        "Inactive(file)": node.memory // 64,
        "SReclaimable": node.memory // 128,
    }
    return [f"{name}: {amount // KIB:>12} kB" for name, amount in lines.items()]


def _zone(node: NumaNode) -> list[str]:
    """One zone, its marks about what the kernel computes: low and high are 5/4 and 3/2 of min."""
    least = node.memory // 1024 // PAGE
    return [
        f"Node {node.id}, zone   Normal",
        f"  pages free     {node.memory // PAGE}",
        f"        min      {least}",
        f"        low      {least * 5 // 4}",
        f"        high     {least * 3 // 2}",
    ]


@lru_cache(maxsize=1024)
def mask(cpus: CpuSet) -> str:
    """The kernel's mask format: hexadecimal words of 32 bits, the highest first."""
    words: list[str] = []
    rest = cpus.mask
    while rest or not words:
        words.append(f"{rest & 0xFFFF_FFFF:08x}")
        rest >>= 32
    return ",".join(reversed(words))


def _both_forms(path: str, cpus: CpuSet) -> Iterator[tuple[str, str]]:
    yield path, mask(cpus)
    yield f"{path}_list", _listed(cpus)


@lru_cache(maxsize=1024)
def _listed(cpus: CpuSet) -> str:
    """Each CPU of a socket has a file of all that are in it."""
    return f"{cpus}"


def _replace(file: Path, cpus: CpuSet) -> None:
    """At once, as the kernel does it: no reader finds an empty file."""
    draft = file.with_suffix(".draft")
    draft.write_text(f"{cpus}\n")
    draft.replace(file)


def _write(folder: Path, files: Iterable[tuple[str, str]]) -> None:
    """By descriptors and names: a machine has up to 20,000 files, and to open each as text would take twice as long."""
    made = set()
    for name, content in files:
        below = name.rpartition("/")[0]
        if below not in made:
            (folder / below).mkdir(parents=True, exist_ok=True)
            made.add(below)
        file = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.write(file, f"{content}\n".encode())
        os.close(file)
