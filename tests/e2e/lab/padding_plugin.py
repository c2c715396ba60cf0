"""An NRI plugin with answers of a given size: pins every container, and pads its answer with an annotation.

Usage: python -m tests.e2e.lab.padding_plugin SOCKET CPUS BYTES

Built on the enforcer's own session, since how large answers are cut into frames is what a runtime is picky about.
Prints "synchronized" when the runtime has taken it, and the size of each answer as sent (ttrpc's header included).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from enforcer.nri import ttrpc
from enforcer.nri.handlers import Creation, Handlers
from enforcer.nri.identity import Identity
from enforcer.nri.plugin import Plugin
from enforcer.nri.session import Stage
from enforcer.nri.transport import External
from numakin.process.loop import Loop
from numakin.wire import nri_pb2 as nri

PADDING = "padding.numakin.io"


def adjustment(cpus: str, padding: int) -> nri.ContainerAdjustment:
    adjust = nri.ContainerAdjustment(annotations={PADDING: "x" * padding})
    adjust.linux.resources.cpu.cpus = cpus
    return adjust


def sent_size(adjust: nri.ContainerAdjustment) -> int:
    return len(ttrpc.encode_answer(1, nri.CreateContainerResponse(adjust=adjust).SerializeToString()))


def padded(cpus: str, size: int) -> nri.ContainerAdjustment:
    """An adjustment whose answer is exactly `size` bytes long. Raises ValueError where none is."""
    padding = size - sent_size(adjustment(cpus, 0))
    while padding >= 0:  # each level of nesting may spend a byte more on its length
        adjust = adjustment(cpus, padding)
        if sent_size(adjust) == size:
            return adjust
        padding -= 1
    raise ValueError(f"no answer is {size} bytes long")


def main(arguments: Sequence[str]) -> None:
    socket, cpus, size = arguments
    adjust = padded(cpus, int(size))

    def create(_pod: nri.PodSandbox, _container: nri.Container) -> Creation:
        print(sent_size(adjust), flush=True)
        return adjust, ()

    def staged(stage: Stage) -> None:
        print(stage.value, flush=True)

    loop = Loop()
    plugin = Plugin(
        loop, Identity("20", "padding"), Handlers(create_container=create), External(socket), on_stage=staged
    )
    loop.call_later(0, plugin.start)
    loop.run()


if __name__ == "__main__":
    main(sys.argv[1:])
