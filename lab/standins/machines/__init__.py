"""Known machines, each written down from public facts, to be laid out as a sysfs tree and tried anywhere."""

from __future__ import annotations

from collections.abc import Mapping

from lab.standins.machines import amd, arm, emulated, intel, sgi, tiers
from lab.standins.machines.description import Description
from lab.standins.machines.write import switch_cpus, write_procfs, write_sysfs

MACHINES: Mapping[str, Description] = {
    description.machine.name: description
    for description in (
        *intel.MACHINES,
        *amd.MACHINES,
        *arm.MACHINES,
        *tiers.MACHINES,
        *sgi.MACHINES,
        *emulated.MACHINES,
    )
}

__all__ = ["MACHINES", "Description", "switch_cpus", "write_procfs", "write_sysfs"]
