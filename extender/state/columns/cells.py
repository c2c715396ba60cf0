"""What a machine has left, as numbers that don't depend on who asks: the rows that `single` weighs by the thousand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from extender.state.columns.arrays import Floats, Positions
from numakin.placement.decide.memory import STALLED, capacity, really_free
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.state import pools
from numakin.placement.state.load_index import EMPTY, NodeLoad
from numakin.placement.state.occupancy import Occupancy


@dataclass(frozen=True, slots=True)
class Cells:
    """Columns of numbers, all of one shape: of NUMA nodes that a pod could be on.

    free: millicores unrequested; unused: neither requested nor expected to be used; whole: of all its CPUs; used: in
    use; groups: that have members there. account, real: bytes free by account, and really. spare: CPUs that no
    container has alone; cores: those of them in cores of which all are; core: CPUs of a core, 0 where the machine's
    differ; shared: 1 where a container runs on a spare one; unowned: spare CPUs of the whole machine, reserved ones
    too. keeps: 1 where groups that declared their size have room kept for the rest of them, on all of the machine's;
    limited: 1 where the node itself limits each namespace's exclusive CPUs, likewise. hot: 1 where no newcomer is to go
    while another NUMA node will do.
    """

    numa_node: Floats
    free: Floats
    unused: Floats
    whole: Floats
    used: Floats
    groups: Floats
    account: Floats
    real: Floats
    reservations: Floats
    spare: Floats
    cores: Floats
    core: Floats
    shared: Floats
    unowned: Floats
    keeps: Floats
    limited: Floats
    hot: Floats

    def at(self, rows: tuple[Positions, ...]) -> Cells:
        """The same of some of them."""
        return Cells(*(getattr(self, name)[rows] for name in COLUMNS))


COLUMNS = tuple(Cells.__slots__)

LOADED = COLUMNS.index("reservations") + 1
"""The first columns, which a reservation may change."""

EMPTY_NODE: Floats = np.array([-1.0, 0, 0, 1, *[0] * (len(COLUMNS) - 4)])
"""A column's value where there is no NUMA node: nothing fits there."""


def table(machine: Machine, occupancy: Occupancy) -> Floats | None:
    """What the node has for any simple pod: `Cells` as columns x NUMA nodes, by ascending id; None when it is special.

    NUMA nodes on which no opted-in pod could be are left out.
    """
    directory = occupancy.directory
    pressed = any(share >= STALLED for share in occupancy.live.stalled.values())
    hot = any(occupancy.live.hot.values())
    special = bool(directory.special or directory.stable)
    if special or pressed or not machine.mems or (hot and any(machine.lower_tier.values())):
        return None  # where nothing is hot, a pod that needs a lower tier's memory comes last in any case
    keeps = float(bool(directory.sized and occupancy.kept(machine)))
    limited = float(occupancy.rules.max_exclusive_cpus_per_namespace is not None)
    taken = directory.exclusive | occupancy.reserved.mask
    sharers = pools.sharers(occupancy)
    unowned = (machine.cpus.mask & ~directory.exclusive).bit_count()
    size = _core_size(*map(machine.cores_by_node.__getitem__, machine.cpu_nodes))
    rows = [
        (
            *_row(machine, occupancy, cpu_node),
            *_own(machine, cpu_node, spare, size),
            float(bool(spare & sharers)),
            unowned,
            keeps,
            limited,
            float(hot and pools.is_hot(occupancy, machine.node(cpu_node).cpus.mask)),
        )
        for cpu_node in machine.cpu_nodes
        if (spare := machine.node(cpu_node).cpus.mask & ~taken)
    ]
    return np.array(rows, dtype=np.float64).T if rows else None


