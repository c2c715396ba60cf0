"""A small cluster of real processes: one extender, an enforcer for each machine, and what stands in for the rest of
Kubernetes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from enforcer.machine.sysfs import read_machine
from lab.demo.shop import TEMPLATE, Pod
from lab.standins.all_or_nothing import AllOrNothing
from lab.standins.apiserver import ApiServer
from lab.standins.extender import ExtenderProcess
from lab.standins.machines import MACHINES, write_sysfs
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.records import Container
from lab.standins.runtime.runtime import Runtime
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine

SANDBOX_S = 0.1
"""Between a pod's sandbox and its container: what a fast runtime takes, and more than a nomination needs to arrive."""

PATIENT = ("--patience", "20", "--hold", "3600")
"""Options of an extender that waits for its watch on a busy machine too."""

OPT_IN = {"group.numakin.io": "boutique"}
"""All that a pod's user writes; the shops' namespaces make it one group for each."""


@dataclass(slots=True)
class Node:
    """One machine of the cluster: its hardware's sysfs tree, its container runtime, its enforcer's process."""

    name: str
    machine: Machine
    runtime: Runtime
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def run_dir(self) -> Path:
        return self.folder / "run"


@dataclass(slots=True)
class Cluster(AllOrNothing):
    """Use as a context manager; TimeoutError where something of it does not come up. machines: node name -> a name in
    lab.standins.machines. nri_version: the runtimes'.
    """

    folder: Path
    machines: Mapping[str, str]
    nri_version: str = "0.8.0"
    nodes: dict[str, Node] = field(default_factory=dict)
    extender: str = ""
    web: str = ""
    reports: str = ""
    _api: ApiServer | None = None

    @property
    def api(self) -> ApiServer:
        assert self._api is not None
        return self._api

    def explain(self, pod: Pod) -> dict[str, Any]:
        """The extender's answer to "why is this pod here?"."""
        return self._get(f"/api/v1/explain?namespace={pod.shop}&pod={pod.name}")

    def created(self, pod: Pod) -> dict[str, Any]:
        """The pod as the API server has it, not bound yet. All that its user writes for numakin is the group's name."""
        requests = {"cpu": f"{pod.service.cpu_milli}m", "memory": str(pod.service.memory)}
        resources = {"requests": requests, "limits": {"memory": str(pod.service.memory)}}
        return self.api.create_pod(
            pod.name,
            pod.shop,
            annotations=OPT_IN,
            containers=[{"name": pod.service.name, "image": "boutique:1", "resources": resources}],
            labels={"pod-template-hash": TEMPLATE},
            owner={"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": pod.replica_set, "uid": pod.replica_set},
        )

    def run(self, pod: Pod, uid: str, node: str) -> Container:
        """What the kubelet does with a pod that is bound to its node."""
        until(lambda: self._nominated(pod), f"the extender to see that {pod.name} is bound", pause_s=0.05)
        runtime = self.nodes[node].runtime
        sandbox = runtime.run_pod(pod.name, pod.shop, uid, OPT_IN, {"pod-template-hash": TEMPLATE})
        time.sleep(SANDBOX_S)
        return runtime.run_container(
            sandbox, pod.service.name, cpu_request=pod.service.cpu_milli / 1000, memory_limit=pod.service.memory
        )

    def restart(self, name: str, recording: Path) -> None:
        """A node's enforcer anew, with traffic to replay: it takes over what runs."""
        before = self.nodes[name].process
        if before is not None:
            _ended(before)
        self._start_enforcer(name, "--replay", str(recording))

    def where(self, node: str, container: Container) -> NumaSet:
        """The NUMA nodes on which the container may run, by its runtime's record."""
        machine = self.nodes[node].machine
        now = self.nodes[node].runtime.containers[container.id]
        return machine.nodes_of(CpuSet.parse(now.resources.cpu.cpus) or machine.cpus)

    def _start(self) -> None:
        self._api = self._stack.enter_context(ApiServer())
        kubeconfig = self.folder / "kubeconfig"
        self._api.kubeconfig(kubeconfig)
        for name in self.machines:
            self._api.create_node(name)
        self.reports = self._start_extender(kubeconfig)
        for name, kind in self.machines.items():
            self._add_node(name, kind)
            self._start_enforcer(name, "--observe", "off")
        for node in self.nodes.values():
            node.runtime.wait_for_plugin(PATIENCE_S)
        until(self._all_live, "the extender to hear every enforcer", pause_s=0.05)

    def _start_extender(self, kubeconfig: Path) -> str:
        extender = ExtenderProcess(self.folder, ("--kubeconfig", str(kubeconfig), *PATIENT))
        self._stack.callback(extender.end)
        extender.start()
        self.extender, self.web = extender.http, extender.web
        return extender.grpc

    def _add_node(self, name: str, kind: str) -> None:
        folder = self.folder / name
        folder.mkdir()
        write_sysfs(MACHINES[kind], folder / "sys")
        runtime = self._stack.enter_context(Runtime(folder / "nri.sock", nri_version=self.nri_version))
        self.nodes[name] = Node(name, read_machine(folder / "sys", name=name), runtime, folder)

    def _start_enforcer(self, name: str, *traffic: str) -> None:
        node = self.nodes[name]
        node.process = self._process(
            name,
            "enforcer",
            "run",
            *("--node-name", name, "--nri-socket", str(node.folder / "nri.sock"), "--run-dir", str(node.run_dir)),
            *("--sysfs", str(node.folder / "sys"), "--extender", self.reports, "--metrics-listen", "", *traffic),
        )

    def _process(self, name: str, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = self._stack.enter_context((self.folder / f"{name}.log").open("ab"))
        environment = {key: value for key, value in os.environ.items() if not key.startswith("NUMAKIN_")}
        process = subprocess.Popen([sys.executable, "-m", module, *arguments], stderr=log, stdout=log, env=environment)
        self._stack.callback(_ended, process)
        return process

    def _all_live(self) -> bool:
        try:
            nodes = self._get("/api/v1/nodes")["nodes"]
        except OSError:  # it is late with its answer
            return False
        return sum(1 for node in nodes if node["live"] and node["registered"]) == len(self.nodes)

    def _nominated(self, pod: Pod) -> bool:
        """Whether the extender saw the pod bound, with which its nomination is sent; also where it holds no room."""
        try:
            expected = self.explain(pod)["expected"]
        except HTTPError as error:  # it was not asked about the pod
            error.close()
            return True
        return expected is None or bool(expected["bound"])

    def _get(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://{self.web}{path}", timeout=PATIENCE_S) as answer:
            body: dict[str, Any] = json.load(answer)
        return body


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
