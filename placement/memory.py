"""Where a container's memory comes from: `cpuset.mems`, and the kernel memory policy where the runtime can set one.

A binding is a promise that the kernel enforces by killing, so `auto` makes one only where the whole limit is covered,
by what other bound pods may use too and by what is really free; a pod without a limit is never bound by `auto`.
Memory-only NUMA nodes (CXL, HBM) are a lower tier: they join the home's mems when the home alone does not cover the
demand, and the kernel fills them last, since it takes the nearest first.
"""

from __future__ import annotations

from dataclasses import dataclass

from placement.cpuset import NumaSet
from placement.decision import MemoryPolicy, Reason
from placement.occupancy import Occupancy
from placement.request import Request
from placement.tally import EMPTY, Load
from placement.topology import Machine
from placement.wishes import Memory

RESERVE = 20
"""A 20th of a NUMA node's memory is never promised: above the kernel's watermarks, below 1 % on large machines."""

STALLED = 0.10
"""Share of time waiting for memory (PSI "some", 10 s average) from which a NUMA node is under pressure. At a tenth a
service's p99 suffers for certain; systemd-oomd begins to kill at 0.6.
"""

PREFERRED_MANY = "MPOL_PREFERRED_MANY"


@dataclass(frozen=True, slots=True)
class Placed:
    """mems: empty when left open. policy: for runtimes that can set one."""

    mems: NumaSet
    policy: MemoryPolicy | None
    reason: Reason


def capacity(machine: Machine, numa_node: int) -> int:
    """Bytes that may be promised at all: without hugepages, with the reserve kept."""
    whole = machine.node(numa_node).ordinary_memory
    return whole - whole // RESERVE


def really_free(machine: Machine, occupancy: Occupancy, numa_node: int) -> int:
    """Bytes that are free now, with the reserve kept; the capacity where it is not known."""
    reserve = machine.node(numa_node).ordinary_memory // RESERVE
    free = occupancy.live.free_memory.get(numa_node)
    return capacity(machine, numa_node) if free is None else free - reserve


def tiers(machine: Machine, numa_nodes: NumaSet) -> NumaSet:
    """The memory-only NUMA nodes to which these are the nearest with CPUs."""
    mask = 0
    for one in numa_nodes:
        mask |= machine.lower_tier[one].mask
    return NumaSet(mask)


def place(machine: Machine, occupancy: Occupancy, request: Request, load: Load, numa_nodes: NumaSet) -> Placed:
    """Memory for a home. load: what all other seats put on the machine."""
    home = machine.nearest_mems(numa_nodes)
    if not home:
        return Placed(NumaSet(), None, Reason("memory", "", "no NUMA node tells of any: left open"))
    prefer = MemoryPolicy(PREFERRED_MANY, home)
    if request.opt_in.memory is Memory.PREFER:
        return Placed(NumaSet(), prefer, Reason("memory prefer", "", "left open, first touch keeps it local"))
    held = occupancy.holdings.get(request.container)
    if held is not None and held.mems and home <= held.mems and held.mems <= machine.mems:
        return Placed(held.mems, None, Reason("memory", "", f"stays bound to NUMA node {held.mems}"))
    if any(occupancy.live.stalled.get(one, 0.0) >= STALLED for one in home):
        share = max(occupancy.live.stalled.get(one, 0.0) for one in home)
        return Placed(NumaSet(), None, Reason("memory pressure", f"{share:.0%}", "too high to bind: left open"))
    needed = _needed(request)
    for mems in dict.fromkeys((home, home | tiers(machine, numa_nodes))):
        free = _free(machine, occupancy, load, mems)
        if needed is not None and free >= max(needed, 1):
            return Placed(mems, None, Reason("memory free", _mib(free), f"bound to NUMA node {mems}"))
    free = _free(machine, occupancy, load, home)
    if needed is None:
        return Placed(NumaSet(), prefer, Reason("memory limit", "", "none, so a binding could kill: left open"))
    return Placed(
        NumaSet(), prefer, Reason("memory free", _mib(free), f"less than the {_mib(needed)} it may use: left open")
    )


def _needed(request: Request) -> int | None:
    """Bytes that a binding must cover: the limit, by the pod's own wish at least the request; None: no bound is
    known.
    """
    demand = request.seat_demand
    if request.opt_in.memory is Memory.BIND:
        return demand.memory
    return None if demand.memory_limit is None else max(demand.memory, demand.memory_limit)


def _free(machine: Machine, occupancy: Occupancy, load: Load, mems: NumaSet) -> int:
    return sum(
        min(capacity(machine, one) - load.rows.get(one, EMPTY).promised, really_free(machine, occupancy, one))
        for one in mems
    )


def _mib(amount: int) -> str:
    return f"{max(0, amount) >> 20} MiB"
