"""Members whose memory was bound, and that may use more by now than their NUMA nodes have for them, or whose NUMA nodes
others have filled since: pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from enforcer.hook.facts import pods
from numakin.placement.decide import memory
from numakin.placement.decide.request import Request
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.state.occupancy import Occupancy
from numakin.wire import nri_pb2 as nri


def unbound(
    machine: Machine, occupancy: Occupancy, requests: Iterable[Request], *, only_full: bool = False
) -> tuple[Occupancy, list[nri.ContainerUpdate]]:
    """The occupancy with the memory of these requests' containers open where a binding could kill, and the
    updates for the runtime. All memory is named: an empty list would mean "as it is".

    only_full: no request asks for more than when it was bound: only those are opened of whose memory nothing is left.
    """
    updates, full = [], memory.full(machine, occupancy)
    for request in requests if full or not only_full else ():
        allocation = occupancy.allocations.get(request.container)
        if allocation is None or allocation.externally_managed or not allocation.mems:
            continue
        is_full = allocation.mems <= full and not machine.mems <= allocation.mems
        if is_full or not (only_full or memory.covered(machine, occupancy, request, allocation.mems)):
            occupancy = occupancy.with_allocation(replace(allocation, mems=NumaSet()))
            updates.append(pods.update(request.container, CpuSet(), machine.all_mems))
    return occupancy, updates
