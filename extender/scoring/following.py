"""Where a group begins of unknown size: where most of it can follow.

A group that grows shares what is free on its NUMA node with the groups that are there already and grow as well. So the
first member goes where that share is the largest, which is not where most is free as a whole: of many small NUMA nodes
none may hold a group that one larger one would.
"""

from __future__ import annotations

import numpy as np

from extender.scoring.predict import Prediction, Wanted
from extender.state.columns.arrays import Floats
from extender.state.columns.cells import Cells, free_milli, groups_on, unused_milli
from extender.state.kins import Kins
from numakin.placement.model.topology import Machine
from numakin.placement.state.load_index import EMPTY
from numakin.placement.state.occupancy import Occupancy
from numakin.placement.state.pools import is_hot


def begins(want: Wanted, kins: Kins) -> bool:
    """Whether the pod is the first of a group whose size is not known, and nothing is planned for it."""
    unknown = not want.opt_in.size and not kins.no_kin.room_milli
    return unknown and not kins.no_kin.elsewhere and not kins.near


def of_cells(there: Cells, taken: int) -> Floats:
    """Millicores for those that follow, of each NUMA node by itself, once the pod is there, which takes so many; none
    where it is hot.
    """
    unused = np.minimum(there.free, there.unused)
    share: Floats = (there.hot == 0) * (unused - taken).clip(min=0.0) / (there.groups + 1.0)
    return share


def predicted(machine: Machine, occupancy: Occupancy, want: Wanted, prediction: Prediction) -> float:
    """Millicores for those that follow on the NUMA node on which the pod would be; 0 where it would be on several: no
    pod can be near all of it.
    """
    if len(prediction.numa_nodes) != 1:
        return 0.0
    home = prediction.numa_nodes.lowest
    if is_hot(occupancy, machine.node(home).cpus.mask):
        return 0.0
    row = occupancy.load(machine).rows.get(home, EMPTY)
    free = min(free_milli(machine, occupancy, home, row), unused_milli(machine, occupancy, home, row))
    left = free - want.whole[0].pod_demand.expected_milli
    return max(0.0, left / (groups_on(occupancy, home) + 1))
