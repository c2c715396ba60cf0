"""Gangs on a real kube-scheduler: those that it tries again and again and never binds, beside a group that fits; and,
where it has PodGroups (KUBERNETES_BIN of 1.36), those that it tries in one cycle.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from extender.state.told_groups import COSCHEDULING
from lab.cluster.binaries import Binaries
from lab.cluster.cluster import Cluster, Terms
from lab.cluster.release import SCHEDULING_GROUPS, Release
from tests.cluster.conftest import made, up
from tests.cluster.workloads import Deployment, Namespace, homes, member

pytestmark = pytest.mark.thorough

MACHINE = "epyc-7763-nps2"
"""Four NUMA nodes of 64 CPUs."""

REFUSED = "example.com/refused"
"""Pods that ask for this resource are bound by an extender that never does."""

WANTED = 6


class Refusing:
    """An extender with a bind verb, which says no. calls: how often it was asked."""

    def __init__(self) -> None:
        self.calls = 0
        refusing = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                refusing.calls += 1
                body = json.dumps({"Error": "not all of the gang has a node"}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def configured(self) -> dict[str, object]:
        """Its entry in a KubeSchedulerConfiguration."""
        return {
            "urlPrefix": f"http://127.0.0.1:{self.server.server_address[1]}",
            "bindVerb": "bind",
            "nodeCacheCapable": True,
            "managedResources": [{"name": REFUSED, "ignoredByScheduler": True}],
        }


@pytest.fixture(scope="module")
def refusing() -> Iterator[Refusing]:
    refusing = Refusing()
    yield refusing
    refusing.server.shutdown()
    refusing.server.server_close()


@pytest.fixture(scope="module")
def three_nodes(kubernetes: Binaries, refusing: Refusing, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    machines = {f"node-{number}": MACHINE for number in range(3)}
    terms = Terms(machines, other_extenders=(refusing.configured,))
    with up(kubernetes, terms, request) as cluster:
        yield cluster


@pytest.fixture
def namespace(three_nodes: Cluster) -> Iterator[Namespace]:
    yield from made(three_nodes)


def gang(replicas: int, cpu: str) -> Deployment:
    """Of coscheduling, by its label."""
    deployment = member("gang", replicas, cpu=cpu)
    template = deployment["spec"]["template"]
    template["metadata"]["labels"][COSCHEDULING] = "gang"
    resources = template["spec"]["containers"][0]["resources"]
    resources["requests"][REFUSED], resources["limits"] = "1", {REFUSED: "1"}
    return deployment


def test_a_gang_that_is_never_bound_leaves_the_cluster_to_a_group_that_fits(
    namespace: Namespace, three_nodes: Cluster, refusing: Refusing
):
    """Were its room held, all NUMA nodes would be full: 24 pods of 32 CPUs."""
    namespace.deploy(gang(24, "32"))
    three_nodes.until(lambda: refusing.calls >= 48, "each pod of the gang to be tried twice")
    namespace.deploy(member("next", WANTED, cpu="8"))
    namespace.until_running(WANTED)
    assert [len(pods) for pods in homes(namespace, "next").values()] == [WANTED]
    assert three_nodes.extenders[0].metric("numakin_extender_assumed_pods") <= WANTED


RACK = "example.com/rack"
RACKS = {"node-0": "a", "node-1": "a", "node-2": "b", "node-3": "b"}


class PodGroups:
    """Of one namespace."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self._path = f"/apis/{SCHEDULING_GROUPS}/namespaces/{namespace.name}/podgroups"

    def deploy(self, name: str, replicas: int, cpu: str, **constraints: Any) -> None:
        """Pods that are bound together or not at all, as a group of numakin's, too."""
        spec = {"schedulingPolicy": {"gang": {"minCount": replicas}}, **constraints}
        self.namespace.cluster.plane.api.request("POST", self._path, None, {"metadata": {"name": name}, "spec": spec})
        self.namespace.deploy(member(name, replicas, cpu=cpu, schedulingGroup={"podGroupName": name}))

    def scheduled(self, name: str) -> Mapping[str, Any]:
        """The condition that says whether it was; empty before the first try."""
        group = self.namespace.cluster.plane.api.get(f"{self._path}/{name}").json()
        conditions = group.get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == "PodGroupScheduled"), {})


@pytest.fixture(scope="module")
def two_racks(kubernetes: Binaries, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if not Release(kubernetes.minor).has_scheduling_groups:
        pytest.skip("PodGroups as they are tested here are Kubernetes 1.36's: KUBERNETES_BIN names a folder with it")
    terms = Terms(
        dict.fromkeys(RACKS, MACHINE),
        labels={node: {RACK: rack} for node, rack in RACKS.items()},
        scheduling_groups=True,
    )
    with up(kubernetes, terms, request) as cluster:
        yield cluster


@pytest.fixture
def pod_groups(two_racks: Cluster) -> Iterator[PodGroups]:
    for namespace in made(two_racks):
        yield PodGroups(namespace)


def tried(cluster: Cluster) -> float:
    """Pods whose room counts for their own gang alone."""
    return cluster.extenders[0].metric("numakin_extender_tried_pods")


def test_each_of_several_gangs_that_come_mixed_is_on_one_numa_node(pod_groups: PodGroups):
    for name in ("red", "green", "blue"):
        pod_groups.deploy(name, 16, "2")
    pod_groups.namespace.until_running(48)
    found = [homes(pod_groups.namespace, name) for name in ("red", "green", "blue")]
    assert [[len(pods) for pods in where.values()] for where in found] == [[16], [16], [16]]


def test_a_pod_group_that_fits_nowhere_leaves_the_cluster_to_a_group_that_fits(pod_groups: PodGroups):
    """33 pods of 32 CPUs, where 32 fit."""
    pod_groups.deploy("large", 33, "32")
    cluster = pod_groups.namespace.cluster
    cluster.until(lambda: pod_groups.scheduled("large").get("status") == "False", "the gang to be given up")
    pod_groups.namespace.deploy(member("next", WANTED, cpu="8"))
    pod_groups.namespace.until_running(WANTED)
    assert [len(pods) for pods in homes(pod_groups.namespace, "next").values()] == [WANTED]
    assert not homes(pod_groups.namespace, "large")


def test_a_gang_that_has_to_be_in_one_rack_is_on_one_numa_node_there_and_leaves_no_room_held_elsewhere(
    pod_groups: PodGroups,
):
    pod_groups.deploy("racked", 16, "2", schedulingConstraints={"topology": [{"key": RACK}]})
    pod_groups.namespace.until_running(16)
    assert [len(pods) for pods in homes(pod_groups.namespace, "racked").values()] == [16]
    cluster = pod_groups.namespace.cluster
    cluster.until(lambda: tried(cluster) == 0, "what was offered in the other rack to be given back")
