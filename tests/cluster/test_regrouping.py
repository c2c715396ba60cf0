"""A group that was cut while a node took no more pods is found on a real control plane, and whole again by its plan."""

from __future__ import annotations

import json
from typing import Any

from lab.standins.patience import until
from tests.cluster.workloads import Namespace, member, nodes_by_group, only, published, split


def plan(namespace: Namespace, group: str) -> dict[str, Any]:
    """Empty while there is none."""
    rows = namespace.cluster.extenders[0].get(f"/api/v1/regroup?group={namespace.name}/{group}")["groups"]
    return next((row["plan"] or {} for row in rows), {})


def test_a_group_that_was_cut_is_whole_once_its_plan_is_carried_out(namespace: Namespace):
    with only(namespace, "node-3"):
        namespace.deploy(member("cut", 6, cpu="1"))
        namespace.until_running(6)
    with only(namespace, "node-7"):
        namespace.cluster.kubectl("scale", "deployment/cut", "--replicas=8", "-n", namespace.name)
        namespace.until_running(8)
    assert split(namespace.pods()) == {"cut": {"node-3", "node-7"}}
    found = until(
        lambda: (each := plan(namespace, "cut")) and "node-3" in each["nodes"] and each, "a plan since node-3 is open"
    )
    assert (found["restarts"], found["whole"], found["nodes"]) == (2, True, {"node-3": 8})
    until(lambda: "cut" in published(namespace), "the group's object")
    told = json.loads(namespace.cluster.kubectl("get", "affinitygroup", "cut", "-n", namespace.name, "-o", "json"))
    assert {each["type"] for each in told["status"].get("conditions", ())} <= {"Together"}
    for step in found["steps"]:
        namespace.cluster.kubectl("delete", "pod", step["pod"].partition("/")[2], "-n", namespace.name)
        namespace.until_running(8)
    assert nodes_by_group(namespace.pods()) == {"cut": {"node-3"}}
    until(lambda: not plan(namespace, "cut"), "nothing is left to do")
