"""Refusing, over real HTTP: only what was asked for, only with the operator's word."""

from __future__ import annotations

import json

import pytest

from lab.standins.patience import until
from tests.extender.running import Extender, machine, recorded, reservation, running


def strict(name: str) -> bytes:
    """The recorded pod with policy single-numa-node and a demand of 6 CPUs."""
    body = recorded(name, opted_in=True)
    body = body.replace(b'"annotations":{', b'"annotations":{"policy.numakin.io":"single-numa-node",', 1)
    return body.replace(b'"cpu":"100m"', b'"cpu":"6"', 1).replace(b'"cpu":"800m"', b'"cpu":"6"', 1)


@pytest.fixture
def refusing(tmp_path):
    with running(tmp_path, "--refuse") as first:
        yield first


def full(extender: Extender, node: str, *victims: str) -> None:
    """Half of each NUMA node is taken, by these pods in turn."""
    low = victims or ("w", "x")
    extender.enforcer(node).report(
        machine(), *(reservation(uid, str(at % 2), milli=4000) for at, uid in enumerate(low))
    )


def test_a_full_node_is_refused_with_its_reason_and_the_others_are_kept(refusing: Extender):
    full(refusing, "n1")
    refusing.enforcer("n2").report(machine())
    answer = refusing.post("filter", strict("basic-nodecache-true.filter"))
    assert answer["NodeNames"] == ["n2", "n3"]
    assert answer["FailedNodes"] == {
        "n1": "the pod would spread over more NUMA nodes than it needs (numakin)",
    }
    assert 'numakin_extender_refusals_total{reason="the pod would' in refusing.get("/metrics")


def test_whole_node_objects_are_refused_likewise(refusing: Extender):
    full(refusing, "n1")
    answer = refusing.post("filter", strict("basic-nodecache-false.filter"))
    assert [item["metadata"]["name"] for item in answer["Nodes"]["items"]] == ["n3", "n2"]
    assert list(answer["FailedNodes"]) == ["n1"]


def test_a_node_too_small_for_ever_is_refused_so_that_nobody_is_evicted_for_it(refusing: Extender):
    refusing.enforcer("n1").report(machine(2, 4))
    answer = refusing.post("filter", strict("basic-nodecache-true.filter"))
    assert answer["FailedAndUnresolvableNodes"] == {"n1": "no NUMA node is large enough for the pod (numakin)"}


def test_without_the_operators_word_nothing_is_refused(extender: Extender):
    full(extender, "n1")
    answer = extender.post("filter", strict("basic-nodecache-true.filter"))
    assert answer["NodeNames"] == ["n1", "n2", "n3"]


@pytest.mark.parametrize("form", ["nodecache-true", "nodecache-false"])
def test_preempt_keeps_the_nodes_where_evicting_frees_a_numa_node(refusing: Extender, form: str):
    body = strict(f"{form}.preempt")
    asked = json.loads(body)
    victims = asked["NodeNameToMetaVictims"] or asked["NodeNameToVictims"]
    uids = {
        node: [pod.get("UID") or pod["metadata"]["uid"] for pod in victim.get("Pods") or victim["pods"]]
        for node, victim in victims.items()
    }
    full(refusing, "n1", *uids["n1"])
    full(refusing, "n2", "others", "stay")
    answer = refusing.post("preempt", body)["NodeNameToMetaVictims"]
    assert sorted(answer) == ["n1", "n3"], "n2's victims free nothing there; of n3 nothing is known"
    assert [entry["UID"] for entry in answer["n1"]["Pods"]] == uids["n1"]


def test_a_filter_call_that_leaves_one_node_holds_no_room(extender: Extender):
    """kube-scheduler would bind the pod without a score; a simulator that asks only wants to know."""
    extender.enforcer("n3").report(machine())
    body = recorded("nominated-nodecache-true.filter", opted_in=True)
    extender.post("filter", body)
    (node,) = extender.get("/api/v1/nodes")["nodes"]
    assert node["assumed"] == []


def test_kin_on_nodes_that_were_not_offered_are_counted(extender: Extender):
    extender.enforcer("elsewhere").report(machine(), reservation("kin", "0"))
    extender.enforcer("n1").report(machine())
    extender.scores(recorded("basic-nodecache-true.prioritize", opted_in=True))
    until(lambda: "numakin_extender_kin_hidden_total 1.0" in extender.get("/metrics"), "it is counted, the answer sent")
