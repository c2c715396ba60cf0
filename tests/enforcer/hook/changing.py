"""A machine whose CPUs and memory go and come while an agent runs on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine
from tests.enforcer.hook.world import World


def without(
    machine: Machine,
    cpus: CpuSet = CpuSet(),
    mems: NumaSet = NumaSet(),
    gone: NumaSet = NumaSet(),
    half: NumaSet = NumaSet(),
) -> Machine:
    """The machine when these CPUs are offline, these NUMA nodes have no memory, those are not there at all, and the last
    have half of their memory.
    """
    kept = [node for node in machine.numa_nodes if node.id not in gone]
    online = CpuSet.of(cpu for node in kept for cpu in node.all_cpus) - cpus
    return Machine(
        tuple(
            replace(
                node,
                cpus=node.cpus & online,
                isolated=node.isolated & online,
                memory=0 if node.id in mems else node.memory // 2 if node.id in half else node.memory,
                distances={other.id: node.distances[other.id] for other in kept},
            )
            for node in kept
        ),
        cores=_left(machine.cores, online),
        caches=_left(machine.caches, online),
        sockets=_left(machine.sockets, online),
    )


def _left(groups: Iterable[CpuSet], online: CpuSet) -> tuple[CpuSet, ...]:
    return tuple(group & online for group in groups if group & online)


def becomes(world: World, machine: Machine) -> None:
    """The machine is another now, and the runtime carries out what follows."""
    world.machine = machine
    world.apply(world.agent.rehoming.onto(world.facts()))
