"""A group that is cut over nodes is told of wherever people look: the real extender between an API server and nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.standins.patience import until
from tests.extender.cut_group import Cut, cut_group
from tests.extender.group_objects import condition, pod, status
from tests.extender.running import reservation, running, whole_report
from tests.numakin.kubectl.asking import ask


@pytest.fixture
def cut(tmp_path: Path) -> Iterator[Cut]:
    with cut_group(tmp_path) as made:
        yield made


def test_the_plan_says_which_pod_would_come_anew_where(cut: Cut):
    plan = cut.planned()
    (step,) = plan["steps"]
    assert (plan["restarts"], plan["whole"], plan["nodes"]) == (1, True, {"n1": 4})
    assert (plan["locality"], plan["reached"], plan["gain"]) == (0.5, 1.0, 0.5)
    assert step == {
        "pod": "default/db-0", "uid": cut.uids["db-0"], "workload": "default/StatefulSet/db",
        "node": "n2", "numa_nodes": "1", "to_node": "n1", "to_numa_node": 0, "gain": 0.5,
    }  # fmt: skip
    assert cut.extender.get("/api/v1/regroup?group=default/other")["groups"] == []


def test_the_group_s_object_says_so(cut: Cut):
    told = until(
        lambda: (each := condition(cut.server, "Together")).get("reason") == "CanBeRegrouped" and each, "its condition"
    )
    assert told["status"] == "False"
    assert (
        told["message"]
        == "cut over 2 nodes: 1 pod evicted would have it on one node; kubectl numakin regroup shows which"
    )


def test_prometheus_counts_it(cut: Cut):
    """Each search anew: one that finds members coming or going leaves their group out."""
    told = {
        'numakin_extender_cut_groups{plan="true"} 1.0',
        'numakin_extender_cut_groups{plan="false"} 0.0',
        "numakin_extender_regroup_restarts 1.0",
    }
    until(lambda: told <= {*cut.extender.get("/metrics").splitlines()}, "its numbers")


@pytest.mark.parametrize("words", [("regroup", "-A"), ("regroup", "default/shop")], ids=" ".join)
def test_where_none_was_searched_for_no_group_is_said_to_be_whole(tmp_path: Path, words: tuple[str, ...]):
    """As in an extender's first seconds, or for ever without a period."""
    with running(tmp_path, "--regroup-period", "0") as extender:
        answer = ask(*words, f"--extender=http://{extender.web_address}")
    assert answer.code == 3
    assert "has not searched for groups that are cut" in answer.err


def test_a_person_sees_it_pod_by_pod(cut: Cut):
    cut.planned()
    at = f"--extender=http://{cut.extender.web_address}"
    answer = ask("regroup", "-n", "default", at)
    assert answer.lines[0] == "1 group cut over nodes; 1 pod evicted would bring 1 closer together, 1 onto one node"
    assert answer.lines[2].split()[:2] == ["default/shop", "n1"]
    one = ask("regroup", "default/shop", at)
    assert one.lines[-1].split() == ["default/shop", "db-0", "n2:1", "n1:0", "50.0%"]
    assert ask("regroup", "-n", "other", at).lines == ["no group is cut over nodes in namespace other; -A: in all"]
    assert ask("regroup", "shop", "-n", "other", at).code == 1
    assert ask("regroup", "a/b/c", at).code == 2
    assert json.loads(ask("regroup", "-A", at, "-o", "json").out)["groups"][0]["plan"]["restarts"] == 1


def test_explain_says_it_of_a_member(cut: Cut):
    cut.planned()
    answer = ask("explain", "db-0", "-n", "default", f"--extender=http://{cut.extender.web_address}")
    told = "its group is cut over 2 nodes: 1 pod evicted would have it on one node; kubectl numakin regroup shows which"
    assert told in answer.lines


def test_once_it_is_together_nothing_is_left_to_do(cut: Cut):
    cut.planned()
    cut.server.delete("v1", "pods", "db-0", namespace="default", grace_s=0)
    again = pod(cut.server, "db-0")["metadata"]["uid"]
    cut.server.bind("db-0", "n1")
    cut.server.set_phase("db-0", "Running")
    there = [reservation(cut.uids[name], "0", milli=500) for name in ("web-0", "web-1", "web-2")]
    cut.enforcers["n1"].send(report=whole_report(2, [*there, reservation(again, "0", milli=500)]))
    cut.enforcers["n2"].send(report=whole_report(2))
    until(lambda: not cut.found(), "it is cut no more")
    until(lambda: condition(cut.server, "Together").get("status") == "True", "its object says so")
    assert status(cut.server)["locality"] == "100 %"
