"""What the page asks for: bounded, and with an error in words."""

from __future__ import annotations

import gzip
import http.client
import json
from typing import Any

import pytest

from extender.views.page.rooms import MOST_ROOMS
from lab.standins.patience import PATIENCE_S, until
from numakin.placement.state.occupancy import fingerprint
from numakin.wire import bounds
from numakin.wire import report_pb2 as pb
from tests.extender.running import Extender, machine, reservation


def test_traffic_is_told_by_what_it_crosses(extender: Extender) -> None:
    enforcer = extender.enforcer("n1")
    enforcer.report(machine(), reservation("a", "0"), reservation("b", "0"), reservation("c", "1"))
    flows = [
        pb.Flow(source="a", target="b", kind="tcp", bytes=3_000_000, messages=3000),
        pb.Flow(source="c", target="a", kind="tcp", bytes=1_000_000, messages=1000),
    ]
    enforcer.send(traffic=pb.Traffic(seconds=10, scale=1, flows=flows, collector="cgroup_skb"))
    share = until(lambda: extender.get("/api/v1/overview")["share"], "it is learned")
    assert share == [0.75, 0.25, 0.0]
    lines = {tuple(line["pods"]): line["reach"] for line in extender.get("/api/v1/rooms?node=n1")["lines"]}
    assert lines == {("a", "b"): "local", ("a", "c"): "numa"}


def test_room_that_is_held_and_hot_numa_nodes_are_told(extender: Extender) -> None:
    extender.enforcer("n1").report(machine(), reservation("a", "1"), hot={"0-7": True})
    until(lambda: extender.get("/api/v1/nodes")["nodes"], "the node is known")
    pod = {
        "metadata": {"name": "b", "namespace": "default", "uid": "b", "annotations": {"group.numakin.io": "shop"}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]},
    }
    extender.post("prioritize", json.dumps({"Pod": pod, "NodeNames": ["n1"]}).encode())
    row = until(lambda: next((row for row in _rows(extender) if row["held"][0]), None), "its room is held")
    assert (row["held"], row["hot"]) == ([500, 0], [0])
    numa_nodes = extender.get("/api/v1/rooms?node=n1")["nodes"][0]["numa_nodes"]
    assert [numa_node["cpu_held"] for numa_node in numa_nodes] == [0, 500]
    (expected,) = extender.get("/api/v1/node?node=n1")["expected"]
    assert (expected["pod"], expected["numa_nodes"], expected["bound"]) == ("default/b", [1], False)
    assert [numa_node["held_cpu_milli"] for numa_node in extender.get("/api/v1/nodes")["nodes"][0]["numa_nodes"]] == [
        0,
        500,
    ]


def test_lists_are_read_page_by_page_in_the_order_of_names(extender: Extender) -> None:
    for name in ("n3", "n1", "n2"):
        extender.enforcer(name).report(machine(), reservation(f"pod-{name}", "0", group=f"default/of-{name}"))
    for path, name, names in (
        ("nodes", "node", ["n1", "n2", "n3"]),
        ("groups", "group", ["default/of-n1", "default/of-n2", "default/of-n3"]),
    ):
        first = extender.get(f"/api/v1/{path}?limit=2")
        assert ([row[name] for row in first[path]], first["continue"], first["remaining"]) == (names[:2], names[1], 1)
        second = extender.get(f"/api/v1/{path}?limit=2&continue={first['continue']}")
        assert [row[name] for row in second[path]] == names[2:]
        assert not second.keys() & {"continue", "remaining"}


@pytest.mark.parametrize("limit", ["0", "-1", "501", "x", ""])
def test_a_page_of_no_size_is_refused_in_words(extender: Extender, limit: str) -> None:
    status, answer = extender.ask("GET", f"/api/v1/groups?limit={limit}")
    assert (status, answer) == (400, {"error": f"limit must be a whole number from 1 to 500, not {limit!r}"})


def _rows(extender: Extender) -> list[dict[str, Any]]:
    return list(extender.get("/api/v1/overview")["nodes"])


def test_members_of_which_no_workload_is_known_yet_stand_by_their_own_names(extender: Extender) -> None:
    """Else all of them would be one workload without a name, which the page can't draw."""
    extender.enforcer("n1").report(machine(), reservation("a", "0"), reservation("b", "1"))
    until(lambda: extender.get("/api/v1/overview")["groups"], "the group is known")
    workloads = extender.get("/api/v1/group?group=default/shop")["workloads"]
    assert [(row["workload"], row["replicas"]) for row in workloads] == [("a", 1), ("b", 1)]


