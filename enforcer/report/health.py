"""How the enforcer is, for the extender's readers: sent when it changes, and now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from enforcer.machine.pci import Device
from numakin.process.threads import Standing
from numakin.wire import bounds
from numakin.wire import report_pb2 as pb

EVERY_S = 30.0
"""Seconds after which it is sent though nothing has changed, and the devices are read anew."""


class HealthNews:
    """Of one stream. collector: by which traffic is seen. runtime: the connection to it, in words. devices: reads them,
    without ever raising. owners: who else may set cpusets here, likewise; asked for where that matters.
    """

    def __init__(
        self,
        collector: Callable[[], str],
        runtime: Callable[[], str],
        standings: Callable[[], Sequence[Standing]],
        devices: Callable[[], Sequence[Device]] = tuple,
        *,
        owners: Callable[[], Sequence[str]] = tuple,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._collector, self._runtime, self._standings, self._clock = collector, runtime, standings, clock
        self._devices, self._owners = devices, owners
        self._read: Sequence[Device] = ()
        self._known: Sequence[str] = ()
        self._sent: object = None
        self._due = 0.0

    def begin(self) -> None:
        """A stream begins: nothing has been sent on it."""
        self._sent = None

    def due(self) -> pb.Health | None:
        """What is to be sent now."""
        standings, collector = self._standings()[: bounds.THREADS], self._collector()
        if (old := self._clock() >= self._due) or self._sent is None:
            self._read, self._known = self._devices(), self._owners()
        matters = (
            collector,
            self._read,
            self._known,
            [(standing.thread, standing.stale, standing.failures, standing.error) for standing in standings],
        )
        if matters == self._sent and not old:
            return None
        self._sent, self._due = matters, self._clock() + EVERY_S
        return pb.Health(
            collector=collector,
            runtime=self._runtime(),
            threads=map(_thread, standings),
            devices=map(_device, self._read[: bounds.DEVICES]),
            devices_left_out=len(self._read[bounds.DEVICES :]),
            cpuset_owners="; ".join(self._known)[: bounds.TEXT_LENGTH],
        )


def _thread(standing: Standing) -> pb.ThreadHealth:
    return pb.ThreadHealth(
        name=standing.thread[: bounds.TEXT_LENGTH],
        since_success_s=standing.since_success_s,
        stale=standing.stale,
        failures=standing.failures,
        error=standing.error[: bounds.TEXT_LENGTH],
    )


def _device(device: Device) -> pb.Device:
    return pb.Device(
        address=device.address,
        kind=device.kind,
        driver=device.driver,
        names=device.names[: bounds.DEVICE_NAMES],
        numa_node=device.numa_node,
    )
