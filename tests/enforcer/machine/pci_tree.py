"""A machine's sysfs with PCI devices."""

from __future__ import annotations

from pathlib import Path

BRIDGE = "devices/pci0000:80/0000:80:01.0"


class Machine:
    """A bridge on NUMA node 1, and functions behind it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._write(f"{BRIDGE}/numa_node", "1")
        (root / "bus/pci/devices").mkdir(parents=True)

    def add(self, address: str, code: str, *interfaces: str, driver: str = "", numa_node: int = 1) -> Path:
        """interfaces: folders below the function, such as net/eth0."""
        place = f"{BRIDGE}/{address}"
        self._write(f"{place}/class", code)
        self._write(f"{place}/numa_node", str(numa_node))
        for interface in interfaces:
            (self.root / place / interface).mkdir(parents=True)
        if driver:
            (self.root / f"bus/pci/drivers/{driver}").mkdir(parents=True, exist_ok=True)
            (self.root / place / "driver").symlink_to(self.root / f"bus/pci/drivers/{driver}")
        (self.root / "bus/pci/devices" / address).symlink_to(Path("../../..") / place)
        return self.root / place

    def _write(self, path: str, content: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content + "\n")
