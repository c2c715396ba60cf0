"""numakin as its manifests install it: from the images, as pods of a real kubelet, secured, under a real scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from extender.kube.readers import TOKEN_HEADER
from lab.cluster.binaries import Binaries
from lab.cluster.cluster import NAMESPACE, Cluster
from tests.cluster.conftest import ANY_ANSWER
from tests.cluster.secured import Secured
from tests.cluster.workloads import Namespace
from tests.e2e.conftest import absent, for_real_node
from tests.e2e.lab import installed, place
from tests.e2e.lab.inside import inside
from tests.e2e.lab.kubelet import RealKubelet
from tests.e2e.lab.pods import Pods, runnable
from tests.e2e.lab.runtime import PATIENT
from tests.e2e.lab.runtimes import Installation
from tests.e2e.lab.split_machine import SplitMachine
from tests.manifests.rendered import BEFORE_1_30, one, rendered
from tests.tools.setup import built_images

pytestmark = [pytest.mark.thorough, pytest.mark.runtime, pytest.mark.timeout(3600)]
"""Waits for the images where they are still being built."""

NODE = "installed"
WORKLOADS = ("deployment/numakin-extender", "daemonset/numakin-enforcer")

_numbers = count()


@dataclass(frozen=True, slots=True)
class Installed:
    """numakin on one node, and who may ask it what."""

    cluster: Cluster
    pods: Pods
    extender: Secured

    def enforcers(self) -> list[dict[str, Any]]:
        """Their pods: one, but for the moment in which another takes its place."""
        return self.cluster.pods(NAMESPACE, "app.kubernetes.io/name=numakin-enforcer")

    def enforcer(self, *arguments: str) -> tuple[int, str]:
        """Exit status and output of `numakin-enforcer ARGUMENTS`, run in the enforcer's pod."""
        (pod,) = self.enforcers()
        done = inside(self.pods.pid(pod, "enforcer"), "numakin-enforcer", *arguments)
        return done.returncode, done.stdout + done.stderr

    def read(self, path: str) -> Any:
        """As the ServiceAccount for viewers may."""
        token = self.cluster.token(NAMESPACE, "numakin-viewer")
        status, answer = self.extender.ask("GET", path, **{TOKEN_HEADER: token})
        assert status == 200, answer
        return answer

    def reported(self) -> bool:
        """Whether the extender knows the node from its enforcer."""
        return [node["node"] for node in self.read("/api/v1/nodes")["nodes"] if node["live"]] == [NODE]

    def until_ready(self) -> None:
        for workload in WORKLOADS:
            self.cluster.kubectl("-n", NAMESPACE, "rollout", "status", workload, "--timeout=600s")
        self.cluster.until(self.reported, "the enforcer to report to the extender")

    def restarts(self) -> list[int]:
        return [
            status["restartCount"]
            for pod in self.cluster.pods(NAMESPACE)
            for status in pod["status"].get("containerStatuses", ())
        ]


@pytest.fixture(scope="module")
def cluster(kubernetes: Binaries, for_kubelet: Installation) -> Iterator[Cluster]:
    """One of its own for each runtime."""
    del for_kubelet
    yield from for_real_node(kubernetes, NODE, extenders=0)


@pytest.fixture(scope="module")
def numakin(
    cluster: Cluster,
    kubernetes: Binaries,
    for_kubelet: Installation,
    machine: SplitMachine,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installed]:
    if reason := place.lacking(built_images.TOOLS):
        absent(f"building images {reason}")
    ports = installed.Ports()
    manifests = rendered("base" if kubernetes.minor >= 30 else BEFORE_1_30)
    with ExitStack() as stack:
        runtime = for_kubelet.runtime(registration_timeout=PATIENT, request_timeout=PATIENT)
        stack.callback(runtime.destroy)
        runtime.start()
        for image in built_images.images().values():
            runtime.import_image(image.archive, f"localhost/numakin-{image.name}:test")
        kubelet = RealKubelet(cluster, kubernetes, runtime, NODE)
        stack.callback(kubelet.stop)
        kubelet.start()
        deployment = one(manifests, "Deployment", "numakin-extender")
        daemon_set = one(manifests, "DaemonSet", "numakin-enforcer")
        cluster.apply(
            [
                installed.extender(deployment, ports, cluster.plane.server),
                installed.enforcer(daemon_set, ports, runtime, machine),
            ]
        )
        secured = Secured(cluster, ports.http, ports.grpc, ports.web, tmp_path_factory.mktemp("scheduler"))
        made = Installed(cluster, Pods(runtime), secured)
        made.until_ready()
        cluster.plane.scheduler.end()
        cluster.plane.start_scheduler(ports.http, http_timeout=ANY_ANSWER, certificates=secured.copy_scheduler_files())
        yield made


