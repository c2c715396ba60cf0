"""The enforcer's image as it was built, on a real node: the DaemonSet of the manifests, kubelet, containerd, NRI, cgroup."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from cluster.binaries import Binaries
from cluster.cluster import Cluster
from process.ports import free_port
from tests.cluster.workloads import Namespace, member
from tests.e2e.conftest import absent, for_real_node, have_containerd
from tests.e2e.lab import image, kernel, place
from tests.e2e.lab.containerd import PATIENT, RealContainerd
from tests.e2e.lab.kubelet import RealKubelet, has_address
from tests.e2e.lab.split_machine import SplitMachine
from tests.manifests.capabilities import NUMBERS, bounding
from tests.manifests.rendered import files, one
from tests.setup import built_images

pytestmark = [pytest.mark.runtime, pytest.mark.timeout(1800)]

NODE = "real"
IMAGE = "localhost/numakin-enforcer:test"


@pytest.fixture(scope="module")
def cluster(kubernetes: Binaries) -> Iterator[Cluster]:
    yield from for_real_node(kubernetes, NODE)


@dataclass(frozen=True, slots=True)
class Node:
    runtime: RealContainerd
    enforcer: dict[str, Any]

    def pid(self, pod: dict[str, Any]) -> int:
        """The first process of a pod's container."""
        (container,) = [
            each
            for each in self.runtime.kubelet.containers()
            if each.labels["io.kubernetes.pod.uid"] == pod["metadata"]["uid"]
        ]
        return self.runtime.kubelet.pid(container.id)


@pytest.fixture(scope="module")
def node(cluster: Cluster, kubernetes: Binaries, machine: SplitMachine) -> Iterator[Node]:
    """With the enforcer's pod ready."""
    have_containerd("trixie")
    if reason := place.lacking(built_images.TOOLS):
        absent(f"building images {reason}")
    if not has_address():
        absent("a real kubelet needs an address besides loopback's")
    with ExitStack() as stack:
        # containerd 2 no longer speaks the CRI of old kubelets.
        runtime = RealContainerd("trixie", registration_timeout=PATIENT, request_timeout=PATIENT)
        stack.callback(runtime.destroy)
        runtime.start()
        runtime.load(shutil.copy(built_images.images()["enforcer"].archive, runtime.folder), IMAGE)
        shutil.copytree(machine.sysfs, runtime.folder / "sysfs")
        kubelet = RealKubelet(cluster, kubernetes, runtime, NODE)
        stack.callback(kubelet.stop)
        kubelet.start()
        cluster.apply([on_node(runtime, cluster.extenders[0].grpc)])
        stack.callback(cluster.kubectl, "-n", "numakin", "delete", "daemonset/numakin-enforcer", "--wait")
        try:
            cluster.until(lambda: bool(ready(cluster)), "the enforcer's pod to be ready")
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{cluster.kubectl('-n', 'numakin', 'describe', 'pods')}") from None
        (pod,) = ready(cluster)
        yield Node(runtime, pod)


def ready(cluster: Cluster) -> list[dict[str, Any]]:
    """The enforcers' pods that are."""
    wanted = ("Ready", "True")
    return [
        pod
        for pod in cluster.pods("numakin")
        if wanted in {(each["type"], each["status"]) for each in pod["status"].get("conditions", ())}
    ]


def on_node(runtime: RealContainerd, extender: str) -> dict[str, Any]:
    """The DaemonSet of the base with this node's folders. No pod has a network here, and the extender is beside the cluster,
    without TLS. Nobody gets a capability that this machine has taken from all its processes.
    """
    daemonset = copy.deepcopy(one(files(), "DaemonSet", "numakin-enforcer"))
    spec = daemonset["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    powers = container["securityContext"]["capabilities"]
    powers["add"] = [name for name in powers["add"] if bounding() >> NUMBERS[name] & 1]
    port = free_port()
    spec["hostNetwork"] = True
    container |= {"image": IMAGE, "imagePullPolicy": "Never"}
    container["ports"] = [{"name": "metrics", "containerPort": port, "hostPort": port}]
    left_out = ("--extender", "--metrics-listen")
    kept = [argument for argument in container["args"] if not argument.startswith(left_out)]
    container["args"] = [*kept, f"--extender={extender}", f"--metrics-listen=0.0.0.0:{port}", "--sysfs=/sysfs"]
    container["volumeMounts"].append({"name": "sysfs", "mountPath": "/sysfs", "readOnly": True})
    folders = {
        "nri": runtime.folder,
        "run": runtime.folder / "enforcer",
        "pod-resources": runtime.folder / "kubelet/pod-resources",
    }
    for volume in spec["volumes"]:
        if volume["name"] in folders:
            volume["hostPath"]["path"] = str(folders[volume["name"]])
    spec["volumes"].append({"name": "sysfs", "hostPath": {"path": str(runtime.folder / "sysfs")}})
    return daemonset


@pytest.fixture
def namespace(cluster: Cluster, node: Node) -> Iterator[Namespace]:
    made = Namespace(cluster, "shop")
    made.make()
    yield made
    made.delete()


def test_the_daemonset_s_pod_runs_from_the_image_and_reports(cluster: Cluster, node: Node) -> None:
    assert node.enforcer["spec"]["containers"][0]["image"] == IMAGE
    assert cluster.extenders[0].live() == 1


def test_it_pins_members_to_the_half_that_it_reports(node: Node, namespace: Namespace, machine: SplitMachine) -> None:
    deployment = member("cart", 2)
    deployment["spec"]["template"]["spec"] = {
        "hostNetwork": True,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "tolerations": [{"operator": "Exists"}],
        "containers": [
            {
                "name": "main",
                "image": image.NAME,
                "imagePullPolicy": "Never",
                "command": ["/bin/busybox", "sleep", "2147483647"],
                "resources": {"requests": {"cpu": "50m", "memory": "16Mi"}},
            }
        ],
    }
    namespace.deploy(deployment)
    namespace.until_running(2)
    cpus = set()
    for pod in namespace.pods():
        pid = node.pid(pod)
        assert namespace.reported_cpus(pod["metadata"]["name"]) == [str(kernel.allowed(pid).cpus)]
        cpus.add(str(kernel.cpuset(pid).cpus))
    assert len(cpus) == 1
    assert cpus < {*machine.halves}
