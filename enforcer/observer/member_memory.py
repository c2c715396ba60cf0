"""On which NUMA nodes the members' memory lies, as their cgroups say at the moment of the request.

The kernel does not move all that a container has when its CPUs are moved: with `move.numakin.io: cpus`, on cgroup v1
and for pages that are shared, what was touched before stays. The observer reads it and not the hook, as no container is
to wait for it, and nothing is decided by it but how much memory moves may leave at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from enforcer.machine.cgroup import CgroupTree
from enforcer.machine.errors import MachineError
from numakin.placement.model.topology import Machine
from numakin.placement.state.memory_places import MemoryPlaces, home_of
from numakin.placement.state.occupancy import Allocation, Occupancy
from numakin.wire import local_pb2 as local


class MemberMemory:
    """One thread hands in containers and the machine, any other asks. Only opted-in pods' containers are looked at."""

    def __init__(self, tree: CgroupTree, machine: Machine) -> None:
        self._tree, self._machine = tree, machine
        self._paths: Mapping[str, str] = MappingProxyType({})

    def on(self, machine: Machine) -> None:
        self._machine = machine

    def received(self, message: local.Containers) -> None:
        gone = set(self._paths if message.whole else message.gone)
        kept = {key: path for key, path in self._paths.items() if key not in gone}
        members = {container.id: container.cgroups_path for container in message.containers if container.opted_in}
        self._paths = MappingProxyType({**kept, **members})

    def of(self, occupancy: Occupancy, reservation: str) -> Mapping[int, int]:
        """Bytes on each NUMA node of the containers of a reservation. One that can't be read counts as nothing."""
        whole: dict[int, int] = {}
        for container in occupancy.directory.by_reservation.get(reservation, ()):
            for node, amount in self._read(container).items():
                whole[node] = whole.get(node, 0) + amount
        return whole

    def places(self, occupancy: Occupancy, members: Iterable[Allocation]) -> MemoryPlaces | None:
        """Of these members together; None where there are some and none of them can be read."""
        rows = [(self._read(member.container), occupancy.reservations[member.reservation]) for member in members]
        if rows and not any(by_node for by_node, _ in rows):
            return None
        places = (MemoryPlaces.of(by_node, home_of(self._machine, at.numa_nodes)) for by_node, at in rows)
        return sum(places, MemoryPlaces())

    def _read(self, container: str) -> Mapping[int, int]:
        path = self._paths.get(container)
        try:
            return (path and self._tree.memory_by_numa_node(path)) or {}
        except MachineError:  # it has gone meanwhile, or the runtime's path leads nowhere
            return {}
