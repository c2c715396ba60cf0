"""A plugin's answers that pin, and the stages of a session that is up."""

from enforcer.nri.handlers import Handlers
from enforcer.nri.session import Stage
from numakin.wire import nri_pb2 as nri

LATE_S = 3.0
"""Long enough for an answer that is not to be late, and short enough to wait for."""

SYNCED = (Stage.REGISTERING, Stage.CONFIGURED, Stage.SYNCHRONIZED)


def pin(cpus="1-2", mems="0", pad=0):
    adjust = nri.ContainerAdjustment()
    adjust.linux.resources.cpu.cpus, adjust.linux.resources.cpu.mems = cpus, mems
    if pad:
        adjust.annotations["pad"] = "x" * pad
    return adjust


def update(container, cpus):
    resources = nri.LinuxResources(cpu=nri.LinuxCPU(cpus=cpus))
    return nri.ContainerUpdate(container_id=container.id, linux=nri.LinuxContainerUpdate(resources=resources))


PINNING = Handlers(create_container=lambda *_: (pin(), []))
