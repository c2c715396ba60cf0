"""What is written down about who will talk to whom places pods before their first packet: the real program between
stand-ins of the API server and of an enforcer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from extender.traffic.limits import PEERS_OF_POLICY
from lab.standins.apiserver import ApiServer
from lab.standins.patience import until
from numakin.wire import report_pb2 as pb
from tests.extender.running import Enforcer, Extender, machine, reservation, running, whole_report
from tests.manifests.rendered import files, one

AUTO = {"group.numakin.io": "auto"}
SECRET = "hunter2-is-a-valid-name"
NAMES = {
    "web": {"CART_SERVICE_ADDR": "cart:7070", "PASSWORD": SECRET},
    "cart": {"REDIS_ADDR": "redis.default.svc.cluster.local:6379"},
    "redis": {},
    "mail": {"QUEUE": "broker:5672"},
    "broker": {},
}
"""The environment by Deployment. Two applications: web, cart and redis; mail and broker."""

TEAM_OF = {"web": "front", "cart": "front", "redis": "stores", "mail": "post", "broker": "post"}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as one_server:
        one_server.define(one(files(), "CustomResourceDefinition", "affinitygroups.numakin.io"))
        one_server.create_node("n1")
        for name in NAMES:
            body = {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}}
            one_server.create("v1", "services", body, "default")
        yield one_server


@pytest.fixture
def extender(server: ApiServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Extender]:
    """Started with the options that the test asks for."""
    kubeconfig = str(server.kubeconfig(tmp_path / "kubeconfig"))
    with running(tmp_path, "--kube", "--kubeconfig", kubeconfig, "--namespace", "default", *request.param) as program:
        server.wait_for("watches", 1, resource="pods")
        yield program


def created(server: ApiServer, workload: str, replica: int = 0, **annotations: str) -> dict[str, Any]:
    environment = [{"name": name, "value": value} for name, value in NAMES[workload].items()]
    resources = {"requests": {"cpu": "2", "memory": "1Gi"}}
    return server.create_pod(
        f"{workload}-5d7-{replica}",
        annotations=annotations or AUTO,
        labels={"app": workload, "pod-template-hash": "5d7", "example.com/team": TEAM_OF[workload]},
        containers=[{"name": "main", "image": "x", "resources": resources, "env": environment}],
        owner={"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{workload}-5d7", "uid": "r"},
    )


def policy(workload: str, clients: Iterable[str]) -> dict[str, Any]:
    """The NetworkPolicy by which these may talk to the workload, and nobody else."""
    peers = [{"podSelector": {"matchLabels": {"app": client}}} for client in clients]
    selector = {"matchLabels": {"app": workload}}
    return {"metadata": {"name": workload}, "spec": {"podSelector": selector, "ingress": [{"from": peers}]}}


def permit(server: ApiServer) -> None:
    for workload, client in (("cart", "web"), ("redis", "cart"), ("broker", "mail")):
        server.create("networking.k8s.io/v1", "networkpolicies", policy(workload, [client]), "default")


def groups(extender: Extender) -> set[tuple[str, ...]]:
    """The workloads of each group, by name."""
    result = extender.get("/api/v1/graph")["groups"]
    return {tuple(workload.rpartition("/")[2] for workload in group["workloads"]) for group in result}


def nominated(message: pb.ToEnforcer, uid: str) -> str:
    """The NUMA node that a message nominates for the pod; empty when it is about something else."""
    return message.expect.numa_nodes if message.HasField("expect") and message.expect.pod == uid else ""


def placed(server: ApiServer, enforcer: Enforcer, pods: list[dict[str, Any]]) -> dict[str, str]:
    """NUMA node by Deployment, as it is sent to the enforcer when each pod is bound in turn; the enforcer does so."""
    homes: dict[str, str] = {}
    reservations = []
    for generation, pod in enumerate(pods, 2):
        server.bind(pod["metadata"]["name"], "n1")
        uid = pod["metadata"]["uid"]
        home = until(lambda uid=uid: nominated(enforcer.next(), uid), "a nomination")
        homes[pod["metadata"]["labels"]["app"]] = home
        reservations.append(reservation(uid, home, group="", milli=2000))
        enforcer.send(report=whole_report(generation, reservations))
    return homes


def together(homes: dict[str, str]) -> bool:
    """Whether each application is on one NUMA node."""
    return homes["web"] == homes["cart"] == homes["redis"] and homes["mail"] == homes["broker"]


ORDER = ["web", "cart", "redis", "mail", "broker"]
"""Such that whoever looks for the emptiest NUMA node separates them, and so does whoever fills one after the other."""


@pytest.mark.parametrize("extender", [()], indirect=True)
def test_pods_land_beside_the_services_that_they_name_before_any_packet(extender: Extender, server: ApiServer):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    pods = [created(server, name) for name in ORDER]
    until(lambda: groups(extender) == {("cart", "redis", "web"), ("broker", "mail")}, "two groups are found")
    assert together(placed(server, enforcer, pods))
    reasons = {row["workload"]: row["reason"] for row in extender.get("/api/v1/graph")["workloads"]}
    assert reasons["default/Deployment/redis"].startswith("expected to talk with cart")
    expected = {(row["source"], row["target"]) for row in extender.get("/api/v1/graph")["expected"]}
    assert expected == {
        tuple(f"default/Deployment/{name}" for name in pair)
        for pair in (("broker", "mail"), ("cart", "redis"), ("cart", "web"))
    }
    assert SECRET not in extender.log.read_text() + json.dumps(extender.get("/api/v1/graph"))


@pytest.mark.parametrize("extender", [("--application-label", "example.com/team")], indirect=True)
def test_an_operators_label_says_within_which_applications_groups_are_found(extender: Extender, server: ApiServer):
    extender.enforcer("n1").report(machine())
    for name in ORDER:
        created(server, name)
    until(lambda: groups(extender) == {("cart", "web"), ("broker", "mail")}, "two groups, without redis, are found")


@pytest.mark.parametrize("extender", [("--no-service-names", "--no-network-policies")], indirect=True)
def test_the_switches_leave_environment_services_and_policies_unread(extender: Extender, server: ApiServer):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    permit(server)
    pods = [created(server, name) for name in ORDER]
    until(lambda: len(extender.get("/api/v1/graph")["workloads"]) == len(ORDER), "the pods are known")
    assert groups(extender) == set()
    assert server.watches("services") == server.watches("networkpolicies") == 0
    assert not together(placed(server, enforcer, pods))


@pytest.mark.parametrize("extender", [("--no-service-names",)], indirect=True)
def test_pods_land_beside_those_that_network_policies_let_talk_to_them(extender: Extender, server: ApiServer):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    permit(server)
    pods = [created(server, name) for name in ORDER]
    until(lambda: groups(extender) == {("cart", "redis", "web"), ("broker", "mail")}, "two groups are found")
    assert together(placed(server, enforcer, pods))
    server.delete("networking.k8s.io/v1", "networkpolicies", "redis", "default")
    until(lambda: groups(extender) == {("cart", "web"), ("broker", "mail")}, "the policy is gone")


@pytest.mark.parametrize("extender", [("--no-service-names",)], indirect=True)
def test_policies_beyond_a_limit_are_named_in_the_log_and_counted(extender: Extender, server: ApiServer):
    extender.enforcer("n1").report(machine())
    clients = [f"client-{number}" for number in range(PEERS_OF_POLICY + 1)]
    server.create("networking.k8s.io/v1", "networkpolicies", policy("web", clients), "default")
    created(server, "web")
    gauge = 'numakin_extender_expected_left_out{limit="peers_of_policy"} 1.0'
    until(lambda: gauge in extender.get("/metrics"), "it is counted")
    assert "NetworkPolicy default/web" in extender.log.read_text()


@pytest.mark.parametrize("extender", [("--no-service-names",)], indirect=True)
def test_an_operators_edges_place_the_members_of_a_group(extender: Extender, server: ApiServer):
    """All in one group, which no NUMA node holds: the edges show where to cut it."""
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    pairs = [("web", "cart"), ("cart", "redis"), ("mail", "broker")]
    edges = [{"source": f"Deployment/{source}", "target": f"Deployment/{target}"} for source, target in pairs]
    body = {"metadata": {"name": "shop"}, "spec": {"edges": edges}}
    server.create("numakin.io/v1alpha1", "affinitygroups", body, "default")
    pods = [created(server, name, **{"group.numakin.io": "shop"}) for name in ORDER]
    until(lambda: len(extender.get("/api/v1/graph")["expected"]) == len(edges), "the edges are expected")
    assert together(placed(server, enforcer, pods))
