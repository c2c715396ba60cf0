"""Pods that a real kubelet runs on this machine: their manifests, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.cluster.workloads import Deployment, member
from tests.e2e.lab import image, kernel
from tests.e2e.lab.runtime import RealRuntime

MIRROR = "kubernetes.io/config.mirror"
"""A static pod's uid at the runtime, on its mirror pod."""


@dataclass(frozen=True, slots=True)
class Pods:
    """Those of one runtime."""

    runtime: RealRuntime

    def id(self, pod: dict[str, Any], name: str = "main") -> str:
        """Of a pod's container at the runtime; empty when there is none."""
        for container in self.runtime.kubelet.containers():
            labels = container.labels
            uid = pod["metadata"].get("annotations", {}).get(MIRROR, pod["metadata"]["uid"])
            if (labels["io.kubernetes.pod.uid"], labels["io.kubernetes.container.name"]) == (uid, name):
                return container.id
        return ""

    def pid(self, pod: dict[str, Any], name: str = "main") -> int:
        """The first process of a pod's container; 0 when it does not run."""
        container = self.id(pod, name)
        return self.runtime.kubelet.pid(container) if container else 0

    def cpus(self, pod: dict[str, Any], name: str = "main") -> str:
        """Where it may run, by the kernel's word for its process and by its cgroup's."""
        pid = self.pid(pod, name)
        assert kernel.allowed(pid) == kernel.cpuset(pid)
        return str(kernel.allowed(pid).cpus)

    def settled_cpus(self, pod: dict[str, Any], name: str = "main") -> str:
        """As `cpus`; empty while the two differ, as on the way from one to the other."""
        pid = self.pid(pod, name)
        allowed = kernel.allowed(pid)
        return str(allowed.cpus) if allowed == kernel.cpuset(pid) else ""


def pod_spec(**more: Any) -> dict[str, Any]:
    """Without a pod network: in the node's, and although the kubelet says that the node has none."""
    return {
        "hostNetwork": True,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container("main")],
        **more,
    }


def container(name: str, *command: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": "50m", "memory": "16Mi"}}
    return program(name, *command) | {"resources": resources}


def program(name: str, *command: str) -> dict[str, Any]:
    """A container without requests."""
    run = ["/bin/busybox", *(command or ("sleep", "2147483647"))]
    return {"name": name, "image": image.NAME, "imagePullPolicy": "Never", "command": run}


def runnable(name: str, replicas: int) -> Deployment:
    """A group of its own."""
    deployment = member(name, replicas)
    deployment["spec"]["template"]["spec"] = pod_spec()
    return deployment
