"""From a binding at the API server to the nomination on its node's stream: the real program between stand-ins of both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.patience import until
from numakin.wire import report_pb2 as pb
from tests.extender.running import GIB, Enforcer, Extender, machine, reservation, running, whole_report
from tests.lab.standins.apiserver.recorded import exchanges
from tests.manifests.rendered import files, one

MAIN = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as first:
        yield first


def created(server: ApiServer, name: str, **annotations: str) -> str:
    """Creates a pod of the Deployment that its name begins with; its uid."""
    keys = {f"{key}.numakin.io": value for key, value in annotations.items()}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{name.partition('-')[0]}-5d7", "uid": "r"}
    pod = server.create_pod(name, annotations=keys, containers=[MAIN], owner=owner, labels={"pod-template-hash": "5d7"})
    return str(pod["metadata"]["uid"])


def bound(server: ApiServer, name: str, node: str, **annotations: str) -> str:
    """Creates and binds a pod; its uid."""
    uid = created(server, name, **annotations)
    server.bind(name, node)
    return uid


def test_a_binding_reaches_its_enforcer_with_the_place_and_what_nri_does_not_tell(watching, server):
    server.create_node("n1")
    enforcer = watching.enforcer("n1")
    enforcer.report(machine(), reservation("kin", "1"), generation=9)
    uid = bound(server, "web-1", "n1", group="shop", size="5")
    demand = pb.Demand(cpu_milli=500, memory=GIB)
    told = enforcer.next().expect
    told.ClearField("planned")  # where its group has room held, if that was planned before it was bound
    assert told == pb.Expect(
        pod=uid,
        namespace="default",
        name="web-1",
        numa_nodes="1",
        generation=9,
        containers=[pb.ContainerDemand(name="main", demand=demand)],
        workload="default/Deployment/web",
        room_milli=3 * 500,
        pod_demand=demand,
        host_network=False,
        replicas=[pb.ReplicaCount(workload="default/Deployment/web", bound=1)],
    )


def test_a_pod_on_its_nodes_network_is_said_to_be(watching, server):
    """Runtimes may list a network namespace for it as for any other."""
    server.create_node("n1")
    enforcer = watching.enforcer("n1")
    enforcer.report(machine())
    server.create_pod("web-1", annotations={"group.numakin.io": "shop"}, containers=[MAIN], hostNetwork=True)
    server.bind("web-1", "n1")
    assert enforcer.next().expect.host_network is True


def test_it_comes_whatever_others_of_its_group_ask_for(watching, server):
    """The API server takes any number of pods that ask for as much as a quantity can be."""
    server.create_node("n1")
    enforcer = watching.enforcer("n1")
    enforcer.report(machine())
    huge = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "9P", "memory": "7Ei"}}}
    for at in range(3):
        server.create_pod(f"huge-{at}", annotations={"group.numakin.io": "shop"}, containers=[huge])
    uid = bound(server, "web-1", "n1", group="shop")
    assert enforcer.next().expect.pod == uid
    three = [huge | {"name": f"c{at}"} for at in range(3)]
    pod = server.create_pod("own", annotations={"group.numakin.io": "shop"}, containers=three)
    server.bind("own", "n1")
    assert enforcer.next().expect.pod == pod["metadata"]["uid"]


def test_it_counts_the_replicas_that_there_are_now_of_its_own_workload_and_of_its_namespaces_members_there(
    watching, server
):
    server.create_node("n1")
    enforcer = watching.enforcer("n1")
    enforcer.report(machine(), replace(reservation("db-1", "1"), workload="default/Deployment/db"))
    for name in ("web-1", "web-2"):
        bound(server, name, "n1", group="shop")
    assert [count.bound for _ in range(2) for count in enforcer.next().expect.replicas][-2:] == [2, 0]
    server.delete("v1", "pods", "web-1", "default", grace_s=30)
    created(server, "web-3", group="shop")
    bound(server, "web-4", "n1", group="shop")
    assert [*enforcer.next().expect.replicas] == [
        pb.ReplicaCount(workload="default/Deployment/web", bound=2, unbound=1),
        pb.ReplicaCount(workload="default/Deployment/db"),
    ], "web-1 is being deleted, and of db the API server has none any more"


def test_it_says_that_none_is_left_of_a_workload_that_has_gone_from_the_node_while_others_stay(watching, server):
    server.create_node("n1")
    enforcer = watching.enforcer("n1")
    enforcer.report(machine())
    for name in ("web-1", "db-1"):
        bound(server, name, "n1", group="shop")
        enforcer.next()
    server.delete("v1", "pods", "db-1", "default")
    bound(server, "web-2", "n1", group="shop")
    assert [*enforcer.next().expect.replicas] == [
        pb.ReplicaCount(workload="default/Deployment/web", bound=2),
        pb.ReplicaCount(workload="default/Deployment/db"),
    ], "its slot is not kept for it"


def test_a_pod_that_has_not_opted_in_is_not_nominated(watching, server):
    server.create_node("n1")
    enforcer = watching.enforcer("n1")
    enforcer.report(machine())
    bound(server, "plain", "n1")
    uid = bound(server, "member", "n1", group="shop")
    assert enforcer.next().expect.pod == uid


def test_a_nomination_waits_for_an_enforcer_that_comes_later(watching, server):
    for node in ("n1", "n2"):
        server.create_node(node)
    uid = bound(server, "web-1", "n1", group="shop")
    other = watching.enforcer("n2")
    other.report(machine())
    later = bound(server, "web-2", "n2", group="shop")
    assert other.next().expect.pod == later, "so the binding before it is seen too"
    enforcer = watching.enforcer("n1")
    enforcer.report(machine())
    expect = enforcer.next().expect
    assert (expect.pod, expect.numa_nodes) == (uid, "0")


def test_a_burst_of_bindings_is_nominated_without_overcommitting(watching, server):
    server.create_node("n1")
    enforcer = watching.enforcer("n1")
    enforcer.report(machine(2, 8, 64 * GIB))
    for at in range(32):
        bound(server, f"web-{at}", "n1", group="shop")
    places = [enforcer.next().expect.numa_nodes for _ in range(32)]
    assert places.count("0") == places.count("1") == 16
    assert places[:16] == ["0"] * 16


def test_what_an_enforcer_decided_is_told_on_the_pod(watching, server):
    server.create_node("n1")
    enforcer = watching.enforcer("n1")
    enforcer.report(machine())
    until(lambda: "numakin_extender_leading 1.0" in watching.get("/metrics"), "the Lease is held")
    uid = bound(server, "web-1", "n1", group="shop", memory="lots")
    assert enforcer.next().expect.pod == uid
    record = pb.DecisionRecord(
        pod=uid, namespace="default", pod_name="web-1", container_name="main", numa_nodes="0", cpus="0-7",
        reasons=[pb.Reason(what="no kin here", effect="the emptiest that fits is NUMA node 0")], outcome=pb.KEPT,
    )  # fmt: skip
    enforcer.send(report=whole_report(2, [reservation(uid, "0")], decisions=[record]))
    server.wait_for("asked", 2, verb="create", resource="events")
    received = [
        json.loads(asked.body) for asked in server.asked if (asked.verb, asked.kind.plural) == ("create", "events")
    ]
    assert [
        (entry["involvedObject"]["uid"], entry["type"], entry["reason"], entry["message"]) for entry in received
    ] == [
        (
            uid,
            "Warning",
            "NumaAnnotationIgnored",
            "annotation memory.numakin.io: 'lots' is not allowed; allowed: auto, bind, prefer",
        ),
        (
            uid,
            "Normal",
            "NumaPlaced",
            "container main on NUMA node 0: no kin here: the emptiest that fits is NUMA node 0",
        ),
    ]
    assert 'numakin_extender_predictions_total{outcome="kept"} 1.0' in watching.get("/metrics")


def test_a_pod_that_means_numakin_and_has_not_opted_in_is_told_so(watching, server):
    until(lambda: "numakin_extender_leading 1.0" in watching.get("/metrics"), "the Lease is held")
    server.create_pod("web-1", annotations={"numakin.io/group": "shop", "cpus.numakin.io": "exclusive"})
    server.create_pod("web-2", annotations={"example.com/group": "shop"})
    server.create_pod("web-3", annotations={"cpus.numakin.io": "exclusive"})
    server.wait_for("asked", 3, verb="create", resource="events")
    sent = [json.loads(asked.body) for asked in server.asked if (asked.verb, asked.kind.plural) == ("create", "events")]
    missing = "the pod has no annotation group.numakin.io: without it none of the others counts"
    told = [(entry["involvedObject"]["name"], entry["message"].partition(";")[0]) for entry in sent]
    assert told == [
        ("web-1", "annotation numakin.io/group: 'shop' is not allowed"),
        ("web-1", missing),
        ("web-3", missing),
    ]


@pytest.fixture
def proving(server: ApiServer, tmp_path: Path) -> Iterator[Extender]:
    kubeconfig = str(server.kubeconfig(tmp_path / "kubeconfig"))
    with running(tmp_path, "--kube", "--kubeconfig", kubeconfig, "--enforcer-account", "numakin:enforcer") as first:
        yield first


def test_an_enforcer_speaks_for_the_node_that_its_token_proves_and_no_other(proving, server):
    server.create_node("n1")
    server.create_pod("enforcer-1", "numakin", serviceAccountName="enforcer", nodeName="n1")
    token = server.token_for("numakin", "enforcer", "numakin", "enforcer-1")
    own = Enforcer(proving.grpc_address, "n1", token=token)
    own.report(machine())
    other = Enforcer(proving.grpc_address, "n2", token=token).failure()
    assert (other.code(), other.details()) == (
        grpc.StatusCode.PERMISSION_DENIED,
        "the token speaks for node n1, not for n2",
    )
    own.close()


def test_an_enforcer_without_a_token_is_denied(proving):
    error = Enforcer(proving.grpc_address, "n1").failure()
    assert (error.code(), error.details()) == (grpc.StatusCode.UNAUTHENTICATED, "not a token")


def test_nodes_and_groups_are_published_for_others(watching, server):
    server.define(one(files(), "CustomResourceDefinition", "affinitygroups.numakin.io"))
    *_, topology = [asked for exchange in exchanges("05-nrt-crd") if (asked := exchange["request"])["method"] == "POST"]
    server.define(json.loads(topology["body"]))
    server.create_node("n1")
    enforcer = watching.enforcer("n1")
    uid = bound(server, "web-1", "n1", group="shop")
    enforcer.report(machine(), reservation(uid, "1"), reservation("unknown", "1"))

    def published() -> bool:
        return server.done("patch", "noderesourcetopologies") > 0 and server.done("patch", "affinitygroups") > 0

    until(published, "both are published")
    group = server.get("numakin.io/v1alpha1", "affinitygroups", "shop", "default")
    assert group["metadata"]["annotations"] == {"numakin.io/group": "shop"}
    zones = server.get("topology.node.k8s.io/v1alpha2", "noderesourcetopologies", "n1")["zones"]
    assert [zone["name"] for zone in zones] == ["node-0", "node-1"]


def test_a_refused_pod_is_woken_when_a_node_would_take_it(server: ApiServer, tmp_path: Path):
    options = ("--kube", "--kubeconfig", str(server.kubeconfig(tmp_path / "kubeconfig")), "--namespace", "default")
    with running(tmp_path, *options, "--refuse") as extender:
        until(lambda: "numakin_extender_leading 1.0" in extender.get("/metrics"), "the Lease is held")
        server.create_node("n1")
        keys = {"group.numakin.io": "shop", "policy.numakin.io": "single-numa-node"}
        large = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "6"}}}
        pod = server.create_pod("large", annotations=keys, containers=[large])
        enforcer = extender.enforcer("n1")
        low = [reservation("a", "0", milli=4000), reservation("b", "1", milli=4000)]
        enforcer.report(machine(), *low)
        body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": ["n1"]}).encode()
        assert extender.post("filter", body)["NodeNames"] == []
        enforcer.send(report=whole_report(2, low[:1]))
        server.wait_for("done", 1, verb="patch", resource="pods")
        assert "numakin-woken-at" in server.get("v1", "pods", "large", "default")["metadata"]["annotations"]
        assert extender.post("filter", body)["NodeNames"] == ["n1"]


def test_a_container_that_restarts_again_and_again_makes_one_event(watching, server):
    server.create_node("n1")
    enforcer = watching.enforcer("n1")
    enforcer.report(machine())
    until(lambda: "numakin_extender_leading 1.0" in watching.get("/metrics"), "the Lease is held")
    uid = bound(server, "web-1", "n1", group="shop")
    assert enforcer.next().expect.pod == uid
    for start in range(3):
        why = pb.Reason(what="room left", number=f"{90 - start}%", effect="CPUs there that stay free")
        record = pb.DecisionRecord(
            pod=uid, namespace="default", pod_name="web-1", container_name="main", numa_nodes="0", cpus="0-7",
            event="create", reasons=[why],
        )  # fmt: skip
        enforcer.send(report=whole_report(2 + start, [reservation(uid, "0")], decisions=[record]))
    server.wait_for("asked", 2, verb="patch", resource="events")
    assert server.count("create", "events") == 1
