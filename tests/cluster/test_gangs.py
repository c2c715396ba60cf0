"""A gang that kube-scheduler tries again and again and never binds, beside a group that fits."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from extender.state.told_groups import COSCHEDULING
from lab.cluster.binaries import Binaries
from lab.cluster.cluster import Cluster, Terms
from tests.cluster.conftest import ANY_ANSWER, made, up
from tests.cluster.workloads import Deployment, Namespace, member

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
    terms = Terms(machines, http_timeout=ANY_ANSWER, other_extenders=(refusing.configured,))
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
    pods = [pod for pod in namespace.bound() if pod["metadata"]["labels"]["app"] == "next"]
    homes = {
        (node, str(three_nodes.nodes[node].where(pod["metadata"]["uid"])))
        for pod in pods
        for node in [pod["spec"]["nodeName"]]
    }
    assert len(homes) == 1
    assert len(pods) == WANTED
    assert three_nodes.extenders[0].metric("numakin_extender_assumed_pods") <= WANTED
