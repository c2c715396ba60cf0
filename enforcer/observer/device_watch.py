"""When the kubelet is asked for devices, so that the hook knows in time to which NUMA nodes a pod's are near.

The kubelet hands out devices as it admits a pod, some hundred milliseconds before the runtime is asked for a container:
so it is asked as soon as a pod is nominated to the node, until it knows the pod, and again when the pod's sandbox runs.
The hook never waits: what it has not received by CreateContainer plays no part.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from enforcer.observer.podresources import Absent, Lister, Unanswered, told_of
from numakin.process.log import Log
from numakin.process.threads import Threaded, Threads
from numakin.wire import local_pb2 as local
from numakin.wire import podresources_pb2 as pb

log = Log("observer.devices")

EVERY_S = 30.0
"""How often it is asked when no pod comes: for what was missed, and for pods that have gone."""

FIRST_WAIT_S, LONGEST_WAIT_S = 0.05, 1.0
"""Waits between questions for a pod that the kubelet does not know yet, doubled each time: far below its bound of 100
questions a second, which all its callers share.
"""

PATIENCE_S = 10.0
"""A pod that the kubelet does not know by then was refused."""

STALE_AFTER_S = 4 * EVERY_S

MOST_WANTED = 1_000
"""Pods asked for at a time; those above wait for the next regular question."""


class DeviceWatch(Threaded):
    """A thread of its own. send: called with everything when it changed or a pod came. failed: called for each
    question that got no answer though the socket is there.
    """

    def __init__(
        self, path: str, send: Callable[[local.Devices], None], failed: Callable[[], None], threads: Threads
    ) -> None:
        self._lister, self._send, self._failed = Lister(path), send, failed
        self._woken = threading.Condition()
        self._wanted: dict[tuple[str, str], float] = {}
        self._wait_s = FIRST_WAIT_S
        self._new = False
        self._last: local.Devices | None = None
        self._state = ""
        self._says_free: bool | None = None
        self._thread = threads.thread(
            "devices", self._round, wake=self._wake, last=self._lister.close, stale_after_s=STALE_AFTER_S
        )

    def appeared(self, namespace: str, name: str) -> None:
        """A pod comes to the node: asks at once, and until the kubelet knows it."""
        with self._woken:
            if len(self._wanted) < MOST_WANTED:
                self._wanted[namespace, name] = time.monotonic() + PATIENCE_S
            self._wait_s = FIRST_WAIT_S
            self._wake()

    def hook_came(self) -> None:
        """A new hook knows nothing yet, and is sent everything."""
        with self._woken:
            self._last = None
            self._wake()

    def _round(self) -> None:
        answer = self._asked() if self._awaited() else None
        if answer is not None and (devices := self._changed(*answer)) is not None:
            self._send(devices)

    def _wake(self) -> None:
        with self._woken:
            self._new = True
            self._woken.notify()

    def _awaited(self) -> bool:
        """Returns when it is time to ask again; False: no more."""
        with self._woken:
            now = time.monotonic()
            self._wanted = {pod: until for pod, until in self._wanted.items() if until > now}
            self._woken.wait_for(lambda: self._new, self._wait_s if self._wanted else EVERY_S)
            self._new = False
            self._wait_s = min(LONGEST_WAIT_S, 2 * self._wait_s)
            return not self._thread.stopping.is_set()

    def _asked(self) -> tuple[list[pb.PodResources], list[pb.ContainerDevices] | None] | None:
        """Every pod's devices, and all that there are; None when the kubelet does not answer."""
        try:
            pods, devices = self._lister.pods(), self._lister.allocatable_devices()
        except Absent:
            self._became("absent")
            return None
        except Unanswered as error:
            self._failed()
            self._became("failing", error)
            return None
        self._became("answering")
        if self._says_free is not (says := devices is not None):
            self._says_free = says
            if not says:
                log.info(
                    "the kubelet does not report which devices are free: the extender does not know where they are"
                )
        return pods, devices

    def _changed(
        self, pods: list[pb.PodResources], allocatable: list[pb.ContainerDevices] | None
    ) -> local.Devices | None:
        """None when the hook knows it all. Of a pod that has just come it does not, even where nothing has changed: it
        has forgotten the last one of that name.
        """
        devices = told_of(pods, allocatable)
        with self._woken:
            came = [name for pod in pods if (name := (pod.namespace, pod.name)) in self._wanted]
            for name in came:
                del self._wanted[name]
            before, self._last = self._last, devices
            return devices if came or devices != before else None

    def _became(self, state: str, error: Exception | None = None) -> None:
        if state == self._state:
            return
        self._state = state
        if state == "failing":
            log.warning("the kubelet does not report devices: they are known by their numbers", error=error)
        elif state == "absent":
            log.info("no podresources socket: devices are known by their numbers")
        else:
            log.info("the kubelet reports devices")
