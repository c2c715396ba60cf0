"""The manifests' extender and enforcer, for the kubelet of a machine of the lab.

What such a machine lacks is put in place of what the manifests expect of a cluster: pods live in the node's network, so
ports are free ones; no name server and no kube-proxy, so names come from a hosts file and the API server by its address.
Nothing is loosened: users, capabilities, profiles, tokens, certificates and probes are the manifests'.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from numakin.process.ports import free_port
from tests.e2e.lab.runtime import CAP_SYS_RESOURCE, RealRuntime, has_capability
from tests.e2e.lab.split_machine import SplitMachine

LOOPBACK = "127.0.0.1"
REPLICAS = "numakin-extender-replicas.numakin.svc"

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ports:
    """By the numbers that the manifests have: of the extender kube-scheduler's, gRPC, health and people's, and metrics
    of the enforcer.
    """

    of: Mapping[int, int] = field(
        default_factory=lambda: {port: free_port() for port in (8080, 8081, 8082, 8083, 16862)}
    )

    @property
    def http(self) -> str:
        return f"{LOOPBACK}:{self.of[8080]}"

    @property
    def web(self) -> str:
        return f"{LOOPBACK}:{self.of[8083]}"

    @property
    def grpc(self) -> str:
        return f"{LOOPBACK}:{self.of[8081]}"

    def moved(self, argument: str) -> str:
        """An argument with one of them at its end."""
        head, colon, port = argument.rpartition(":")
        if not colon or not port.isdigit():
            return argument
        return f"{head.replace('0.0.0.0', LOOPBACK)}:{self.of[int(port)]}"


def extender(deployment: Object, ports: Ports, server: str) -> Object:
    """server: the API server's URL."""
    made = _on_node(deployment, ports)
    made["spec"]["replicas"] = 1
    (container,) = made["spec"]["template"]["spec"]["containers"]
    api = urlsplit(server)
    container["env"] = [
        {"name": "KUBERNETES_SERVICE_HOST", "value": str(api.hostname)},
        {"name": "KUBERNETES_SERVICE_PORT", "value": str(api.port)},
    ]
    return made


def enforcer(daemon_set: Object, ports: Ports, runtime: RealRuntime, machine: SplitMachine) -> Object:
    made = _on_node(daemon_set, ports)
    spec = made["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    spec["hostAliases"] = [{"ip": LOOPBACK, "hostnames": [REPLICAS]}]
    places = {"nri": runtime.folder, "run": runtime.folder / "numakin", "pod-resources": runtime.pod_resources}
    for volume in spec["volumes"]:
        if volume["name"] in places:
            volume["hostPath"]["path"] = str(places[volume["name"]])
    sysfs = str(shutil.copytree(machine.sysfs, runtime.folder / "sysfs"))  # where the runtime sees it
    spec["volumes"].append({"name": "sysfs", "hostPath": {"path": sysfs}})
    container["volumeMounts"].append({"name": "sysfs", "mountPath": "/split", "readOnly": True})
    container["args"].append("--sysfs=/split")
    if not has_capability(CAP_SYS_RESOURCE):
        container["securityContext"]["capabilities"]["add"].remove("SYS_RESOURCE")
    return made


def _on_node(workload: Object, ports: Ports) -> Object:
    made = copy.deepcopy(workload)
    spec = made["spec"]["template"]["spec"]
    # The kubelet says that a node without a pod network is not ready.
    spec |= {"hostNetwork": True, "tolerations": [{"operator": "Exists"}]}
    (container,) = spec["containers"]
    container["image"] = f"localhost/{container['image'].partition(':')[0]}:test"
    container["imagePullPolicy"] = "Never"
    container["args"] = [ports.moved(argument) for argument in container["args"]]
    for port in container["ports"]:
        port["containerPort"] = ports.of[port["containerPort"]]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        if probe in container:
            container[probe]["httpGet"]["host"] = LOOPBACK
    return made
