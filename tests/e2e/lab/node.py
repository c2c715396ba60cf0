"""This machine as a real node of a cluster: containerd, the enforcer and a kubelet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.cluster.binaries import Binaries
from lab.cluster.cluster import Cluster
from tests.e2e.lab.containerd import PATIENT, RealContainerd
from tests.e2e.lab.enforcer import RunningEnforcer
from tests.e2e.lab.kubelet import RealKubelet
from tests.e2e.lab.pods import Pods

# containerd 2 no longer speaks the CRI of old kubelets.
SUITE = "trixie"


@dataclass(frozen=True, slots=True)
class Node(Pods):
    """What runs on the node."""

    kubelet: RealKubelet
    enforcer: RunningEnforcer

    def yielded(self, pod: dict[str, Any]) -> bool:
        """Whether the enforcer has left a container of the pod to another owner."""
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        return any(record["pod"] == name for record in self.enforcer.log_records("yielded"))


@contextmanager
def running(cluster: Cluster, binaries: Binaries, name: str, sysfs: Path, folder: Path) -> Iterator[Node]:
    """The kubelet starts once the enforcer, on the machine that `sysfs` shows, reports to the extender."""
    with ExitStack() as stack:
        runtime = RealContainerd(SUITE, registration_timeout=PATIENT, request_timeout=PATIENT)
        stack.callback(runtime.destroy)
        runtime.start()
        options = ("--sysfs", str(sysfs), "--extender", cluster.extenders[0].grpc, "--node-name", name)
        enforcer = RunningEnforcer(folder, runtime.nri_socket, *options)
        stack.callback(enforcer.stop)
        enforcer.start()
        cluster.until(lambda: cluster.extenders[0].live() == 1, "the enforcer to report to the extender")
        kubelet = RealKubelet(cluster, binaries, runtime, name)
        stack.callback(kubelet.stop)
        kubelet.start()
        yield Node(runtime, kubelet, enforcer)
