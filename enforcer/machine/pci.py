"""The PCI functions that people look for beside a NUMA node: network, storage, graphics, accelerators.

For people alone: nothing is decided by it. Virtual functions are left out, since a card may have hundreds, all of them
where the card is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from enforcer.machine.devices import numa_node_above
from enforcer.machine.errors import MachineError
from enforcer.machine.tree import Tree

KINDS = {
    0x01: "storage",
    0x02: "network",
    0x03: "graphics",
    0x0B: "coprocessor",
    0x10: "encryption",
    0x12: "accelerator",
}
"""By the base class of the PCI Code and ID Assignment Specification."""

INTERFACES = (
    "net/*", "infiniband/*", "nvme/*", "drm/card*", "accel/*", "virtio*/net/*", "virtio*/block/*",
)  # fmt: skip
"""Folders below a function, named as its interfaces are."""

LONGEST_NAME = 253


@dataclass(frozen=True, slots=True)
class Device:
    """address: domain:bus:device.function. driver: empty where none is bound. numa_node: None where firmware does not
    say.
    """

    address: str
    kind: str
    driver: str
    names: tuple[str, ...]
    numa_node: int | None


def devices(sysfs_root: Path) -> tuple[Device, ...]:
    """In the order of their addresses. What can't be read is left out: a device may go while it is read."""
    root = Path(sysfs_root).resolve()
    try:
        functions = sorted((root / "bus/pci/devices").iterdir())
    except OSError:
        return ()
    return tuple(_readable(root, functions))


def _readable(root: Path, functions: list[Path]) -> Iterator[Device]:
    for function in functions:
        try:
            device = _device(root, function)
        except (OSError, MachineError):
            continue
        if device is not None:
            yield device


def _device(root: Path, function: Path) -> Device | None:
    kind = KINDS.get((Tree(function).needed("class", lambda text: int(text, 16))) >> 16)
    if kind is None or (function / "physfn").exists():
        return None
    place = function.resolve()
    driver = function / "driver"
    return Device(
        _shown(function.name),
        kind,
        _shown(driver.resolve().name) if driver.exists() else "",
        tuple(_shown(entry.name) for pattern in INTERFACES for entry in sorted(place.glob(pattern))),
        numa_node_above(root, place),
    )


def _shown(name: str) -> str:
    """Names of interfaces may be any bytes, and text of the report stream is UTF-8."""
    return name.encode("utf-8", "replace").decode()[:LONGEST_NAME]
