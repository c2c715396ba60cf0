"""The cpusets that containers are to have, written into their cgroups as soon as these are there, and read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from enforcer.machine.cgroup import CgroupTree, CpusAndMems
from enforcer.machine.errors import CgroupRefused, MachineError, NotThere
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine
from numakin.wire import nri_pb2 as nri


@dataclass(slots=True)
class Pin:
    """cpus, mems: empty where the container's own are left as they are; the whole machine's are given back.

    written: as it is here, into the cgroup of a container that had started: until then the runtime writes there too.
    """

    cgroups_path: str
    cpus: CpuSet = CpuSet()
    mems: NumaSet = NumaSet()
    written: bool = False


class Pins:
    """One for each container whose cpuset is our work, or is to be."""

    def __init__(self, tree: CgroupTree, machine: Callable[[], Machine]) -> None:
        """machine: as it is now."""
        self._tree, self._machine = tree, machine
        self._pins: dict[str, Pin] = {}

    def adopt(self, containers: Mapping[str, nri.Container], given: Mapping[str, CpusAndMems]) -> None:
        """Those that were given something, by container id; all others are forgotten."""
        paths = {key: containers[key].linux.cgroups_path for key in given}
        self._pins = {
            key: Pin(paths[key], *cpuset, written=self._has(paths[key], cpuset)) for key, cpuset in given.items()
        }

    def want(self, container: nri.Container, cpu: nri.LinuxCPU) -> None:
        """An empty list leaves things as they are."""
        pin = self._pins.setdefault(container.id, Pin(container.linux.cgroups_path))
        pin.cpus = CpuSet.parse(cpu.cpus) or pin.cpus
        pin.mems = NumaSet.parse(cpu.mems) or pin.mems
        pin.written = False

    def forget(self, container: str) -> None:
        self._pins.pop(container, None)

    @property
    def due(self) -> list[str]:
        """The containers whose cgroups are still to be written."""
        return [key for key, pin in self._pins.items() if not pin.written]

    def write(self, container: nri.Container) -> Pin | None:
        """The pin once it is in the cgroup; None while there is none, before the start and after the end. MachineError
        or OSError when it can't be, and it is forgotten.
        """
        pin, runs = self._pins[container.id], container.state == nri.CONTAINER_RUNNING
        pin.cgroups_path = container.linux.cgroups_path
        if not pin.cgroups_path and not runs:
            return None
        try:
            self._put(pin)
        except (MachineError, OSError) as error:
            gone = isinstance(error, NotThere) and self._tree.folder(pin.cgroups_path) is None
            if gone or not runs:  # before its start the runtime may still be making the cgroup
                return None
            self.forget(container.id)
            raise
        pin.written = runs
        if runs and not (pin.cpus or pin.mems):
            self.forget(container.id)
        return pin

    def _put(self, pin: Pin) -> None:
        if not pin.cgroups_path:
            raise CgroupRefused("the runtime reports neither the container's cgroup nor a process of it")
        machine = self._machine()
        give_cpus, give_mems = pin.cpus == machine.all_cpus, pin.mems == machine.all_mems
        if give_cpus or give_mems:
            self._tree.open_cpuset(pin.cgroups_path, cpus=give_cpus, mems=give_mems)
        pin.cpus = CpuSet() if give_cpus else pin.cpus
        pin.mems = NumaSet() if give_mems else pin.mems
        self._tree.set_cpuset(pin.cgroups_path, pin.cpus, pin.mems)

    def overwritten(self) -> Iterator[tuple[str, CpusAndMems]]:
        """The containers whose cpuset another program has set since, and to what; no memory where that is as it was."""
        for key, pin in list(self._pins.items()):
            now = self._now(pin.cgroups_path) if pin.written else None
            if now is not None and not _as_written(now, (pin.cpus, pin.mems)):
                yield key, (now[0], now[1] if now[1] != pin.mems else NumaSet())

    def _has(self, cgroups_path: str, written: CpusAndMems) -> bool:
        now = self._now(cgroups_path)
        return now is not None and _as_written(now, written)

    def _now(self, cgroups_path: str) -> CpusAndMems | None:
        try:
            cpuset = self._tree.cpuset(cgroups_path)
        except (OSError, MachineError):
            return None
        return (cpuset.cpus, cpuset.mems) if cpuset is not None else None


def _as_written(now: CpusAndMems, written: CpusAndMems) -> bool:
    """Where nothing was written, anything will do."""
    return all(not ours or ours == theirs for ours, theirs in zip(written, now, strict=True))
