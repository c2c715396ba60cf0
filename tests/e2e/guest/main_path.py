"""Runs inside the emulated NUMA machine: the product's whole path, on a real kernel with several NUMA nodes.

    python3 -m tests.e2e.guest.main_path

A stand-in API server, the extender and the enforcer as they are, the machine's containerd. For each pod what Kubernetes
does: the scheduler asks the extender, the pod is bound, the kubelet creates it over CRI. Prints a JSON object a line:
first the machine, then each pod with what the extender predicted and what the kernel says, then what an exclusive CPU
that goes offline and comes back changes, and memory that comes and goes. At the end come the logs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from placement.model.cpuset import CpuSet
from proto import cri_pb2 as cri
from standins.apiserver import ApiServer
from standins.kubelet import Kubelet as DeviceManager
from standins.patience import PATIENCE_S, until
from standins.scheduler.extender_client import ExtenderClient
from tests.e2e.guest import logs
from tests.e2e.lab import kernel
from tests.e2e.lab.cri import Kubelet
from tests.e2e.lab.enforcer import RunningEnforcer
from tests.enforcer.observer.podresources_tool import tool

NODE, UNKNOWN_NODE = "lab", "elsewhere"

TOUCHED = 16 << 20
# dd fills its buffer and then waits for ever: sleep does not read.
COMMAND = ("/bin/busybox", "sh", "-c", f"dd if=/dev/zero bs={TOUCHED} 2>/dev/null | sleep 2147483647")
MEMORY_LIMIT = 64 << 20

DEVICE = 5
"""The NUMA node of a device's memory, which is not there at first."""


@dataclass(frozen=True, slots=True)
class PodRequest:
    """A pod to come. group: "" has not opted in."""

    name: str
    group: str = ""
    cpu_milli: int = 100
    exclusive: bool = False
    memory: int = MEMORY_LIMIT
    """Bytes of its limit."""

    @property
    def annotations(self) -> dict[str, str]:
        own = {"cpus.numakin.io": "exclusive"} if self.exclusive else {}
        return own | {"group.numakin.io": self.group} if self.group else {}


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