def test_a_group_is_told_with_what_its_size_allows(extender: Extender) -> None:
    members = [reservation(uid, numa_node, milli=4000) for uid, numa_node in (("a", "0"), ("b", "0"), ("c", "1"))]
    extender.enforcer("n1").report(machine(), *members, reservation("d", "1", group="default/alone"))
    groups = until(lambda: extender.get("/api/v1/overview")["groups"], "the groups are known")
    assert [(row["group"], row["together"]) for row in groups] == [
        ("default/shop", [0.3333, 0.3333]),
        ("default/alone", None),
    ]
    told = {name: extender.get(f"/api/v1/group?group=default/{name}")["compared"] for name in ("shop", "alone")}
    assert told["shop"].keys() == {"best", "lowest_first", "spread"}
    assert told["alone"] is None, "it could be no better anywhere"


def test_too_many_rooms_are_refused_by_their_number(extender: Extender) -> None:
    query = "&".join(f"node=n{number}" for number in range(MOST_ROOMS + 1))
    status, answer = extender.ask("GET", f"/api/v1/rooms?{query}")
    assert (status, answer["error"]) == (400, f"{MOST_ROOMS + 1} nodes are asked for; the bound is {MOST_ROOMS}")


def test_what_is_not_known_is_said_by_name(extender: Extender) -> None:
    answers = [extender.ask("GET", f"/api/v1/{path}") for path in ("pod?pod=p", "group?group=a/b", "node?node=n")]
    assert [status for status, _ in answers] == [404, 404, 404]
    assert [name in answer["error"] for (_, answer), name in zip(answers, ("default/p", "a/b", "n"), strict=True)]


def test_a_pod_that_nothing_has_named_is_told_of_by_its_uid(extender: Extender) -> None:
    extender.enforcer("n1").report(machine(), reservation("a-uid", "1"))
    until(lambda: extender.get("/api/v1/pods")["pods_known"] == 1, "it is seen")
    answer = extender.get("/api/v1/pod?uid=a-uid")
    assert (answer["pod"], answer["place"]) == ("a-uid", {"node": "n1", "numa_nodes": [1]})
    assert (answer["scored"], answer["happened"]) == (None, [])
    status, unknown = extender.ask("GET", "/api/v1/pod?uid=b-uid")
    assert (status, unknown["error"]) == (404, "no opted-in pod has the uid b-uid")


def test_a_uid_leads_to_all_that_is_known_once_the_pod_has_a_name(extender: Extender) -> None:
    decision = pb.DecisionRecord(pod="a-uid", namespace="shop", pod_name="cart-0", event="create", numa_nodes="1")
    extender.enforcer("n1").report(machine(), reservation("a-uid", "1"), decisions=[decision])
    by_name = until(lambda: extender.ask("GET", "/api/v1/pod?namespace=shop&pod=cart-0")[1].get("place"), "it is seen")
    answer = extender.get("/api/v1/pod?uid=a-uid")
    assert (answer["pod"], answer["place"], len(answer["happened"])) == ("shop/cart-0", by_name, 1)


def test_pods_are_found_by_words_of_their_name_group_and_node(extender: Extender) -> None:
    extender.enforcer("n1").report(machine(), reservation("a", "0"), reservation("b", "1", group="default/other"))
    extender.enforcer("n2").report(machine(), reservation("c", "0"))
    until(lambda: extender.get("/api/v1/pods")["pods_known"] == 3, "all are seen")
    for text, wanted in (("", "abc"), ("default/SHOP", "ac"), ("shop n2", "c"), ("other n2", ""), ("n1", "ab")):
        answer = extender.get(f"/api/v1/pods?text={text.replace(' ', '+')}")
        assert ([row["uid"] for row in answer["pods"]], answer["pods_known"]) == (list(wanted), len(wanted)), text


def test_nodes_that_see_no_traffic_are_counted(extender: Extender) -> None:
    for name, collector in (("n1", "none"), ("n2", "cgroup_skb"), ("n3", "off")):
        enforcer = extender.enforcer(name)
        enforcer.report(machine())
        enforcer.send(heartbeat=pb.Heartbeat(generation=1, health=pb.Health(collector=collector)))
    until(lambda: extender.get("/api/v1/overview")["unobserved"] == 2, "both are counted")


def test_a_node_that_is_not_registered_is_warned_of_with_what_to_do(extender: Extender) -> None:
    extender.enforcer("n1").report(machine())
    assert until(lambda: extender.ask("GET", "/api/v1/node?node=n1")[0] == 200, "it is seen")
    assert extender.get("/api/v1/node?node=n1")["warnings"] == []
    lost = extender.enforcer("n2")
    lost.report(machine())
    unchanged = fingerprint([], [])
    lost.send(report=pb.Report(generation=2, base_generation=1, fingerprint=unchanged, registered=False))
    (warning,) = until(lambda: extender.ask("GET", "/api/v1/node?node=n2")[1].get("warnings"), "n2 is warned of")
    assert "not registered with the container runtime" in warning["what"]
    assert "doctor" in warning["action"]


