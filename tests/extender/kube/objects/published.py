"""A machine as NodeResourceTopology objects show it."""

from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.topology import Machine, NumaNode

GI = 1 << 30
MACHINE = Machine(
    (
        NumaNode(0, CpuSet.parse("0-31"), 130 * GI, {0: 10, 1: 21}, {2 << 20: 2 * GI}),
        NumaNode(1, CpuSet.parse("32-63"), 128 * GI, {0: 21, 1: 10}),
    )
)
