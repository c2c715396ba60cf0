"""Runs inside the emulated machine with caches within its NUMA nodes, and memory that is plugged in.

    python3 -m tests.e2e.guest.hardware

containerd, and the enforcer, which serves the podresources API. Members that want a cache of their own are created, and
one with exclusive CPUs; a CPU of that one's goes offline and comes back; the memory comes online, a member needs it, and
it goes again. Prints a JSON object a line, each with what it is about as its only key.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict

from proto import cri_pb2 as cri
from proto import podresources_pb2 as pb
from proto import podresources_pb2_grpc
from standins.patience import PATIENCE_S, until
from tests.e2e.guest import logs
from tests.e2e.lab import kernel
from tests.e2e.lab.cri import Kubelet
from tests.e2e.lab.enforcer import RunningEnforcer

CPUS = Path("/sys/devices/system/cpu")
NUMA_NODES = Path("/sys/devices/system/node")
PLUGGED = 2
"""The NUMA node whose memory is plugged in."""

MIB = 1 << 20
LARGE = 2048 * MIB
"""More than the NUMA nodes have that are there from the beginning."""

CACHED = {"cart": "shop", "checkout": "shop", "ledger": "bank", "teller": "bank"}
"""Pods that want to be within a cache, by group."""

EXCLUSIVE = 2

NO_MORE: Mapping[str, str] = MappingProxyType({})


class World:
    """containerd, the enforcer, and the pods on them."""

    def __init__(self, folder: Path) -> None:
        subprocess.run(["lab-containerd"], check=True, stdout=subprocess.DEVNULL)
        self.kubelet = Kubelet(Path("/run/containerd/containerd.sock"), "/numakin-lab")
        self.podresources = folder / "podresources.sock"
        served = ("--podresources-listen", str(self.podresources), "--podresources-socket", "off")
        options = (*served, "--observe", "off", "--memory-tiers", str(PLUGGED))
        self.enforcer = RunningEnforcer(folder, Path("/run/nri/nri.sock"), *options)
        self._sandboxes: dict[str, str] = {}

    def member(
        self, name: str, group: str, *, cpus: int = 1, memory: int = 64 * MIB, more: Mapping[str, str] = NO_MORE
    ) -> int:
        """The pid of its container. cpus: whole ones. memory: its limit in bytes. more: annotations."""
        annotations = {"group.numakin.io": group, **more}
        resources = cri.LinuxContainerResources(cpu_shares=1024 * cpus, memory_limit_in_bytes=memory)
        sandbox = self.kubelet.run_pod(name, annotations=annotations, memory_limit=memory)
        self._sandboxes[name] = sandbox.id
        return self.kubelet.pid(self.kubelet.run(sandbox, resources=resources))

    def passer_by(self) -> None:
        """A member that comes and goes: a runtime of this age takes changes along with such."""
        self.member("passer-by", "passing")
        self.kubelet.end_pod(self._sandboxes["passer-by"])

    def mems(self) -> str:
        """The NUMA nodes whose memory members may have, as the enforcer has read them last."""
        return str(self.enforcer.log_records("machine read")[-1]["mems"])

    def listed(self) -> list[dict[str, Any]]:
        """What a monitoring tool reads."""
        with grpc.insecure_channel(f"unix:{self.podresources}", [("grpc.default_authority", "localhost")]) as channel:
            stub = podresources_pb2_grpc.PodResourcesListerStub(channel)
            answer = stub.List(pb.ListPodResourcesRequest(), timeout=PATIENCE_S, wait_for_ready=True)
        return [MessageToDict(pod) for pod in answer.pod_resources]


def say(about: str, what: object) -> None:
    print(json.dumps({about: what}), flush=True)


def changed(world: World, pid: int, right: Callable[[kernel.Place], bool], what: str) -> dict[str, str]:
    """Where it may run once that is right."""

    def after_an_event() -> bool:
        world.passer_by()
        return right(kernel.allowed(pid))

    until(after_an_event, what, PATIENCE_S)
    return asdict(kernel.allowed(pid))


def caches() -> list[str]:
    """The CPUs of each last-level cache, which is one of the second level here."""
    of_cpu = {path.parent: int(path.read_text()) for path in CPUS.glob("cpu[0-9]*/cache/index*/level")}
    last = max(of_cpu.values())
    return sorted({(cache / "shared_cpu_list").read_text().strip() for cache, level in of_cpu.items() if level == last})


def places_within_caches(world: World) -> None:
    pids = {name: world.member(name, group, more={"span.numakin.io": "cache"}) for name, group in CACHED.items()}
    say("cached", {name: asdict(kernel.allowed(pid)) for name, pid in pids.items()})


def a_cpu_goes(world: World) -> None:
    """One that a member has for itself."""
    pid = world.member("alone", "solo", cpus=EXCLUSIVE, more={"cpus.numakin.io": "exclusive"})
    before = kernel.allowed(pid)
    listed = until(lambda: [pod for pod in world.listed() if pod["name"] == "alone"], "it is listed", PATIENCE_S)
    say("alone", {"allowed": asdict(before), "listed": listed[0]["containers"]})
    gone = before.cpus.replace("-", ",").split(",")[-1]
    switch = CPUS / f"cpu{gone}/online"
    switch.write_text("0")

    def elsewhere(place: kernel.Place) -> bool:
        return len(cpus(place)) == EXCLUSIVE and int(gone) not in cpus(place)

    say("without_cpu", {"gone": int(gone), "allowed": changed(world, pid, elsewhere, "another CPU in its place")})
    switch.write_text("1")


def cpus(place: kernel.Place) -> set[int]:
    ranges = (part.partition("-") for part in place.cpus.split(","))
    return {cpu for low, _, high in ranges for cpu in range(int(low), int(high or low) + 1)}


def memory_comes(world: World) -> None:
    say("mems_before", world.mems())
    small = world.member("small", "large", memory=LARGE)
    say("spread", asdict(kernel.allowed(small)))
    set_memory("online_movable")
    until(lambda: world.mems() == f"0-{PLUGGED}", "the memory to be known", PATIENCE_S)
    large = world.member("spills", "larger", memory=LARGE)
    say("spilled", asdict(kernel.allowed(large)))
    set_memory("offline")
    until(lambda: world.mems() == f"0-{PLUGGED - 1}", "the memory to be missed", PATIENCE_S)
    say("left", changed(world, large, lambda place: place.mems == f"0-{PLUGGED - 1}", "nobody to be left there"))


def set_memory(state: str) -> None:
    """Of all blocks that are plugged in."""
    for block in sorted(NUMA_NODES.glob(f"node{PLUGGED}/memory[0-9]*")):
        (block / "state").write_text(state)


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    say("caches", caches())
    try:
        world = World(folder)
        world.enforcer.start(PATIENCE_S)
        try:
            places_within_caches(world)
            a_cpu_goes(world)
            memory_comes(world)
        finally:
            world.enforcer.stop()
    finally:
        logs.show(folder)


if __name__ == "__main__":
    main()
