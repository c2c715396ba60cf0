"""Whose work the cpuset of a running container is: our own from before, another owner's, or nobody's yet. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from enforcer import pods
from placement import pools
from placement.cpuset import CpuSet, NumaSet
from placement.decide import Request
from placement.occupancy import Holding, Occupancy
from placement.topology import Machine
from proto import nri_pb2 as nri


@dataclass(frozen=True, slots=True)
class Pinned:
    """As we left it: its home and what it holds."""

    homes: NumaSet
    holding: Holding


def owner_of(
    machine: Machine,
    occupancy: Occupancy,
    request: Request,
    container: nri.Container,
    now: tuple[CpuSet, NumaSet],
) -> Pinned | pods.Claim | None:
    """None: it is still to be placed. now: what its cgroup has, or else what the runtime tells."""
    cpus, mems = now
    ours = pods.is_ours(container)
    if not cpus or not cpus <= machine.cpus or (cpus == machine.cpus and not ours):
        return None
    homes = machine.nodes_of(cpus)
    if cpus == machine.cpus and len(homes) > 1:
        return None
    if not ours and cpus != pools.shared(machine, occupancy, homes):
        return pods.Claim(str(cpus), str(mems))
    exclusive = cpus if request.wants_own else CpuSet()
    if not exclusive.isdisjoint(occupancy.exclusive):
        return None
    bound = NumaSet() if mems == machine.mems and len(homes) < len(machine.cpu_nodes) else mems
    held = Holding(container.id, container.name, request.pod, request.seat_key, cpus, bound, exclusive)
    return Pinned(homes, held)
