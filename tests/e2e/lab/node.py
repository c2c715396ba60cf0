"""This machine as a real node of a cluster: a runtime, the enforcer and a kubelet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.cluster.binaries import Binaries
from lab.cluster.cluster import Cluster
from tests.e2e.lab.enforcer import RunningEnforcer
from tests.e2e.lab.kubelet import RealKubelet
from tests.e2e.lab.pods import Pods
from tests.e2e.lab.runtime import PATIENT
from tests.e2e.lab.runtimes import Installation


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
def running(
    cluster: Cluster, binaries: Binaries, installation: Installation, name: str, sysfs: Path, folder: Path
) -> Iterator[Node]:
    """The kubelet starts once the enforcer, on the machine that `sysfs` shows, reports to the extender."""
    with ExitStack() as stack:
        runtime = installation.runtime(registration_timeout=PATIENT, request_timeout=PATIENT)
        stack.callback(runtime.destroy)
        runtime.start()
        options = (
            "--sysfs", str(sysfs), "--extender", cluster.extenders[0].grpc, "--node-name", name,
            "--podresources-socket", str(runtime.pod_resources / "kubelet.sock"),
        )  # fmt: skip
        enforcer = RunningEnforcer(folder, runtime.nri_socket, *options)
        stack.callback(enforcer.stop)
        enforcer.start()
        cluster.until(lambda: cluster.extenders[0].live() == 1, "the enforcer to report to the extender")
        kubelet = RealKubelet(cluster, binaries, runtime, name)
        stack.callback(kubelet.stop)
        kubelet.start()
        yield Node(runtime, kubelet, enforcer)
