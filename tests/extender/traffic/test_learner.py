"""From traffic on two nodes to the next pod's place: the real program between stand-ins of all its neighbours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.patience import until
from numakin.wire import report_pb2 as pb
from tests.extender.running import Enforcer, Extender, machine, reservation, whole_report
from tests.numakin.kubectl.asking import ask

MAIN = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
NODES = {"cart-1": "n1", "redis-1": "n2", "web-1": "n3"}
ADDRESSES = {"cart-1": "10.0.1.1", "redis-1": "10.0.2.1", "web-1": "10.0.3.1"}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as first:
        for node in ("n1", "n2", "n3"):
            first.create_node(node)
        yield first


@pytest.fixture
def extender(watching: Extender) -> Extender:
    return watching


def created(server: ApiServer, name: str) -> dict[str, Any]:
    workload = name.partition("-")[0]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{workload}-5d7", "uid": "r"}
    keys, labels = {"group.numakin.io": "auto"}, {"pod-template-hash": "5d7"}
    return server.create_pod(name, annotations=keys, containers=[MAIN], owner=owner, labels=labels)


def started(server: ApiServer, name: str) -> str:
    """A pod that runs on its node and has its address; its uid."""
    pod = created(server, name)
    server.bind(name, NODES[name])
    server.set_phase(name, "Running", podIP=ADDRESSES[name], podIPs=[{"ip": ADDRESSES[name]}])
    return str(pod["metadata"]["uid"])


def enforcers(extender: Extender, uids: dict[str, str]) -> dict[str, Enforcer]:
    """All of whose pods sit on NUMA node 1."""
    result = {}
    for name, node in NODES.items():
        result[node] = extender.enforcer(node)
        result[node].report(machine(), reservation(uids[name], "1", group=""))
    return result


def talk(enforcers: dict[str, Enforcer], uids: dict[str, str]) -> None:
    """cart asks redis much, through a Service; web asks cart a little, straight."""
    asked = pb.Flow(source=uids["cart-1"], target="10.96.0.10:6379", kind="tcp", bytes=90_000, messages=900)
    enforcers["n1"].send(traffic=pb.Traffic(seconds=10, scale=1, flows=[asked]))
    served = {"kind": "tcp", "bytes": 90_000, "messages": 900, "by_server": True}
    flows = [pb.Flow(source=f"{ADDRESSES['cart-1']}:6379", target=uids["redis-1"], **served)]
    enforcers["n2"].send(traffic=pb.Traffic(seconds=10, scale=1, flows=flows))
    received = {"kind": "tcp", "bytes": 100, "messages": 10}
    flows = [pb.Flow(source=uids["web-1"], target=f"{ADDRESSES['cart-1']}:80", **received)]
    enforcers["n3"].send(traffic=pb.Traffic(seconds=10, scale=1, flows=flows))
    flows = [pb.Flow(source=f"{ADDRESSES['web-1']}:80", target=uids["cart-1"], by_server=True, **received)]
    enforcers["n1"].send(traffic=pb.Traffic(seconds=10, scale=1, flows=flows))


def edges(extender: Extender) -> dict[tuple[str, str], float]:
    result = extender.get("/api/v1/graph")["edges"]
    return {
        (entry["source"].rpartition("/")[2], entry["target"].rpartition("/")[2]): entry["messages_per_second"]
        for entry in result
    }


def asked(pod: dict[str, Any]) -> bytes:
    return json.dumps({"Pod": pod, "NodeNames": ["n1", "n2", "n3"]}).encode()


def test_a_new_replica_goes_where_its_workloads_kin_are(extender: Extender, server: ApiServer):
    uids = {name: started(server, name) for name in NODES}
    talk(enforcers(extender, uids), uids)
    learned = until(lambda: (result := edges(extender)) and len(result) == 2 and result, "the graph is known")
    assert learned["cart", "redis"] == pytest.approx(90 * learned["web", "cart"], rel=0.1)
    scores = extender.scores(asked(created(server, "redis-2")))
    assert scores["n1"] == 10
    assert scores["n1"] > max(scores["n2"], scores["n3"])


def test_the_graph_tells_groups_with_reasons_and_where_every_byte_went(extender: Extender, server: ApiServer):
    uids = {name: started(server, name) for name in NODES}
    talk(enforcers(extender, uids), uids)
    until(lambda: len(edges(extender)) == 2, "the graph is known")
    until(lambda: sum(extender.get("/api/v1/graph")["bytes"].values()) == 180_200, "all is taken in")
    graph = extender.get("/api/v1/graph")
    workloads = {workload["workload"].rpartition("/")[2]: workload for workload in graph["workloads"]}
    assert workloads["redis"]["replicas"] == 1
    assert workloads["redis"]["group"] == workloads["cart"]["group"] == "default/auto-cart"
    assert workloads["redis"]["reason"] == "exchanges 100 % of its traffic within its namespace with cart"
    (group,) = extender.get("/api/v1/groups")["groups"]
    assert group["group"] == "default/auto-cart"
    assert [(member["pod"], member["node"]) for member in group["members"]] == [
        ("default/cart-1", "n1"), ("default/redis-1", "n2"), ("default/web-1", "n3")
    ]  # fmt: skip
    assert graph["bytes"] == {
        "told": 90_100, "claimed": 100, "outside": 0, "unresolved": 0, "externally_managed": 0, "waiting": 90_000
    }  # fmt: skip


def test_who_asks_about_a_pod_is_told_why_it_is_a_member_of_its_group(extender: Extender, server: ApiServer):
    """One that was scored, one that its enforcer alone has told of; people, and the web page's group, too."""
    uids = {name: started(server, name) for name in NODES}
    reporting = enforcers(extender, uids)
    talk(reporting, uids)
    until(lambda: len(edges(extender)) == 2, "the graph is known")
    replica, group = asked(created(server, "redis-2")), "/api/v1/group?group=default/auto-cart"
    until(lambda: extender.scores(replica) and extender.ask("GET", group)[0] == 200, "the extender to know of the pod")
    decision = pb.DecisionRecord(
        pod=uids["cart-1"], namespace="default", pod_name="cart-1", container="c", container_name="main",
        event="create", outcome=pb.UNPROMISED,
    )  # fmt: skip
    mine = reservation(uids["cart-1"], "1", group="")
    reporting["n1"].send(report=whole_report(2, [mine], decisions=[decision]))
    why = "member of default/auto-cart: exchanges 100 % of its traffic within its namespace with "
    for pod, kin in (("redis-2", "cart"), ("cart-1", "redis, web")):
        path = f"/api/v1/explain?namespace=default&pod={pod}"
        answer = partial(extender.ask, "GET", path)
        until(lambda answer=answer, kin=kin: answer()[1].get("membership") == why + kin, f"{pod} is told of")
        told = ask("explain", pod, "-n", "default", f"--extender=http://{extender.web_address}")
        assert why + kin in " ".join(told.out.split())
    story = extender.get(group)
    assert {"workload": "default/Deployment/redis", "reason": (why + "cart").partition(": ")[2]} in story["reasons"]


