"""The real program over real HTTP, asked as kube-scheduler asks."""

from __future__ import annotations

import ctypes
import http.client
import json
import signal
import socket
import struct
from pathlib import Path

import pytest

from lab.standins.extender import ExtenderGone
from lab.standins.patience import PATIENCE_S, until
from numakin.wire import report_pb2 as pb
from tests.extender.running import Extender, machine, recorded, reservation, running, whole_report


def test_a_pod_that_has_not_opted_in_gets_equal_scores_and_every_node(extender: Extender):
    extender.enforcer("n2").report(machine(), reservation("kin", "0"))
    body = recorded("basic-nodecache-true.prioritize")
    assert extender.scores(body) == {}, "kube-scheduler counts a node that is not named as 0"
    assert extender.post("filter", body)["NodeNames"] == ["n1", "n2", "n3"]


def test_such_a_pod_is_answered_alike_whether_its_call_names_nodes_or_has_them(extender: Extender):
    """With names its bytes are not decoded."""
    (by_name, by_object) = (
        extender.post("filter", recorded(f"basic-nodecache-{capable}.filter")) for capable in ("true", "false")
    )
    assert by_name["NodeNames"] == ["n1", "n2", "n3"]
    assert sorted(node["metadata"]["name"] for node in by_object["Nodes"]["items"]) == ["n1", "n2", "n3"]
    assert extender.post("prioritize", recorded("basic-nodecache-false.prioritize")) == []


def test_the_kins_node_wins_and_nodes_without_an_enforcer_score_0(extender: Extender):
    extender.enforcer("n2").report(machine(), reservation("kin", "1"))
    extender.enforcer("n3").report(machine())
    scores = extender.scores(recorded("basic-nodecache-true.prioritize", opted_in=True))
    assert scores["n1"] == 0
    assert scores["n2"] > scores["n3"] > 0


def test_a_node_whose_many_numa_nodes_are_short_of_memory_is_scored_like_any_other(extender: Extender):
    """The pod's CPU fits one NUMA node, its 128 MiB take two."""
    extender.enforcer("n2").report(machine(numa_nodes=17, memory=100 << 20))
    extender.enforcer("n3").report(machine(), reservation("kin", "1"))
    scores = extender.scores(recorded("basic-nodecache-true.prioritize", opted_in=True))
    assert scores["n3"] > scores["n2"] > 0


def test_the_answer_is_the_same_when_whole_node_objects_are_sent(extender: Extender):
    extender.enforcer("n2").report(machine(), reservation("kin", "1"))
    names = extender.scores(recorded("basic-nodecache-true.prioritize", opted_in=True))
    assert extender.scores(recorded("basic-nodecache-false.prioritize", opted_in=True)) == names


@pytest.mark.parametrize("name", ["basic-nodecache-false", "complex-pod-nodecache-false"])
def test_filter_gives_whole_node_objects_back_as_they_came(extender: Extender, name: str):
    body = recorded(f"{name}.filter", opted_in=True)
    assert extender.post("filter", body)["Nodes"]["items"] == json.loads(body)["Nodes"]["items"]


@pytest.mark.parametrize("form", ["nodecache-true", "nodecache-false"])
def test_preempt_keeps_every_candidate_of_a_pod_that_is_never_refused(extender: Extender, form: str):
    answer = extender.post("preempt", recorded(f"{form}.preempt", opted_in=True))
    assert {node: len(entry["Pods"]) for node, entry in answer["NodeNameToMetaVictims"].items()} == {
        "n1": 2,
        "n2": 2,
        "n3": 2,
    }


def test_one_connection_serves_many_calls(extender: Extender):
    """kube-scheduler keeps its connection; each answer has its length, so none is lost to a close."""
    body = recorded("basic-nodecache-true.filter")
    extender.post("filter", body)
    first = extender.connection.sock
    for _ in range(50):
        extender.post("filter", body)
        extender.ask("POST", "/filter", b"{")
    assert extender.connection.sock is first


