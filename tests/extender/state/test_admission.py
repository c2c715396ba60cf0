"""Where pods may go is as the rule over the API server's objects has it, whatever changed in between."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from extender.kube.stream import nodes, pods
from extender.state.admission import ANYWHERE, EVERY_NODE, NodeSet
from extender.state.label_domains import node_facts
from extender.state.pods import NodeRow
from numakin.kubectl.feasible import feasible
from numakin.placement.model.node_terms import NO_TERMS, NodeTerms
from tests.extender.machines import TAINTED

NAMES = ("a", "b", "c")
KEYS, VALUES = st.sampled_from(["pool", "cores"]), st.sampled_from(["fast", "8", "16"])
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
EFFECTS = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])


@st.composite
def expressions(draw: st.DrawFn, keys=KEYS, values=VALUES, operators=OPERATORS) -> dict[str, Any]:
    operator = draw(operators)
    count = {"Exists": 0, "DoesNotExist": 0, "Gt": 1, "Lt": 1}.get(operator)
    listed = draw(st.lists(values, min_size=count or 0, max_size=2 if count is None else count))
    return {"key": draw(keys), "operator": operator, "values": listed}


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    by_name = expressions(st.just("metadata.name"), st.sampled_from(NAMES), st.sampled_from(["In", "NotIn"]))
    term = st.fixed_dictionaries(
        {},
        optional={
            "matchExpressions": st.lists(expressions(), max_size=2),
            "matchFields": st.lists(by_name, max_size=1),
        },
    )
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": draw(st.lists(term, max_size=2))}
    }
    toleration = st.fixed_dictionaries(
        {"operator": st.sampled_from(["Exists", "Equal"])}, optional={"key": KEYS, "value": VALUES, "effect": EFFECTS}
    )
    spec = {"nodeSelector": draw(st.dictionaries(KEYS, VALUES, max_size=1)), "tolerations": draw(st.lists(toleration))}
    return spec | ({"affinity": {"nodeAffinity": affinity}} if draw(st.booleans()) else {})


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    taint = st.fixed_dictionaries({"key": KEYS, "effect": EFFECTS}, optional={"value": VALUES})
    metadata = {"name": draw(st.sampled_from(NAMES)), "labels": draw(st.dictionaries(KEYS, VALUES))}
    return {"metadata": metadata, "spec": {"taints": draw(st.lists(taint, max_size=2))}}


def terms_of(spec: dict[str, Any]) -> NodeTerms:
    opted_in = {"name": "p", "annotations": {"group.numakin.io": "g"}}
    return pods().row(json.dumps({"metadata": opted_in, "spec": spec}).encode()).terms


def rows_of(*found: dict[str, Any]) -> list[NodeRow]:
    return [nodes().row(json.dumps(each).encode()) for each in found]


@given(specs(), st.lists(st.tuples(objects(), st.sets(st.sampled_from(NAMES), max_size=1)), max_size=5))
def test_a_pod_may_go_where_kube_scheduler_would_let_it(spec, changes):
    admission, there, terms = EVERY_NODE, dict[str, Any](), terms_of(spec)
    for changed, gone in changes:
        there = {name: node for name, node in there.items() if name not in gone}
        there[changed["metadata"]["name"]] = changed
        admission = admission.after(node_facts(rows_of(changed)), gone)
        where = admission.where(terms)
        may = feasible({"metadata": {"name": "p"}, "spec": spec}, there.values())
        assert [name for name in there if where.has(name)] == may
        assert [name for name in there if admission.admits(terms, name)] == may


POOL = NodeTerms.of({"pool": "fast"}, None, None)


def test_a_node_that_is_not_known_has_no_label_and_no_taint():
    known = EVERY_NODE.after(node_facts([NodeRow("a", taints=TAINTED)]), ())
    assert EVERY_NODE.where(NO_TERMS) is ANYWHERE
    assert known.where(NO_TERMS) == NodeSet(frozenset({"a"}))
    assert EVERY_NODE.where(POOL) == NodeSet(alone=True)
    assert known.where(NO_TERMS).has("b")
    assert not known.where(POOL).has("b")


def test_nothing_is_new_where_neither_labels_nor_taints_changed():
    known = EVERY_NODE.after(node_facts([NodeRow("a", labels={"pool": "fast"})]), ())
    assert known.after(node_facts([NodeRow("a", ready=False, labels={"pool": "fast"})]), ("b",)) is known
    assert known.after(node_facts([NodeRow("a")]), ()) is not known