@pytest.mark.parametrize(("members", "scored"), [(2, True), (3, False)])
def test_a_node_where_another_owner_has_cpusets_is_warned_of_with_who_that_may_be(
    extender: Extender, members: int, *, scored: bool
) -> None:
    enforcer = extender.enforcer("n1")
    enforcer.report(machine(), yielded=pb.Yielded(containers=1, members=members))
    health = pb.Health(collector="cgroup_skb", cpuset_owners="dra-driver-cpu")
    enforcer.send(heartbeat=pb.Heartbeat(generation=1, health=health))
    until(lambda: _health(extender), "it is received")
    (warning,) = extender.get("/api/v1/node?node=n1")["warnings"]
    assert f"1 of {members} containers that opted in have their cpuset set by another owner" in warning["what"]
    assert "(dra-driver-cpu)" in warning["what"]
    assert ("scores 0" in warning["what"]) == scored
    (node,) = extender.get("/api/v1/nodes")["nodes"]
    assert (node["yielded"]["containers"], node["powerless"], node["live"]) == (1, scored, True)


def _health(extender: Extender) -> Any:
    """Of n1's enforcer; None while it is not known."""
    status, story = extender.ask("GET", "/api/v1/node?node=n1")
    return story["enforcer"]["health"] if status == 200 else None


def test_large_answers_are_packed_for_who_takes_that(extender: Extender) -> None:
    for number in range(120):
        extender.enforcer(f"node-{number}").report(machine())
    until(lambda: len(extender.get("/api/v1/overview")["nodes"]) == 120, "all are seen")
    connection = http.client.HTTPConnection(extender.web_address, timeout=PATIENCE_S)
    connection.request("GET", "/api/v1/overview", headers={"Accept-Encoding": "gzip"})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    assert response.headers["Content-Encoding"] == "gzip"
    assert len(json.loads(gzip.decompress(body))["nodes"]) == 120


def test_a_thread_of_an_enforcer_that_gets_nowhere_is_warned_of(extender: Extender) -> None:
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    thread = pb.ThreadHealth(name="census", since_success_s=70, stale=True, failures=3, error="OSError: no such file")
    sent = pb.Health(collector="cgroup_skb", runtime="registered", threads=[thread])
    enforcer.send(heartbeat=pb.Heartbeat(generation=1, health=sent))
    (warning,) = until(lambda: extender.ask("GET", "/api/v1/node?node=n1")[1].get("warnings"), "it is warned of")
    assert warning["what"] == "the enforcer's thread census has had no good round for 70 s: OSError: no such file"
    health = extender.get("/api/v1/node?node=n1")["enforcer"]["health"]
    assert health["collector"] == "cgroup_skb"
    assert [(row["name"], row["stale"]) for row in health["threads"]] == [("census", True)]


def test_the_devices_that_an_enforcer_reported_are_shown_with_their_numa_nodes(extender: Extender) -> None:
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    card = pb.Device(address="0000:81:00.0", kind="network", driver="mlx5_core", names=["eth0", "mlx5_0"], numa_node=1)
    disk = pb.Device(address="0000:01:00.0", kind="storage")
    health = pb.Health(collector="fexit", devices=[card, disk], devices_left_out=3)
    enforcer.send(heartbeat=pb.Heartbeat(generation=1, health=health))
    shown = until(lambda: _health(extender), "its health is shown")
    assert shown["devices"] == [
        {
            "address": "0000:81:00.0",
            "kind": "network",
            "driver": "mlx5_core",
            "names": ["eth0", "mlx5_0"],
            "numa_node": 1,
        },
        {"address": "0000:01:00.0", "kind": "storage", "driver": "", "names": [], "numa_node": None},
    ]
    assert shown["devices_left_out"] == 3


@pytest.mark.parametrize(("health", "why"), [
    (pb.Health(devices=[pb.Device()] * (bounds.DEVICES + 1)), "Health.devices has 65 entries; the bound is 64"),
    (pb.Health(devices=[pb.Device(names=["x"] * 17)]), "Device.names has 17 entries; the bound is 16"),
    (pb.Health(devices=[pb.Device(kind="x" * 254)]), "Device.kind has 254 characters; the bound is 253"),
])  # fmt: skip
def test_a_heartbeat_with_too_much_about_devices_ends_the_stream(
    extender: Extender, health: pb.Health, why: str
) -> None:
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    enforcer.send(heartbeat=pb.Heartbeat(generation=1, health=health))
    assert why in str(enforcer.failure())


def test_a_heartbeat_with_too_many_threads_ends_the_stream(extender: Extender) -> None:
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    threads = [pb.ThreadHealth(name="x")] * (bounds.THREADS + 1)
    enforcer.send(heartbeat=pb.Heartbeat(generation=1, health=pb.Health(threads=threads)))
    assert "Health.threads has 65 entries; the bound is 64" in str(enforcer.failure())
