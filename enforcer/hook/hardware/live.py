"""What the kernel says now of the node's NUMA nodes, and which changes of it are worth taking over.

The hook reads it by itself, between events: a veto must not wait for the observer, which may be away, and what is
decided by must be what was read here. Only free memory is looked at for a decision too, at most once a second.

The agent takes over notable changes alone (`notable`), decides by what it took, and reports just that: so the extender
predicts by the same figures, and a quiet node's figures make no traffic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from enforcer.machine import load
from enforcer.machine.errors import MachineError
from enforcer.machine.formats import CpuTime
from enforcer.machine.memory import free_hugepages, free_memory
from numakin.placement.decide.memory import STALLED
from numakin.placement.model.live_usage import Live
from numakin.placement.model.topology import Machine
from numakin.process.log import Log

logger = Log("hook.live")

MEMORY_AGE_S = 1.0
"""Free memory is read again for a decision when the last reading is older."""

NOTABLE_MEMORY = 64
"""Free memory is taken over when it changed by more than a 64th of the NUMA node's: well within the 20th that is never
nominated (numakin.placement.decide.memory.RESERVE).
"""

NOTABLE_CPU = 16
"""Used CPU, when it changed by more than a 16th of the NUMA node's CPUs: it only breaks ties."""

READINGS = 12
"""Used CPU is a mean that leans on about this many readings, a minute's: a placement lasts for hours, and no second's
burst may turn it.
"""

Figures = TypeVar("Figures")


class LiveReader:
    """Reads sysfs and procfs. What can't be read is not known, and is complained of once until it can be again."""

    def __init__(self, machine: Machine, sysfs: Path, procfs: Path) -> None:
        self._machine, self._sysfs, self._procfs = machine, sysfs, procfs
        self._read_at = float("-inf")
        self._free: Mapping[int, int] = {}
        self._times: Mapping[int, CpuTime] = {}
        self._used: dict[int, float] = {}
        self._busy: Mapping[int, float] = {}
        self._failing: set[str] = set()

    def free_memory(self) -> Mapping[int, int]:
        """The same object as before while the last reading is young."""
        now = time.monotonic()
        if now - self._read_at > MEMORY_AGE_S:
            self._free = self._tried("free memory", lambda: free_memory(self._sysfs, self._procfs), {})
            self._read_at = now
        return self._free

    def load(self) -> Live:
        """Everything else. Used CPU is known from the second call on, and is that of the time between calls."""
        return Live(
            free_hugepages=self._tried("free hugepages", self._hugepages, {}),
            used_cpu=self._tried("used CPU", self._used_cpu, {}),
            stalled=self._tried("memory pressure", self._stalled, {}),
        )

    @property
    def busy_cpus(self) -> Mapping[int, float]:
        """By CPU, the share of the time between the last two calls of `load` that it was in use."""
        return self._busy

    def _hugepages(self) -> dict[tuple[int, int], int]:
        by_node = free_hugepages(self._sysfs)
        return {(node, size): free for node, sizes in by_node.items() for size, free in sizes.items()}

    def _used_cpu(self) -> dict[int, int]:
        before, self._times, self._busy = self._times, load.cpu_times(self._procfs), {}
        if not before:
            return {}
        self._busy = load.shares(before, self._times)
        for node, used in load.used_cpus(self._machine, self._busy).items():
            mean = self._used.get(node, used)
            self._used[node] = mean + (used - mean) / READINGS
        return {node: round(1000 * used) for node, used in self._used.items()}

    def _stalled(self) -> dict[int, float]:
        return load.stalled(self._machine, load.memory_stall(self._procfs), self.free_memory())

    def _tried(self, source: str, read: Callable[[], Figures], unknown: Figures) -> Figures:
        try:
            figures = read()
        except (OSError, MachineError) as error:
            if source not in self._failing:
                logger.warning(f"{source}: not known", error=error)
            self._failing.add(source)
            return unknown
        self._failing.discard(source)
        return figures


def notable(machine: Machine, known: Live, now: Live) -> Live:
    """The changes worth taking over.

    Pressure is one when it crosses the threshold of the veto (to leave it again it must fall to half of that) or moves
    by as much. Hugepages always are: pods take them as they start, and keep them. Of a NUMA node that came after the
    machine was read nothing is.
    """
    nodes = {node.id: node for node in machine.numa_nodes}
    return Live(
        _beyond(
            {key: node.memory // NOTABLE_MEMORY for key, node in nodes.items()}, known.free_memory, now.free_memory
        ),
        {key: free for key, free in now.since(known).free_hugepages.items() if key[0] in nodes},
        _beyond(
            {key: 1000 * len(node.cpus) // NOTABLE_CPU for key, node in nodes.items()}, known.used_cpu, now.used_cpu
        ),
        {key: share for key, share in now.stalled.items() if key in nodes and _turned(known.stalled.get(key), share)},
    )


def _beyond(margins: Mapping[int, int], known: Mapping[int, int], now: Mapping[int, int]) -> dict[int, int]:
    """The figures that are new or off by more than their NUMA node's margin; those without one are left out."""
    return {
        key: figure
        for key, figure in now.items()
        if key in margins and (key not in known or abs(figure - known[key]) > margins[key])
    }


def _turned(before: float | None, share: float) -> bool:
    if before is None or abs(share - before) > STALLED:
        return True
    return share >= STALLED > before or before >= STALLED > 2 * share
