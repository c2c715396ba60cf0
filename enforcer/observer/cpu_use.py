"""What members' workloads use of the CPU, learned from their cgroups, for the hook and the extender.

A thread of its own: it reads one small file for each container of a pod that has opted in, once a window, some 30
microseconds each. What a member is kept from using, as its NUMA node is full, is not seen: then `cpu.pressure` and the
NUMA node's own load say it.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from math import inf
from types import MappingProxyType

from enforcer.machine.cgroup import CgroupTree
from enforcer.machine.errors import MachineError
from numakin.placement.traffic.cpu_use import UseTally
from numakin.process.log import Log
from numakin.process.threads import STALE_AFTER_S, Threaded, Threads
from numakin.wire import local_pb2 as local

log = Log("observer.cpu_use")

NOTABLE = 0.2
"""What is known is sent when a workload's use differs by so much from what was sent last."""

AGAIN_S = 600.0
"""Seconds after which all is sent in any case, however long a window is: for an extender that has begun anew, and as
one forgets what was not sent for half an hour.
"""

Uses = Mapping[str, int]
"""Millicores of one pod, by workload."""


class CpuUse(Threaded):
    """tell: called on its thread with all that is known, where that is news. window_s: seconds between two samples."""

    def __init__(
        self,
        tree: CgroupTree,
        tell: Callable[[Uses], None],
        window_s: float,
        threads: Threads,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tree, self._tell, self._window_s, self._clock = tree, tell, window_s, clock
        self._lock = threading.Lock()
        self._containers: Mapping[str, local.LocalContainer] = MappingProxyType({})
        self._tally = UseTally()
        self._before: dict[str, tuple[float, float]] = {}
        self._told: Uses = {}
        self._told_at = -inf
        self._thread = threads.thread("CPU use", self._round, stale_after_s=max(STALE_AFTER_S, 4 * window_s))

    def received(self, message: local.Containers) -> None:
        """Called by the thread that reads the hook."""
        with self._lock:
            gone = set(self._containers if message.whole else message.gone)
            kept = {key: container for key, container in self._containers.items() if key not in gone}
            now = {container.id: container for container in message.containers}
            self._containers = MappingProxyType({**kept, **now})

    def hook_came(self) -> None:
        """Another one, which knows nothing yet."""
        self._told_at = -inf

    @property
    def known(self) -> Uses:
        """What was told last."""
        return self._told

    def _round(self) -> None:
        if self._thread.stopping.wait(self._window_s):
            return
        self.sample()

    def sample(self) -> None:
        """A window's end."""
        now = self._clock()
        for pod, milli in self._used(now).items():
            self._tally.add(pod[1], milli, now)
        known = self._tally.known()
        if known and (now - self._told_at >= AGAIN_S or _notable(self._told, known)):
            self._told, self._told_at = known, now
            self._tell(known)

    def _used(self, now: float) -> dict[tuple[str, str], float]:
        """Millicores by (uid, workload) of the pods that have opted in and of which every container was there a window
        ago.
        """
        containers = self._containers
        members = {each.pod for each in containers.values() if each.opted_in and each.workload}
        read: dict[str, tuple[float, float]] = {}
        used: dict[tuple[str, str], float] = defaultdict(float)
        unknown = set()
        for key, container in containers.items():
            if container.pod not in members:
                continue
            pod, seconds, before = (container.pod, container.workload), self._seconds(container), self._before.get(key)
            if seconds is not None:
                read[key] = seconds, now
            if seconds is None or before is None or now <= before[1]:
                unknown.add(pod)
            else:
                used[pod] += 1000 * max(0.0, seconds - before[0]) / (now - before[1])
        self._before = read
        return {pod: milli for pod, milli in used.items() if pod not in unknown}

    def _seconds(self, container: local.LocalContainer) -> float | None:
        try:
            return self._tree.cpu_seconds(container.cgroups_path)
        except MachineError as error:  # it has gone meanwhile, or the runtime's path leads nowhere
            log.debug("a container's CPU time can't be read", container=container.id, error=error)
            return None


def _notable(told: Uses, known: Uses) -> bool:
    return any(
        abs(milli - told.get(workload, 0)) > NOTABLE * told.get(workload, 0) for workload, milli in known.items()
    )
