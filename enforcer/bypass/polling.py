"""A poll of a runtime: who is there now, as NRI's messages. What does not change is asked for once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from enforcer.bypass.changes import RuntimeSnapshot
from enforcer.bypass.cri_client import CriClient
from enforcer.bypass.messages import STATES, container_of, sandbox_of
from enforcer.machine.cgroup_path import path_of_container
from numakin.placement.optin.parsing import opted_in
from numakin.wire import cri_pb2 as cri
from numakin.wire import nri_pb2 as nri

REFRESH_S = 30.0
"""A running member's resources are asked for again after this long: no runtime reports an in-place resize."""

LIVE = (nri.CONTAINER_CREATED, nri.CONTAINER_RUNNING)


@dataclass(slots=True)
class _Known:
    """What was asked of a container, and when."""

    container: nri.Container
    asked: float


class RuntimePoller:
    """Looks over one connection, again and again. whole: whether the runtime has shown all that it listed last; it has
    not where that ended in between, or could not be read just then.
    """

    def __init__(self, runtime: CriClient, procfs: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._runtime, self._procfs, self._clock = runtime, procfs, clock
        self._sandboxes: dict[str, nri.PodSandbox] = {}
        self._containers: dict[str, _Known] = {}
        self.whole = True

    def poll(self) -> RuntimeSnapshot:
        """RuntimeAway when the runtime can't be asked."""
        # Containers first: the sandbox of each is older, so it is in the second list.
        listed = [container for container in self._runtime.containers() if STATES.get(container.state) in LIVE]
        running = {container.pod_sandbox_id for container in listed if container.state == cri.CONTAINER_RUNNING}
        ready = (each for each in self._runtime.sandboxes() if each.state == cri.SANDBOX_READY or each.id in running)
        there = {each.id for each in ready}
        self._sandboxes = {key: pod for key in there if (pod := self._sandbox(key)) is not None}
        listed = [container for container in listed if container.pod_sandbox_id in there]
        self._containers = {
            container.id: known
            for container in listed
            if container.pod_sandbox_id in self._sandboxes and (known := self._container(container)) is not None
        }
        self.whole = len(self._sandboxes) == len(there) and len(self._containers) == len(listed)
        live = {
            key: container.container for key, container in self._containers.items() if container.container.state in LIVE
        }
        return RuntimeSnapshot(self._sandboxes, live)

    def _sandbox(self, key: str) -> nri.PodSandbox | None:
        known = self._sandboxes.get(key)
        if known is not None:
            return known
        answer = self._runtime.sandbox(key)
        return sandbox_of(answer) if answer is not None else None

    def _container(self, listed: cri.Container) -> _Known | None:
        known, now = self._containers.get(listed.id), self._clock()
        if known is not None and known.container.state == STATES[listed.state] and not self._stale(known, now):
            return known
        answer = self._runtime.container(listed.id)
        if answer is None:  # ended, and then not listed the next time; or the runtime could not answer just now
            return known
        container = container_of(listed, answer)
        if container.pid and not container.linux.cgroups_path:
            container.linux.cgroups_path = self._cgroup_of(container)
        return _Known(container, now)

    def _cgroup_of(self, container: nri.Container) -> str:
        """For a runtime that does not report it; empty when the process has ended."""
        try:
            text = (self._procfs / f"{container.pid}/cgroup").read_bytes().decode(errors="replace")
        except OSError:
            return ""
        return path_of_container(text, container.id)

    def _stale(self, known: _Known, now: float) -> bool:
        member = opted_in(self._sandboxes[known.container.pod_sandbox_id].annotations)
        return member and now - known.asked > REFRESH_S
