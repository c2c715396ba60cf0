"""Where kube-scheduler's filters would let a pod go."""

from __future__ import annotations

from typing import Any

import pytest

from numakin.kubectl.errors import UsageError
from numakin.kubectl.feasible import feasible


def node(name: str = "a", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def terms(*expressions: tuple[str, str, list[str]], fields: bool = False) -> dict[str, Any]:
    rows = [{"key": key, "operator": operator, "values": values} for key, operator, values in expressions]
    return affinity(*rows, by="matchFields" if fields else "matchExpressions")


def affinity(*expressions: dict[str, Any], by: str = "matchExpressions") -> dict[str, Any]:
    term = {by: list(expressions)}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "any node": ({}, node(), True),
    "a cordoned node": ({}, node(unschedulable=True), False),
    "a cordoned node, tolerated": (
        {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]}, node(unschedulable=True), True,
    ),
    "a cordoned node of which another effect is tolerated": (
        {"tolerations": [{"operator": "Exists", "effect": "NoExecute"}]}, node(unschedulable=True), False,
    ),
    "a selector that holds": ({"nodeSelector": {"disk": "ssd"}}, node(labels={"disk": "ssd"}), True),
    "a selector that does not": ({"nodeSelector": {"disk": "ssd"}}, node(labels={"disk": "hdd"}), False),
    "another node by name": ({"nodeName": "b"}, node(), False),
    "a node's name that is left empty": ({"nodeName": None}, node(), True),
    "a taint": ({}, node(taints=[TAINT]), False),
    "a taint that only prefers": ({}, node(taints=[TAINT | {"effect": "PreferNoSchedule"}]), True),
    "a toleration by value": ({"tolerations": [{"key": "gpu", "value": "yes"}]}, node(taints=[TAINT]), True),
    "a toleration of another value": ({"tolerations": [{"key": "gpu", "value": "no"}]}, node(taints=[TAINT]), False),
    "a toleration of everything": ({"tolerations": [{"operator": "Exists"}]}, node(taints=[TAINT]), True),
    "a toleration of another effect": (
        {"tolerations": [{"operator": "Exists", "effect": "NoExecute"}]}, node(taints=[TAINT]), False,
    ),
    "In": (terms(("zone", "In", ["a", "b"])), node(labels={"zone": "b"}), True),
    "NotIn, without the label": (terms(("zone", "NotIn", ["a"])), node(), True),
    "Exists": (terms(("zone", "Exists", [])), node(), False),
    "DoesNotExist": (terms(("zone", "DoesNotExist", [])), node(), True),
    "Gt": (terms(("cores", "Gt", ["8"])), node(labels={"cores": "16"}), True),
    "Lt, of no number": (terms(("cores", "Lt", ["8"])), node(labels={"cores": "many"}), False),
    "all of a term": (terms(("zone", "Exists", []), ("disk", "Exists", [])), node(labels={"zone": "a"}), False),
    "a term without anything matches nothing": (terms(), node(), False),
    "a field": (terms(("metadata.name", "In", ["a"]), fields=True), node(), True),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_pod_may_go_where_its_rules_and_the_nodes_taints_let_it(case):
    spec, there, may = CASES[case]
    assert feasible({"spec": spec}, [there]) == (["a"] if may else [])


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no operator": (affinity({"key": "zone"}), "an expression has no operator"),
    "no key": (affinity({"operator": "Exists"}), "an expression has no key"),
    "an affinity that is a text": ({"affinity": "zone"}, "a field has another type than it should"),
    "a selector that is a list": ({"nodeSelector": ["zone"]}, "a field has another type than it should"),
    "tolerations that are a text": ({"tolerations": "all"}, "a field has another type than it should"),
}


@pytest.mark.parametrize("case", WRONG)
def test_rules_that_can_not_be_read_are_named_with_their_pod(case):
    spec, why = WRONG[case]
    taints = [TAINT] if "tolerations" in spec else []
    with pytest.raises(UsageError, match=f"pod web-0: .*: {why}"):
        feasible({"metadata": {"name": "web-0"}, "spec": spec}, [node(taints=taints)])