class World:
    """The processes, and what plays the rest of Kubernetes."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        subprocess.run(["lab-containerd"], check=True, stdout=subprocess.DEVNULL)
        self.kubelet = Kubelet(Path("/run/containerd/containerd.sock"), "/numakin-lab")
        self.api = stack.enter_context(ApiServer())
        self.api.create("v1", "namespaces", {"metadata": {"name": "numakin"}})
        self.api.create_node(NODE)
        addresses = self._extender(stack, folder)
        self.http = addresses["http"]
        self.scheduler = ExtenderClient(self.http, timeout_s=PATIENCE_S)
        self.podresources = folder / "numakin.sock"
        self.device_manager = stack.enter_context(DeviceManager(folder / "kubelet.sock"))
        options = ("--extender", addresses["grpc"], "--observe", "off")
        options += ("--podresources-socket", str(self.device_manager.path))
        options += ("--memory-tiers", str(DEVICE), "--podresources-listen", str(self.podresources))
        self.pids: dict[str, int] = {}
        self.enforcer = RunningEnforcer(folder, Path("/run/nri/nri.sock"), *options)
        stack.callback(self.enforcer.stop)
        self.enforcer.start(PATIENCE_S)
        until(self._live, "the extender to hear the enforcer", PATIENCE_S)

    def place(self, request: PodRequest) -> dict[str, Any]:
        """One pod from its creation in the API to its memory touched; everything that is known of it then."""
        annotations = request.annotations
        requests = {"cpu": f"{request.cpu_milli}m", "memory": "32Mi"}
        resources = {"requests": requests, "limits": {"memory": str(request.memory)}}
        spec = [{"name": "main", "image": "busybox", "resources": resources}]
        pod = self.api.create_pod(request.name, "default", annotations=annotations, containers=spec)
        scores = self.scheduler.prioritize(pod, self.scheduler.filter(pod, [NODE, UNKNOWN_NODE]))
        predicted = self._predicted(request)
        self.api.bind(request.name, NODE)
        if request.group:
            until(lambda: self._bound(request), f"the extender to see {request.name} bound", PATIENCE_S)
        self.device_manager.admit("default", request.name, "main")
        pid = self.pids[request.name] = self._created(request, pod["metadata"]["uid"], annotations)
        until(
            lambda: kernel.anonymous_memory(pid).total() >= TOUCHED, f"{request.name} to touch its memory", PATIENCE_S
        )
        return {
            "pod": request.name,
            "group": request.group,
            "scores": scores,
            "predicted": predicted,
            "cgroup": asdict(kernel.cpuset(pid)),
            "allowed": asdict(kernel.allowed(pid)),
            "numa_maps": kernel.anonymous_pages(pid),
            "numa_stat": kernel.anonymous_memory(pid),
            "happened": self._happened(request),
        }

    def now(self) -> dict[str, Any]:
        """Where all containers may run, what the extender takes the machine for, and what podresources tells."""
        return {
            "allowed": {pod: asdict(kernel.allowed(pid)) for pod, pid in self.pids.items()},
            "cgroup": {pod: asdict(kernel.cpuset(pid)) for pod, pid in self.pids.items()},
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
        return {numa_node["id"]: numa_node["memory"] for numa_node in self._numa_nodes()}

    def _cpus_by_extender(self) -> list[str]:
        return [numa_node["cpus"] for numa_node in self._numa_nodes() if numa_node["cpus"]]

    def _numa_nodes(self) -> list[dict[str, Any]]:
        """As the extender has them."""
        (node,) = self._get("/api/v1/nodes")["nodes"]
        listed: list[dict[str, Any]] = node["numa_nodes"]
        return listed

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

    def _created(self, request: PodRequest, uid: str, annotations: Mapping[str, str]) -> int:
        sandbox = self.kubelet.run_pod(request.name, uid=uid, annotations=annotations)
        shares = cri.LinuxContainerResources(
            cpu_shares=request.cpu_milli * 1024 // 1000, memory_limit_in_bytes=request.memory
        )
        return self.kubelet.pid(self.kubelet.run(sandbox, command=COMMAND, resources=shares))

    def _predicted(self, request: PodRequest) -> dict[str, Any] | None:
        """The row of the extender's explanation that names our node; None for a pod that has not opted in."""
        result = self._explained(request)
        rows = result["scored"]["nodes"] if result and result["scored"] else []
        return next((row for row in rows if row["node"] == NODE), None)

    def _bound(self, request: PodRequest) -> bool:
        result = self._explained(request)
        return bool(result and result["expected"] and result["expected"]["bound"])

    def _happened(self, request: PodRequest) -> list[dict[str, Any]]:
        if not request.group:
            return []

        def reported() -> list[dict[str, Any]]:
            result = self._explained(request)
            return list(result["happened"]) if result else []

        return until(reported, f"the enforcer's report of {request.name}", PATIENCE_S)

    def _explained(self, request: PodRequest) -> dict[str, Any] | None:
        try:
            return self._get(f"/api/v1/explain?namespace=default&pod={request.name}")
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None

    def _live(self) -> bool:
        return any(node["live"] and node["registered"] for node in self._get("/api/v1/nodes")["nodes"])

    def _get(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://{self.http}{path}", timeout=PATIENCE_S) as answer:
            result: dict[str, Any] = json.load(answer)
        return result

    def _extender(self, stack: ExitStack, folder: Path) -> dict[str, str]:
        ready, log = folder / "ready.json", stack.enter_context((folder / "extender.log").open("wb"))
        command = [sys.executable, "-m", "extender.main", "--listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0"]
        command += ["--kubeconfig", str(self.api.kubeconfig(folder / "kubeconfig")), "--ready-file", str(ready)]
        process = stack.enter_context(subprocess.Popen(command, stdout=log, stderr=log))
        stack.callback(process.terminate)
        until(ready.exists, "the extender to start", PATIENCE_S)
        addresses: dict[str, str] = json.loads(ready.read_text())
        return addresses


def machine() -> dict[str, Any]:
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
    print(json.dumps({"machine": machine()}), flush=True)
    try:
        with ExitStack() as stack:
            world = World(stack, folder)
            for option in (*WISHES, ALONE):
                print(json.dumps(world.place(option)), flush=True)
            (cpu,) = CpuSet.parse(kernel.allowed(world.pids[ALONE.name]).cpus)
            print(json.dumps({"cpu": cpu, "before": world.now()}), flush=True)
            for when, online, request in zip(("gone", "back"), (False, True), LATER, strict=True):
                world.switch(cpu, online=online)
                world.place(request)
                print(json.dumps({when: world.now()}), flush=True)
            before, after = LARGE
            print(json.dumps(world.place(before)), flush=True)
            print(json.dumps({"without": world.now()}), flush=True)
            world.plug(online=True)
            print(json.dumps(world.place(after)), flush=True)
            print(json.dumps({"plugged": world.now()}), flush=True)
            world.plug(online=False)
            world.place(LAST)
            print(json.dumps({"unplugged": world.now()}), flush=True)
    finally:
        logs.show(folder)


if __name__ == "__main__":
    main()