@dataclass(frozen=True, slots=True)
class Counted:
    """A node's table, and the occupancy that it is of."""

    table: Floats
    occupancy: Occupancy

    def carried(self, machine: Machine, occupancy: Occupancy) -> Floats | None:
        """The node's numbers now: where only reservations differ, NUMA nodes without one of them stay as they are."""
        before = self.occupancy
        if occupancy.allocations is not before.allocations or occupancy.live is not before.live:
            return table(machine, occupancy)
        if occupancy.directory.special or occupancy.directory.sized or before.directory.sized:
            return table(machine, occupancy)
        after, changed = self.table.copy(), _changed(machine, before, occupancy)
        for at, cpu_node in enumerate(map(int, self.table[0])):
            if (1 << cpu_node | machine.nearest_mems(NumaSet(1 << cpu_node)).mask) & changed:
                after[:LOADED, at] = _row(machine, occupancy, cpu_node)
        return after


def _changed(machine: Machine, before: Occupancy, after: Occupancy) -> int:
    """The mask of the NUMA nodes that carry something else, or that other groups are on: what stays is the same
    object.
    """
    mask, old, new = 0, before.load(machine).rows, after.load(machine).rows
    for numa_node in {*old, *new}:
        if old.get(numa_node) is not new.get(numa_node):
            mask |= 1 << numa_node
    were, are = before.directory.grouped, after.directory.grouped
    for homes in {*were, *are}:
        if were.get(homes) is not are.get(homes):
            mask |= homes
    return mask


def _row(machine: Machine, occupancy: Occupancy, cpu_node: int) -> tuple[float, ...]:
    """numa_node to reservations."""
    cpus = machine.node(cpu_node).cpus.mask
    rows = occupancy.load(machine).rows
    row = rows.get(cpu_node, EMPTY)
    mems = machine.nearest_mems(NumaSet(1 << cpu_node))
    return (
        cpu_node,
        free_milli(machine, occupancy, cpu_node, row),
        unused_milli(machine, occupancy, cpu_node, row),
        1000 * cpus.bit_count(),
        occupancy.live.used_cpu.get(cpu_node, 0),
        groups_on(occupancy, cpu_node),
        sum(max(0, capacity(machine, mem) - rows.get(mem, EMPTY).memory) for mem in mems),
        sum(max(0, really_free(machine, occupancy, mem)) for mem in mems),
        row.reservations,
    )


def free_milli(machine: Machine, occupancy: Occupancy, cpu_node: int, row: NodeLoad) -> int:
    """Millicores of the NUMA node that are not requested; negative where it is over-committed. row: what it carries."""
    return _offered_milli(machine, occupancy, cpu_node) - row.cpu


def unused_milli(machine: Machine, occupancy: Occupancy, cpu_node: int, row: NodeLoad) -> int:
    """Millicores of the NUMA node that are neither requested nor expected to be used."""
    return _offered_milli(machine, occupancy, cpu_node) - row.expected


def _offered_milli(machine: Machine, occupancy: Occupancy, cpu_node: int) -> int:
    return 1000 * (machine.node(cpu_node).cpus.mask & ~occupancy.reserved.mask).bit_count()


def groups_on(occupancy: Occupancy, cpu_node: int) -> int:
    """How many named groups have members on the NUMA node."""
    there = (groups for mask, groups in occupancy.directory.grouped.items() if mask >> cpu_node & 1)
    return len(frozenset[str]().union(*there))


def _own(machine: Machine, cpu_node: int, spare: int, size: int) -> tuple[int, int, int]:
    """spare, cores, core."""
    node, cores = machine.node(cpu_node), machine.cores_by_node[cpu_node]
    # Mostly no container has a CPU alone there, and each core is spare as a whole.
    all_spare = spare == node.cpus.mask == node.all_cpus.mask
    whole = len(cores) if all_spare else sum(1 for core in cores if core & spare == core)
    return spare.bit_count(), whole * size, size


@lru_cache(maxsize=64)
def _core_size(*cores: tuple[int, ...]) -> int:
    """0 where cores differ in size. cores: their masks, of each NUMA node."""
    sizes = {core.bit_count() for of_node in cores for core in of_node}
    return sizes.pop() if len(sizes) == 1 else 0
