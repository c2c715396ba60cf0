"""What a machine has left, as numbers that don't depend on who asks: the rows that `scoring` weighs by the thousand."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from placement.cpuset import NumaSet
from placement.memory import STALLED, capacity, really_free
from placement.occupancy import Occupancy
from placement.tally import EMPTY
from placement.topology import Machine

Floats = npt.NDArray[np.float64]


def table(machine: Machine, occupancy: Occupancy) -> Floats | None:
    """What the node has for any simple pod, one row for each NUMA node it could be on; None when it is special.

    Columns: id, thousandths unrequested, of all its CPUs, used, bytes by account, bytes really free, seats.
    """
    directory = occupancy.directory
    if (
        directory.special
        or (directory.sized and occupancy.kept(machine))
        or any(share >= STALLED for share in occupancy.live.stalled.values())
        or not machine.mems
    ):
        return None
    rows = occupancy.load(machine).rows
    taken = directory.exclusive | occupancy.reserved.mask
    found = []
    for one in machine.cpu_nodes:
        cpus = machine.node(one).cpus.mask
        if not cpus & ~taken:
            continue
        row = rows.get(one, EMPTY)
        mems = machine.nearest_mems(NumaSet(1 << one))
        found.append(
            (
                one,
                1000 * (cpus & ~occupancy.reserved.mask).bit_count() - row.cpu,
                1000 * cpus.bit_count(),
                occupancy.live.used_cpu.get(one, 0),
                sum(max(0, capacity(machine, mem) - rows.get(mem, EMPTY).memory) for mem in mems),
                sum(max(0, really_free(machine, occupancy, mem)) for mem in mems),
                row.seats,
            )
        )
    return np.array(found, dtype=np.float64) if found else None
