"""Other owners of cpusets beside numakin: NRI plugins of the tests' own that set what those of others set, and a kubelet
with the static CPU manager. They speak over the enforcer's own session.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from enforcer.nri.handlers import Creation, Handlers, Updates
from enforcer.nri.session import Stage
from numakin.wire import nri_pb2 as nri
from tests.enforcer.nri.running import Running


@dataclass(frozen=True, slots=True)
class Peer:
    """A plugin that confines every container, opted in or not, by its sources and documentation as of 2026.

    index: that its manifests install it with. sets_mems: beside the CPUs. All of them give those that run when they come
    their cpusets by the answer to Synchronize, and update all others when a container comes or ends.
    """

    name: str
    index: str
    sets_mems: bool

    def __str__(self) -> str:
        return self.name


PEERS = (
    Peer("balloons", "90", sets_mems=True),
    Peer("topology-aware", "90", sets_mems=True),
    Peer("dra-driver-cpu", "00", sets_mems=False),
)


class Confining:
    """One of them. cpus, mems: of each container, in the kernel's list format."""

    def __init__(self, peer: Peer, cpus: str, mems: str = "0") -> None:
        self._cpu = nri.LinuxCPU(cpus=cpus, mems=mems if peer.sets_mems else "")
        self._containers: dict[str, None] = {}
        self.handlers = Handlers(
            synchronize=self._synchronize, create_container=self._create, stop_container=self._stop
        )

    def _synchronize(self, _pods: Sequence[nri.PodSandbox], containers: Sequence[nri.Container]) -> Updates:
        self._containers = dict.fromkeys(container.id for container in containers)
        return self._updates()

    def _create(self, _pod: nri.PodSandbox, container: nri.Container) -> Creation:
        adjust = nri.ContainerAdjustment()
        adjust.linux.resources.cpu.CopyFrom(self._cpu)
        updates = self._updates()
        self._containers[container.id] = None
        return adjust, updates

    def _stop(self, _pod: nri.PodSandbox, container: nri.Container) -> Updates:
        self._containers.pop(container.id, None)
        return self._updates()

    def _updates(self) -> list[nri.ContainerUpdate]:
        """Of all that it knows. None of them may fail, as theirs may not."""
        change = nri.LinuxContainerUpdate(resources=nri.LinuxResources(cpu=self._cpu))
        return [nri.ContainerUpdate(container_id=key, linux=change) for key in self._containers]


@contextmanager
def beside(nri_socket: Path, peer: Peer, cpus: str) -> Iterator[Running]:
    """It is a plugin of the runtime meanwhile."""
    with Running(nri_socket, Confining(peer, cpus).handlers, index=peer.index, name=peer.name) as plugin:
        plugin.wait_for(Stage.SYNCHRONIZED)
        yield plugin