def test_the_first_replacement_of_what_was_scaled_to_nothing_lands_with_its_kin(extender: Extender, server: ApiServer):
    uids = {name: started(server, name) for name in NODES}
    talk(enforcers(extender, uids), uids)
    until(lambda: len(edges(extender)) == 2, "the graph is known")
    server.delete("v1", "pods", "redis-1", namespace="default", grace_s=0)
    until(lambda: replicas(extender)["redis"] == 0, "it is gone")
    kept = {workload["workload"]: workload["reservations"] for workload in extender.get("/api/v1/plans")["workloads"]}
    assert kept["default/Deployment/redis"] == [{"node": "n1", "numa_node": 1, "replicas": 1}]
    assert extender.scores(asked(created(server, "redis-2")))["n1"] == 10


def replicas(extender: Extender) -> dict[str, int]:
    result = extender.get("/api/v1/graph")["workloads"]
    return {entry["workload"].rpartition("/")[2]: entry["replicas"] for entry in result}


def test_unreadable_traffic_ends_the_stream_with_its_reason(extender: Extender):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    enforcer.send(traffic=pb.Traffic(flows=[pb.Flow(source="x" * 600, target="y", kind="tcp")]))
    assert "Flow.source has 600 characters; the bound is 512" in enforcer.failure().details()
