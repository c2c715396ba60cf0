"""A spec is taken field by field: what can't be costs only itself, and is named with what is allowed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.kube.objects.groupspec import LARGEST_PRIORITY, MOST_PRIORITIES, read
from extender.state.group_spec import GroupSpec
from lab.standins.apiserver.model import schema
from numakin.placement.optin.options import Defaults, Policy
from numakin.placement.optin.parsing import LARGEST_SIZE
from tests.manifests.rendered import files, one

EDGE = {"source": "Deployment/web", "target": "StatefulSet/db"}
DB = {"workload": "StatefulSet/db", "priority": 5}
SCHEMA = one(files(), "CustomResourceDefinition", "affinitygroups.numakin.io")["spec"]["versions"][0]["schema"]
SPEC_SCHEMA = SCHEMA["openAPIV3Schema"]["properties"]["spec"]

EDGES = "a list of {source: KIND/NAME, target: another KIND/NAME, weight: NUMBER}"
ROWS = "a list of {workload: KIND/NAME, priority: NUMBER}"

TAKEN: list[tuple[Any, GroupSpec]] = [
    (None, GroupSpec()),
    ({}, GroupSpec()),
    *(({"policy": str(policy)}, GroupSpec(Defaults(policy))) for policy in Policy),
    ({"size": 1}, GroupSpec(Defaults(size=1))),
    ({"size": LARGEST_SIZE}, GroupSpec(Defaults(size=LARGEST_SIZE))),
    ({"priorities": []}, GroupSpec()),
    ({"priorities": [DB, {"workload": "Deployment/log", "priority": 0}]},
     GroupSpec(priorities={"shop/StatefulSet/db": 5, "shop/Deployment/log": 0})),
    ({"policy": "none", "size": 3, "priorities": [DB]},
     GroupSpec(Defaults(Policy.NONE, 3), {"shop/StatefulSet/db": 5})),
    ({"edges": [EDGE, {**EDGE, "source": "Job/load", "weight": 9}]},
     GroupSpec(edges={("shop/Deployment/web", "shop/StatefulSet/db"): 1, ("shop/Job/load", "shop/StatefulSet/db"): 9})),
]  # fmt: skip

BAD: list[tuple[dict[str, Any], str]] = [
    ({"policy": "strict"},
     "spec.policy: 'strict' is not allowed; allowed: best-effort, restricted, single-numa-node, none"),
    ({"policy": 3}, "spec.policy: 3 is not allowed; allowed: best-effort, restricted, single-numa-node, none"),
    ({"size": 0}, "spec.size: 0 is not allowed; allowed: an integer from 1 to 10000"),
    ({"size": LARGEST_SIZE + 1}, "spec.size: 10001 is not allowed; allowed: an integer from 1 to 10000"),
    ({"size": True}, "spec.size: True is not allowed; allowed: an integer from 1 to 10000"),
    ({"size": "8"}, "spec.size: '8' is not allowed; allowed: an integer from 1 to 10000"),
    ({"priorities": {}}, "spec.priorities: {} is not allowed; allowed: a list of at most 100"),
    ({"priorities": ["db"]},
     f"spec.priorities: ['db'] is not allowed; allowed: {ROWS}"),
    ({"priorities": [{"workload": "db", "priority": 5}]},
     f"spec.priorities: [{{'workload': 'db', 'priority': 5}}] is not allowed; allowed: {ROWS}"),
    ({"priorities": [{"workload": "A/b", "priority": LARGEST_PRIORITY + 1}]},
     "spec.priorities: [{'workload': 'A/b', 'priority': 101}] is not allowed; allowed: the priority of A/b: an integer from 0 to 100"),
    ({"edges": "db"}, "spec.edges: 'db' is not allowed; allowed: a list of at most 200"),
    ({"edges": ["db"]}, f"spec.edges: ['db'] is not allowed; allowed: {EDGES}"),
    ({"edges": [{"source": "A/b"}]}, f"spec.edges: [{{'source': 'A/b'}}] is not allowed; allowed: {EDGES}"),
    ({"edges": [{"source": "A/b", "target": "A/c", "weight": 0}]},
     "spec.edges: [{'source': 'A/b', 'target': 'A/c', 'weight': 0}] is not allowed; allowed: the weight of A/b to A/c: an integer from 1 to 100"),
]  # fmt: skip


@pytest.mark.parametrize(("received", "spec"), TAKEN, ids=lambda name: json.dumps(name, default=repr)[:60])
def test_what_is_taken(received, spec):
    assert read("shop", received) == (spec, ())
    assert received is None or schema.violations(SPEC_SCHEMA, received) == []


@pytest.mark.parametrize(("received", "problem"), BAD, ids=lambda name: str(name)[:40])
def test_what_is_not_taken_and_refused_by_the_definition_too(received, problem):
    assert read("shop", received) == (GroupSpec(), (problem,))
    assert schema.violations(SPEC_SCHEMA, received)


def test_a_field_that_is_not_known_is_told():
    assert read("shop", {"weight": 3})[1] == (
        "spec.weight: 3 is not allowed; allowed: the fields policy, size, priorities, edges",
    )


def test_nobody_is_expected_to_talk_to_itself():
    edge = {"source": "Deployment/web", "target": "Deployment/web"}
    assert read("shop", {"edges": [edge]})[1] == (f"spec.edges: {[edge]} is not allowed; allowed: {EDGES}",)


def test_what_is_bad_costs_only_itself():
    spec, problems = read("shop", {"policy": "strict", "size": 8, "priorities": 1})
    assert spec == GroupSpec(Defaults(size=8))
    assert [problem.partition(":")[0] for problem in problems] == ["spec.policy", "spec.priorities"]


def test_priorities_are_bounded():
    rows = [{"workload": f"Deployment/d{at}", "priority": 2} for at in range(MOST_PRIORITIES + 1)]
    assert len(read("shop", {"priorities": rows[:-1]})[0].priorities) == MOST_PRIORITIES
    assert read("shop", {"priorities": rows})[1][0].endswith("allowed: a list of at most 100")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.one_of(ANYTHING, st.fixed_dictionaries({}, optional=dict.fromkeys(SPEC_SCHEMA["properties"], ANYTHING))))
def test_nothing_that_an_object_may_hold_is_an_error(received):
    read("shop", received)