BAD = [
    ("POST", "/filter", b"{", 400, "the request is not JSON: Input data was truncated"),
    ("POST", "/filter", b'{"\xff":1}', 400, "the request is not JSON: it is not UTF-8: invalid start byte"),
    ("POST", "/prioritize", b'{"Pod":{"metadata":{"name":"\xff"}}}', 400, "Pod: not UTF-8: invalid start byte"),
    ("POST", "/prioritize", b'{"Pod":3}', 400, "Pod: Expected `object`, got `int`"),
    ("POST", "/preempt", b"{}", 400, "the request has no Pod"),
    (
        "POST",
        "/prioritize",
        recorded("basic-nodecache-true.prioritize", opted_in=True).replace(b'"100m"', b'"lots"'),
        400,
        "'lots' is not a resource quantity",
    ),
    ("GET", "/filter", None, 405, "a verb is asked for by POST"),
    ("POST", "/api/v1/explain", b"", 405, "The method is not allowed for the requested URL."),
    ("GET", "/api/v1/explain", None, 400, "the query has no pod: /api/v1/explain?namespace=NAMESPACE&pod=NAME"),
    (
        "GET",
        "/api/v1/explain?pod=x",
        None,
        404,
        "pod default/x was neither scored nor reported lately; no pod of namespace default is known that has the annotation group.numakin.io itself",
    ),
]


def test_bad_requests_get_a_clear_json_error(extender: Extender):
    for method, path, body, status, text in BAD:
        assert extender.ask(method, path, body) == (status, {"error": text})


@pytest.mark.parametrize(
    ("method", "path", "status"), [("POST", "/scheduler/prioritize", 404), ("GET", "/prioritize", 405)]
)
def test_what_kube_scheduler_asks_in_vain_by_a_wrong_configuration_is_logged_now_and_then(
    extender: Extender, method: str, path: str, status: int
):
    """Its own log has no word of it."""
    connection = http.client.HTTPConnection(extender.http_address, timeout=PATIENCE_S)
    for _ in range(3):
        connection.request(method, path, b"{}")
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
    connection.close()
    lines = map(json.loads, extender.log.read_text().splitlines())
    (line,) = [each for each in lines if each["event"] == "nothing to answer"]
    assert (line["asked"], line["status"], line["peer"]) == (f"{method} {path}", status, "127.0.0.1")
    assert "answered are POST /filter, /prioritize, /preempt" in line["why"]


