"""The NUMA node of a device that a container gets, found through sysfs by its kind and numbers.

A device node in /dev stands for a class device, which has no `numa_node` itself; some parent of it on a bus (PCI,
mostly) has. Two kinds have no such parent and are found by another way: VFIO groups through the IOMMU group's members,
and NVIDIA's GPUs (whose driver makes no class device) through the driver's own files in procfs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from enforcer.machine import formats
from enforcer.machine.sysfs import PROCFS
from enforcer.machine.tree import Tree

FOLDER_OF_KIND = {"c": "dev/char", "u": "dev/char", "b": "dev/block"}
"""By the type letter of mknod and of OCI's device list; `p` (a fifo) is no device."""

NVIDIA_MAJOR = 195
"""Linux' devices.txt: 195 char is NVIDIA's graphics devices."""

NVIDIA_CONTROL_MINORS = frozenset({254, 255})
"""/dev/nvidia-modeset and /dev/nvidiactl: of every GPU, so of none."""

_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.IGNORECASE)


def numa_node_of(sysfs_root: Path, kind: str, major: int, minor: int, proc_root: Path = PROCFS) -> int | None:
    """The NUMA node of the device; None when it has none (virtual, firmware that does not say) or is not in sysfs."""
    root = Path(sysfs_root).resolve()
    if kind not in FOLDER_OF_KIND:
        return None
    if FOLDER_OF_KIND[kind] == "dev/char" and major == NVIDIA_MAJOR:
        return _of_pci(root, _nvidia_addresses(Path(proc_root), minor))
    device = (root / FOLDER_OF_KIND[kind] / f"{major}:{minor}").resolve()
    if not device.is_dir() or root not in device.parents:
        return None
    if device.parent.name == "vfio" and device.name.isdigit():
        return _of_pci(root, _iommu_group(root, device.name))
    return numa_node_above(root, device)


def numa_node_above(root: Path, device: Path) -> int | None:
    """The first `numa_node` that names one, from the device upwards: a function may have -1 where its bridge has it."""
    for folder in (device, *device.parents):
        if folder == root:
            return None
        node = Tree(folder).parsed("numa_node", formats.number)
        if node is not None and node >= 0:
            return node
    return None


def _of_pci(root: Path, addresses: Iterable[str]) -> int | None:
    """The one NUMA node on which all these PCI functions are; None when they differ or none is known."""
    nodes = set()
    for address in addresses:
        device = (root / "bus/pci/devices" / address).resolve()
        nodes.add(numa_node_above(root, device) if device.is_dir() and root in device.parents else None)
    nodes.discard(None)
    return nodes.pop() if len(nodes) == 1 else None


def _iommu_group(root: Path, group: str) -> list[str]:
    folder = root / "kernel/iommu_groups" / group / "devices"
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []


def _nvidia_addresses(proc_root: Path, minor: int) -> list[str]:
    """The PCI address of the GPU with this minor, by the folder name of the driver's information file."""
    if minor in NVIDIA_CONTROL_MINORS:
        return []
    wanted = re.compile(rf"^Device Minor:\s*{minor}\s*$", re.MULTILINE)
    return [
        file.parent.name.lower()
        for file in sorted((proc_root / "driver/nvidia/gpus").glob("*/information"))
        if _PCI_ADDRESS.fullmatch(file.parent.name) and wanted.search(Tree(file.parent).text(file.name) or "")
    ]
