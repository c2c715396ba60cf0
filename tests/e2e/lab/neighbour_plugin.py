"""Another vendor's NRI plugin beside the enforcer: sets the cpuset of every container to the same CPUs, as
nri-plugins' balloons (index 90) and dra-driver-cpu (00) do.

Usage: python -m tests.e2e.lab.neighbour_plugin SOCKET INDEX CPUS

Prints "synchronized" when the runtime has taken it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from enforcer.nri.handlers import Creation, Handlers
from enforcer.nri.identity import Identity
from enforcer.nri.plugin import Plugin
from enforcer.nri.session import Stage
from enforcer.nri.transport import External
from numakin.process.loop import Loop
from numakin.wire import nri_pb2 as nri
from tests.e2e.lab.place import REPOSITORY


@contextmanager
def neighbour(nri_socket: Path, index: str, cpus: str) -> Iterator[None]:
    """It is a plugin of the runtime meanwhile."""
    command = [sys.executable, "-m", "tests.e2e.lab.neighbour_plugin", str(nri_socket), index, cpus]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as plugin:
        assert plugin.stdout is not None
        try:
            next(line for line in plugin.stdout if line == "synchronized\n")
            yield
        finally:
            plugin.terminate()


def main(arguments: Sequence[str]) -> None:
    socket, index, cpus = arguments
    adjust = nri.ContainerAdjustment()
    adjust.linux.resources.cpu.cpus = cpus

    def create(_pod: nri.PodSandbox, _container: nri.Container) -> Creation:
        return adjust, ()

    def staged(stage: Stage) -> None:
        print(stage.value, flush=True)

    loop, identity = Loop(), Identity(index, "neighbour")
    plugin = Plugin(loop, identity, Handlers(create_container=create), External(socket), on_stage=staged)
    loop.call_later(0, plugin.start)
    loop.run()


if __name__ == "__main__":
    main(sys.argv[1:])
