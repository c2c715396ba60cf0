"""Where a container's memory comes from: `cpuset.mems`, and the kernel memory policy where the runtime can set one.

The kernel enforces a binding by killing, so `auto` makes one only where the whole limit is
covered, by what other bound pods may use too and by what is really free; a pod without a limit is never bound by
`auto`. Memory-only NUMA nodes (HBM, CXL) are a lower tier: they join the home's mems when the home alone does not cover
the demand, and the kernel fills them last, since it takes the nearest first. Where they hold movable pages alone (GPUs'
memory, most CXL) they join only when the operator has named them (`--memory-tiers`), and never by themselves: the
kernel calls a cpuset of such NUMA nodes unsupported, since its own allocations fail there.
"""

from __future__ import annotations

from dataclasses import dataclass

from numakin.placement.decide.decision import MemoryPolicy, Reason
from numakin.placement.decide.request import Request
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import UNKNOWN_LIMIT
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Memory
from numakin.placement.state.load_index import EMPTY, Load
from numakin.placement.state.occupancy import Occupancy

RESERVE = 20
"""A 20th of a NUMA node's memory is never committed: above the kernel's watermarks, below 1 % on large machines."""

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
    """Bytes that may be committed at all: without hugepages, with the reserve kept."""
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
    for numa_node in numa_nodes:
        mask |= machine.lower_tier[numa_node].mask
    return NumaSet(mask)


def place(
    machine: Machine, occupancy: Occupancy, request: Request, load: Load, numa_nodes: NumaSet, *, spills: bool = False
) -> Placed:
    """Memory for a home. load: what all other reservations put on the machine. spills: the home alone has too little
    memory, or too few hugepages.
    """
    home = machine.nearest_mems(numa_nodes)
    if not home:
        return Placed(NumaSet(), None, Reason("memory", "", "no NUMA node reports any: left open"))
    prefer = MemoryPolicy(PREFERRED_MANY, home)
    if request.opt_in.memory is Memory.PREFER:
        return Placed(NumaSet(), prefer, Reason("memory prefer", "", "left open, first touch keeps it local"))
    held = occupancy.allocations.get(request.container)
    if held is not None and held.mems and home <= held.mems and held.mems <= machine.mems:
        return Placed(held.mems, None, Reason("memory", "", f"stays bound to NUMA node {held.mems}"))
    if any(occupancy.live.stalled.get(mem, 0.0) >= STALLED for mem in home):
        share = max(occupancy.live.stalled.get(mem, 0.0) for mem in home)
        return Placed(NumaSet(), None, Reason("memory pressure", f"{share:.0%}", "too high to bind: left open"))
    needed = _needed(request)
    wider = home | tiers(machine, numa_nodes)
    for mems in (wider,) if spills else dict.fromkeys((home, wider)):
        free = _free(machine, occupancy, load, mems)
        if needed is not None and free >= max(needed, 1):
            return Placed(mems, None, Reason("memory free", _mib(free), f"bound to NUMA node {mems}"))
    free = _free(machine, occupancy, load, home)
    if needed is None:
        known = request.reservation_demand.estimated.isdisjoint(UNKNOWN_LIMIT)
        limit = "none" if known else "not known of every container"
        return Placed(NumaSet(), prefer, Reason("memory limit", "", f"{limit}, so a binding could kill: left open"))
    return Placed(
        NumaSet(), prefer, Reason("memory free", _mib(free), f"less than the {_mib(needed)} it may use: left open")
    )


def covered(machine: Machine, occupancy: Occupancy, request: Request, mems: NumaSet) -> bool:
    """Whether a running container's mems still cover what it may use, beside what other bound pods may use. Memory that
    is in use now is mostly its own, so what is free now says nothing here.
    """
    needed, load = _needed(request), occupancy.load(machine, but=request.reservation_key)
    room = sum(capacity(machine, mem) - load.rows.get(mem, EMPTY).committed for mem in mems)
    return needed is not None and room >= needed


def full(machine: Machine, occupancy: Occupancy) -> NumaSet:
    """The NUMA nodes of which nothing is left beside the reserve: soon the kernel kills what is bound to them, or
    another of those who have memory there.
    """
    return NumaSet.of(mem for mem in machine.all_mems if really_free(machine, occupancy, mem) <= 0)


def holds(machine: Machine, request: Request, mems: NumaSet) -> bool:
    """Whether these have, beside nothing else, all that a container bound to them may use; empty: it is not bound."""
    return not mems or sum(capacity(machine, mem) for mem in mems) >= (_needed(request) or 0)


def _needed(request: Request) -> int | None:
    """Bytes that a binding must cover: the limit, with `bind` the request alone; None: no bound is
    known.
    """
    demand = request.reservation_demand
    if request.opt_in.memory is Memory.BIND:
        return demand.memory
    return None if demand.memory_limit is None else max(demand.memory, demand.memory_limit)


def _free(machine: Machine, occupancy: Occupancy, load: Load, mems: NumaSet) -> int:
    return sum(
        min(capacity(machine, mem) - load.rows.get(mem, EMPTY).committed, really_free(machine, occupancy, mem))
        for mem in mems
    )


def _mib(amount: int) -> str:
    return f"{max(0, amount) >> 20} MiB"
