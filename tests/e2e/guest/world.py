"""A node inside the emulated machine, and what plays the rest of its cluster.

The extender and the enforcer as they are, the machine's containerd, a stand-in API server. For each pod what Kubernetes
does: the scheduler asks the extender, the pod is bound, the kubelet creates it over CRI.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.standins.apiserver import ApiServer
from lab.standins.kubelet import Kubelet as DeviceManager
from lab.standins.patience import PATIENCE_S, until
from lab.standins.scheduler.extender_client import ExtenderClient
from numakin.wire import cri_pb2 as cri
from tests.e2e.guest import runtime
from tests.e2e.lab import kernel
from tests.e2e.lab.enforcer import ForkedEnforcer

NODE, UNKNOWN_NODE = "lab", "elsewhere"

TOUCHED = 16 << 20
# dd fills its buffer and then waits for ever: sleep does not read.
WAITS = ("/bin/busybox", "sh", "-c", f"dd if=/dev/zero bs={TOUCHED} 2>/dev/null | sleep 2147483647")
MEMORY_LIMIT = 64 << 20


@dataclass(frozen=True, slots=True)
class PodRequest:
    """A pod to come. group: "" has not opted in. memory: bytes of its limit. span: of `span.numakin.io`."""

    name: str
    group: str = ""
    cpu_milli: int = 100
    exclusive: bool = False
    memory: int = MEMORY_LIMIT
    span: str = ""

    @property
    def annotations(self) -> dict[str, str]:
        own = {"cpus.numakin.io": "exclusive"} if self.exclusive else {}
        own |= {"span.numakin.io": self.span} if self.span else {}
        return own | {"group.numakin.io": self.group} if self.group else {}


class World:
    """The processes. options: more of the enforcer's."""

    def __init__(self, stack: ExitStack, folder: Path, *options: str) -> None:
        self.kubelet = runtime.kubelet()
        self.api = stack.enter_context(ApiServer())
        self.api.create("v1", "namespaces", {"metadata": {"name": "numakin"}})
        self.api.create_node(NODE)
        addresses = self._extender(stack, folder)
        self.web = addresses["web"]
        self.scheduler = ExtenderClient(addresses["http"], timeout_s=PATIENCE_S)
        self.device_manager = stack.enter_context(DeviceManager(folder / "kubelet.sock"))
        options = (*options, "--extender", addresses["grpc"], "--observe", "off")
        options += ("--podresources-socket", str(self.device_manager.path))
        self.pids: dict[str, int] = {}
        self._sandboxes: dict[str, str] = {}
        self.enforcer = ForkedEnforcer(folder, Path("/run/nri/nri.sock"), *options)
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

    def end(self, request: PodRequest) -> None:
        """At the runtime alone."""
        self.kubelet.end_pod(self._sandboxes[request.name])
        del self.pids[request.name]

    def where(self) -> dict[str, Any]:
        """What the kernel says of all pods, by their processes and by their cgroups."""
        return {
            "allowed": {pod: asdict(kernel.allowed(pid)) for pod, pid in self.pids.items()},
            "cgroup": {pod: asdict(kernel.cpuset(pid)) for pod, pid in self.pids.items()},
        }

    def numa_nodes(self) -> list[dict[str, Any]]:
        """As the extender has them."""
        (node,) = self._get("/api/v1/nodes")["nodes"]
        listed: list[dict[str, Any]] = node["numa_nodes"]
        return listed

    def _created(self, request: PodRequest, uid: str, annotations: Mapping[str, str]) -> int:
        sandbox = self.kubelet.run_pod(request.name, uid=uid, annotations=annotations)
        self._sandboxes[request.name] = sandbox.id
        shares = cri.LinuxContainerResources(
            cpu_shares=request.cpu_milli * 1024 // 1000, memory_limit_in_bytes=request.memory
        )
        return self.kubelet.pid(self.kubelet.run(sandbox, command=WAITS, resources=shares))

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
        with urllib.request.urlopen(f"http://{self.web}{path}", timeout=PATIENCE_S) as answer:
            result: dict[str, Any] = json.load(answer)
        return result

    def _extender(self, stack: ExitStack, folder: Path) -> dict[str, str]:
        ready, log = folder / "ready.json", stack.enter_context((folder / "extender.log").open("wb"))
        command = [sys.executable, "-m", "extender.main", "--listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0"]
        command += ["--web-listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0"]
        command += ["--kubeconfig", str(self.api.kubeconfig(folder / "kubeconfig")), "--ready-file", str(ready)]
        process = stack.enter_context(subprocess.Popen(command, stdout=log, stderr=log))
        stack.callback(process.terminate)
        until(ready.exists, "the extender to start", PATIENCE_S)
        addresses: dict[str, str] = json.loads(ready.read_text())
        return addresses