@pytest.fixture
def namespace(cluster: Cluster, numakin: Installed) -> Namespace:
    """Its pods stay: a kubelet takes half a minute to end them, and the groups of each test are its own."""
    made = Namespace(cluster, f"shop-{next(_numbers)}")
    made.make()
    return made


def test_both_become_ready_and_nothing_is_started_twice(numakin: Installed):
    assert numakin.restarts() == [0, 0]


def test_the_enforcer_lacks_nothing_that_its_manifest_could_give(numakin: Installed):
    status, report = numakin.enforcer("doctor", "--nri-socket=/var/run/nri/nri.sock", "--run-dir=/run/numakin")
    assert (status, "BPF programs: built ahead" in report) == (0, True), report


def test_pods_are_placed_by_the_extender_and_the_answer_to_why_is_there(
    numakin: Installed, namespace: Namespace, machine: SplitMachine
):
    """Which half, the machine's own load has a say in."""
    namespace.deploy(runnable("cart", 2), runnable("bank", 2))
    namespace.until_running(4)
    cpus: dict[str, set[str]] = {"cart": set(), "bank": set()}
    for pod in namespace.pods():
        name = pod["metadata"]["name"]
        here = numakin.pods.cpus(pod)
        path = f"/api/v1/explain?namespace={namespace.name}&pod={name}"
        numakin.cluster.until(lambda path=path: numakin.read(path)["happened"], f"the enforcer to tell of {name}")
        assert [row["cpus"] for row in numakin.read(path)["happened"] if row["container"]] == [here]
        cpus[pod["metadata"]["labels"]["app"]].add(here)
    assert [len(each) for each in cpus.values()] == [1, 1]
    assert set().union(*cpus.values()) <= set(machine.halves)


def test_another_enforcer_takes_over_what_runs(cluster: Cluster, numakin: Installed, namespace: Namespace):
    namespace.deploy(runnable("cart", 2))
    namespace.until_running(2)
    before = {numakin.pods.pid(pod): numakin.pods.cpus(pod) for pod in namespace.pods()}
    (old,) = (pod["metadata"] for pod in numakin.enforcers())
    cluster.kubectl("-n", NAMESPACE, "delete", "pod", old["name"])
    cluster.until(
        lambda: [pod["metadata"]["uid"] != old["uid"] for pod in numakin.enforcers()] == [True],
        "another enforcer's pod",
    )
    numakin.until_ready()
    assert {numakin.pods.pid(pod): numakin.pods.cpus(pod) for pod in namespace.pods()} == before
    cluster.kubectl("-n", namespace.name, "scale", "deployment/cart", "--replicas=3")
    namespace.until_running(3)
    assert {numakin.pods.cpus(pod) for pod in namespace.pods()} == set(before.values())


def test_release_gives_pods_back_what_they_had(
    cluster: Cluster, numakin: Installed, namespace: Namespace, machine: SplitMachine
):
    namespace.deploy(runnable("cart", 2))
    namespace.until_running(2)
    assert {numakin.pods.cpus(pod) for pod in namespace.pods()} < set(machine.halves)
    status, said = numakin.enforcer("release", "--run-dir=/run/numakin")
    assert status == 0, said
    cluster.until(
        lambda: {numakin.pods.settled_cpus(pod) for pod in namespace.pods()} == {machine.whole}, "the whole cpuset"
    )