def test_a_body_over_the_bound_is_refused_before_it_is_read(extender: Extender):
    host, port = extender.http_address.split(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as raw:
        raw.sendall(b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
        response = http.client.HTTPResponse(raw)
        response.begin()
        assert response.status == 413
        assert json.loads(response.read()) == {"error": "the body is over the bound of 67108864 bytes"}


def test_explain_tells_node_by_node_what_was_weighed_and_what_happened(extender: Extender):
    enforcer = extender.enforcer("n2")
    enforcer.report(machine(), reservation("kin", "1"))
    body = recorded("basic-nodecache-true.prioritize", opted_in=True)
    scores = extender.scores(body)
    uid = json.loads(body)["Pod"]["metadata"]["uid"]
    result = extender.get("/api/v1/explain?namespace=default&pod=t001")
    assert result["group"] == "default/shop"
    assert {row["node"]: row["score"] for row in result["scored"]["nodes"]} == scores
    best, other, _ = result["scored"]["nodes"]
    assert (best["node"], best["numa_nodes"], best["fits"]) == ("n2", "1", True)
    assert best["reasons"][0] == "its kin are near 100%: NUMA node 1"
    assert other["reasons"] == ["no enforcer has reported this node"]
    assert result["expected"]["node"] == "n2"
    assert result["happened"] == []

    record = pb.DecisionRecord(
        pod=uid, namespace="default", pod_name="t001", container_name="main", numa_nodes="1", cpus="8-15", mems="1",
        score=0.9, reasons=[pb.Reason(what="its kin are near", number="100%", effect="NUMA node 1")],
        outcome=pb.KEPT, nominated="1", generation=2, event="create",
    )  # fmt: skip
    whole = [reservation("kin", "1"), reservation(uid, "1", milli=100)]
    enforcer.send(report=whole_report(2, whole, decisions=[record]))
    assert enforcer.next().ack.generation == 2
    result = extender.get("/api/v1/explain?namespace=default&pod=t001")
    assert result["expected"] is None
    assert result["happened"] == [
        {
            "container": "main",
            "event": "create",
            "numa_nodes": "1",
            "cpus": "8-15",
            "mems": "1",
            "score": 0.9,
            "reasons": ["its kin are near 100%: NUMA node 1"],
            "nomination": "kept",
            "nominated": "1",
            "generation": 2,
        }
    ]


def test_groups_and_nodes_are_listed_with_the_locality_reached(extender: Extender):
    extender.enforcer("n1").report(
        machine(), reservation("a", "0"), reservation("b", "0"), reservation("c", "1"), reservation("x", "0", group="")
    )
    (group,) = extender.get("/api/v1/groups")["groups"]
    assert group["group"] == "default/shop"
    assert [(member["uid"], member["numa_nodes"]) for member in group["members"]] == [
        ("a", "0"),
        ("b", "0"),
        ("c", "1"),
    ]
    assert group["locality"] == pytest.approx(1 / 3, abs=1e-6)
    (node,) = extender.get("/api/v1/nodes")["nodes"]
    assert (node["node"], node["live"], node["pods"]) == ("n1", True, 4)
    assert [numa_node["requested_cpu_milli"] for numa_node in node["numa_nodes"]] == [3000, 1000]


def test_health_readiness_and_metrics_answer(extender: Extender):
    assert extender.get("/healthz") == "ok\n"
    assert extender.get("/readyz") == "ok\n"
    extender.enforcer("n1").report(machine())
    extender.scores(recorded("basic-nodecache-true.prioritize"))
    metrics = extender.get("/metrics")
    assert 'numakin_extender_requests_total{code="200",verb="prioritize"} 1.0' in metrics
    assert 'numakin_extender_nodes{live="true"} 1.0' in metrics
    assert 'numakin_extender_reports_total{result="whole"} 1.0' in metrics


def test_an_interrupted_caller_does_not_disturb_the_others(extender: Extender):
    host, port = extender.http_address.split(":")
    raw = socket.create_connection((host, int(port)), PATIENCE_S)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.sendall(b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    raw.close()
    assert extender.get("/healthz") == "ok\n"


def test_sigterm_ends_the_program_cleanly(tmp_path):
    with running(tmp_path) as extender:
        enforcer = extender.enforcer("n1")
        enforcer.report(machine())
        assert extender.program.end() == 0
        assert "Traceback" not in extender.log.read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_it_ends_whichever_of_its_threads_the_kernel_hands_the_signal_to(extender: Extender, number: signal.Signals):
    """Another one than the main thread gets it where that one has just been frozen."""
    assert extender.get("/healthz") == "ok\n"
    process = extender.program.process
    answering = max(int(thread.name) for thread in Path(f"/proc/{process.pid}/task").iterdir())
    assert answering != process.pid
    assert ctypes.CDLL(None).tgkill(process.pid, answering, number) == 0
    assert process.wait(PATIENCE_S) == 0


def test_a_port_in_use_is_named_and_the_program_leaves(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ExtenderGone, match=address):
            running(tmp_path, "--grpc-listen", address).__enter__()


def test_a_silent_node_counts_less_and_then_not_at_all(tmp_path):
    with running(tmp_path, "--report-timeout", "1") as extender:
        enforcer = extender.enforcer("n2")
        enforcer.report(machine(), reservation("kin", "1"))
        body = recorded("basic-nodecache-true.prioritize", opted_in=True)

        def scored() -> bool:
            enforcer.send(heartbeat=pb.Heartbeat(generation=1))
            return extender.scores(body)["n2"] > 0

        until(scored, "the node that is heard of scores")
        until(lambda: extender.scores(body)["n2"] == 0, "the silent node scores 0")
        assert extender.get("/api/v1/nodes")["nodes"][0]["live"] is False
