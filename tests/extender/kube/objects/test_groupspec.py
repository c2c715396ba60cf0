"""A spec is taken field by field: what can't be costs only itself, and is named with what is allowed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.kube.objects.groupspec import MOST_PRIORITIES, read
from extender.state.group_spec import GroupSpec
from numakin.placement.optin.options import Defaults
from tests.extender.kube.objects.specs import BAD, EDGES, TAKEN
from tests.manifests.rendered import files, one
from tests.manifests.structural import violations

SCHEMA = one(files(), "CustomResourceDefinition", "affinitygroups.numakin.io")["spec"]["versions"][0]["schema"]
SPEC_SCHEMA = SCHEMA["openAPIV3Schema"]["properties"]["spec"]


@pytest.mark.parametrize(("received", "spec"), TAKEN, ids=lambda name: json.dumps(name, default=repr)[:60])
def test_what_is_taken(received, spec):
    assert read("shop", received) == (spec, ())
    assert received is None or violations(SPEC_SCHEMA, received) == []


@pytest.mark.parametrize(("received", "problem"), BAD, ids=lambda name: str(name)[:40])
def test_what_is_not_taken_and_refused_by_the_definition_too(received, problem):
    assert read("shop", received) == (GroupSpec(), (problem,))
    assert violations(SPEC_SCHEMA, received)


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
