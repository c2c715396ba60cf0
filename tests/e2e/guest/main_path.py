"""Runs inside the emulated NUMA machine: the product's whole path, on a real kernel with several NUMA nodes.

    python3 -m tests.e2e.guest.main_path

Prints a JSON object a line: first the machine, then each pod with what the extender predicted and what the kernel says,
then what an exclusive CPU that goes offline and comes back changes, and memory that comes and goes. At the end come the
logs.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lab.standins.patience import PATIENCE_S, until
from numakin.placement.model.cpuset import CpuSet
from tests.e2e.guest import logs
from tests.e2e.guest.world import PodRequest, World
from tests.e2e.lab import kernel
from tests.enforcer.observer.podresources_tool import tool

DEVICE = 5
"""The NUMA node of a device's memory, which is not there at first."""

WISHES = (
    PodRequest("cart", "shop"),
    PodRequest("ledger", "bank"),
    PodRequest("checkout", "shop"),
    PodRequest("plain"),
    PodRequest("payment", "shop"),
    PodRequest("teller", "bank"),
    # Two of these fill a NUMA node of two CPUs; the third has to go where its kin are nearest.
    PodRequest("wide-1", "wide", 900),
    PodRequest("wide-2", "wide", 900),
    PodRequest("wide-3", "wide", 900),
)
ALONE = PodRequest("alone", "own", 1000, exclusive=True)
LARGE = tuple(PodRequest(f"large-{number}", f"large-{number}", memory=1350 << 20) for number in (1, 2))
"""One before the device's memory comes and one after. No NUMA node with CPUs has as much, nor one of them with the
memory that is near to it without the device's.
"""
LATER = (PodRequest("auditor", "bank"), PodRequest("clerk", "bank"))
"""One comes while a CPU is offline, one when it is back: before NRI 0.12.1 a change waits for the next member."""
LAST = PodRequest("notary", "bank")
"""Once the device's memory is gone."""


class Machine(World):
    """One that changes."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.podresources = folder / "numakin.sock"
        options = ("--memory-tiers", str(DEVICE), "--podresources-listen", str(self.podresources))
        super().__init__(stack, folder, *options)

    def now(self) -> dict[str, Any]:
        """Where all containers may run, what the extender takes the machine for, and what podresources tells."""
        return {
            **self.where(),
            "extender": self._cpus_by_extender(),
            "memory": self._memory_by_extender(),
            "podresources": self._podresources(),
        }

    def switch(self, cpu: int, *, online: bool) -> None:
        """Returns when the extender knows."""
        Path(f"/sys/devices/system/cpu/cpu{cpu}/online").write_text(f"{online:d}")
        told = "in" if online else "out of"
        until(
            lambda: (cpu in CpuSet.parse(",".join(self._cpus_by_extender()))) is online,
            f"the extender to have CPU {cpu} {told} its machine",
            PATIENCE_S,
        )

    def plug(self, *, online: bool) -> None:
        """Memory of a device. Returns when the extender knows."""
        state = "online_movable" if online else "offline"
        for block in Path(f"/sys/devices/system/node/node{DEVICE}").glob("memory*/state"):
            block.write_text(state)
        told = "to have" if online else "to have no more"
        until(
            lambda: bool(self._memory_by_extender()[DEVICE]) is online, f"the extender {told} that memory", PATIENCE_S
        )

    def _memory_by_extender(self) -> dict[int, int]:
        """Bytes by NUMA node."""
        return {numa_node["id"]: numa_node["memory"] for numa_node in self.numa_nodes()}

    def _cpus_by_extender(self) -> list[str]:
        return [numa_node["cpus"] for numa_node in self.numa_nodes() if numa_node["cpus"]]

    def _podresources(self) -> dict[str, Any]:
        """By pod: the CPUs and the bytes of memory by NUMA node that numakin's own socket lists."""
        with tool(self.podresources) as reader:
            listed = reader.containers()
        return {
            name.split("/")[1]: {
                "cpus": str(CpuSet.of(container.cpu_ids)),
                "memory": {block.topology.nodes[0].ID: block.size for block in container.memory},
            }
            for name, container in listed.items()
        }


def hardware() -> dict[str, Any]:
    """What the kernel tells of the hardware."""
    nodes = Path("/sys/devices/system/node")
    ids = sorted(int(path.name.removeprefix("node")) for path in nodes.glob("node[0-9]*"))
    return {
        "cpus": {entry: (nodes / f"node{entry}/cpulist").read_text().strip() for entry in ids},
        "distances": {entry: list(map(int, (nodes / f"node{entry}/distance").read_text().split())) for entry in ids},
        "has_memory": (nodes / "has_memory").read_text().strip(),
    }


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    print(json.dumps({"machine": hardware()}), flush=True)
    try:
        with ExitStack() as stack:
            machine = Machine(stack, folder)
            for option in (*WISHES, ALONE):
                print(json.dumps(machine.place(option)), flush=True)
            (cpu,) = CpuSet.parse(kernel.allowed(machine.pids[ALONE.name]).cpus)
            print(json.dumps({"cpu": cpu, "before": machine.now()}), flush=True)
            for when, online, request in zip(("gone", "back"), (False, True), LATER, strict=True):
                machine.switch(cpu, online=online)
                machine.place(request)
                print(json.dumps({when: machine.now()}), flush=True)
            before, after = LARGE
            print(json.dumps(machine.place(before)), flush=True)
            print(json.dumps({"without": machine.now()}), flush=True)
            machine.plug(online=True)
            print(json.dumps(machine.place(after)), flush=True)
            print(json.dumps({"plugged": machine.now()}), flush=True)
            machine.plug(online=False)
            machine.place(LAST)
            print(json.dumps({"unplugged": machine.now()}), flush=True)
    finally:
        logs.show(folder)


if __name__ == "__main__":
    main()
