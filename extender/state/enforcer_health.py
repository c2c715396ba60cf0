"""Each node's enforcer's health, as it reports it: for people; nothing is decided by it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from threading import Lock


@dataclass(frozen=True, slots=True)
class ThreadState:
    """One thread of the observer. since_success_s: when it was reported. stale: it gets nowhere."""

    name: str
    since_success_s: float
    stale: bool
    failures: int
    error: str


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A PCI function. kind: by its PCI class. names: of its interfaces. numa_node: None where firmware does not say."""

    address: str
    kind: str
    driver: str
    names: tuple[str, ...]
    numa_node: int | None


@dataclass(frozen=True, slots=True)
class EnforcerHealth:
    """collector: by which traffic is seen. runtime: the connection to the container runtime, in words.

    devices_left_out: beyond the bound of a message. cpuset_owners: who else may set cpusets there, in words; empty:
    none is known.
    """

    collector: str
    runtime: str
    threads: tuple[ThreadState, ...] = ()
    devices: tuple[DeviceRow, ...] = ()
    devices_left_out: int = 0
    cpuset_owners: str = ""


class EnforcerHealths:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_node: dict[str, EnforcerHealth] = {}

    def reported(self, node: str, health: EnforcerHealth) -> None:
        with self._lock:
            self._by_node[node] = health

    def of(self, node: str) -> EnforcerHealth | None:
        return self._by_node.get(node)

    def keep(self, nodes: Collection[str]) -> None:
        """Forgets all other nodes."""
        with self._lock:
            self._by_node = {node: health for node, health in self._by_node.items() if node in nodes}
