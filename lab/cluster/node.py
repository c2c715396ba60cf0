"""A node on which all is real but the kubelet and the containers: the sysfs tree of a well-known machine, an embedded
runtime that speaks NRI, and numakin-enforcer as a process.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from enforcer.machine.sysfs import read_machine
from lab.cluster.processes import Process, executed
from lab.standins.extender import Begin
from lab.standins.kubelet.resources import of_container, of_sandbox
from lab.standins.runtime.records import Container, Pod
from lab.standins.runtime.runtime import Runtime
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine

SANDBOX_S = 0.1
"""Between a pod's sandbox and its first container: what a fast runtime takes, and more than a nomination needs."""

KEPT_MILLI, KEPT_MEMORY = 500, 1 << 30
"""Of each machine, by its kubelet for itself and the system."""


class Node:
    """name: as the API server has it. sysfs: the machine's tree, which others may have too. Methods may be called from
    any thread.
    """

    def __init__(self, name: str, sysfs: Path, folder: Path, begin: Begin | None = None) -> None:
        """begin: how the enforcer is started, where not executed."""
        folder.mkdir()
        self.name = name
        self.folder = folder
        self.sysfs = sysfs
        self.machine: Machine = read_machine(sysfs, name=name)
        self.runtime = Runtime(folder / "nri.sock")
        self.enforcer: Process | None = None
        self._begin = begin or executed(sys.executable, "-m", "enforcer")
        self._sandboxes: dict[str, Pod] = {}
        self._workers: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._lock = threading.Lock()

    @property
    def capacity(self) -> dict[str, str]:
        memory = sum(numa_node.memory for numa_node in self.machine.numa_nodes)
        return {"cpu": str(len(self.machine.cpus)), "memory": str(memory), "pods": "250"}

    @property
    def allocatable(self) -> dict[str, str]:
        """Less than the capacity, as kubelets are mostly configured (`kubeReserved`, `systemReserved`)."""
        cpu, memory = int(self.capacity["cpu"]), int(self.capacity["memory"])
        return {**self.capacity, "cpu": f"{1000 * cpu - KEPT_MILLI}m", "memory": str(memory - KEPT_MEMORY)}

    def start(self, extenders: Sequence[str], token: Path | None = None) -> None:
        """extenders: HOST:PORT of their gRPC ports. token: proves to them which node this is. Must be called on the
        main thread.
        """
        self.runtime.start()
        options = ["--extender", ",".join(extenders)] if extenders else []
        if token is not None:
            options += ["--extender-token", str(token)]
        arguments = [
            "run", "--node-name", self.name, "--run-dir", str(self.folder / "run"),
            "--nri-socket", str(self.folder / "nri.sock"), "--sysfs", str(self.sysfs),
            "--metrics-listen", "", "--observe", "off", "--podresources-socket", "off", *options,
        ]  # fmt: skip
        self.enforcer = Process("enforcer", self._begin, arguments, self.folder)
        self.enforcer.start()

    def wait(self) -> None:
        """Until the enforcer is the runtime's plugin. NotUp."""
        assert self.enforcer is not None
        self.enforcer.until(lambda: self.runtime.plugins.wait(1, 0.05))

    def stop(self) -> None:
        if self.enforcer is not None:
            self.enforcer.kill()
        self.runtime.stop()

    def run(self, pod: dict[str, Any]) -> None:
        """What a kubelet does with a pod that was bound to its node. Its init containers have ended at once."""
        meta = pod["metadata"]
        with self._worker(meta["uid"]):
            if meta["uid"] in self._sandboxes:
                return
            sandbox = self._sandboxes[meta["uid"]] = self.runtime.run_pod(
                meta["name"], meta["namespace"], meta["uid"], meta.get("annotations"), meta.get("labels"),
                **of_sandbox(pod["spec"]),
            )  # fmt: skip
            time.sleep(SANDBOX_S)
            for container in pod["spec"]["containers"]:
                self.runtime.run_container(sandbox, container["name"], **of_container(pod["spec"], container))

    def restart_containers(self, uid: str) -> None:
        """As a kubelet does after they have crashed."""
        for container in self._containers(uid):
            self.runtime.remove_container(container)
            cpu, memory = container.resources.cpu, container.resources.memory
            limit = cpu.quota.value / cpu.period.value if cpu.quota.value > 0 else 0.0
            self.runtime.run_container(
                container.pod, container.name, cpu_request=cpu.shares.value / 1024, cpu_limit=limit,
                memory_limit=memory.limit.value,
            )  # fmt: skip

    def end(self, uid: str) -> None:
        """Stops and removes a pod's containers and its sandbox, if there is one."""
        with self._worker(uid):
            sandbox = self._sandboxes.pop(uid, None)
            if sandbox is not None:
                self.runtime.remove_pod(sandbox)

    def _worker(self, uid: str) -> threading.Lock:
        """A kubelet does one thing with a pod after the other."""
        with self._lock:
            return self._workers[uid]

    def where(self, uid: str) -> NumaSet:
        """The NUMA nodes on which a pod's containers may run, by the runtime's records."""
        numa_nodes = NumaSet()
        for container in self._containers(uid):
            numa_nodes |= self.machine.nodes_of(CpuSet.parse(container.resources.cpu.cpus) or self.machine.cpus)
        return numa_nodes

    def _containers(self, uid: str) -> list[Container]:
        return [container for container in self.runtime.containers.values() if container.pod.uid == uid]
