"""What a comparison changes in a Deployment, and that nothing of it is left."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.kubectl.comparing import templates
from numakin.kubectl.comparing.templates import AGAIN, GROUP, WITH, WITHOUT
from tests.numakin.kubectl.comparing.patches import patched

KEYS = st.sampled_from([
    GROUP, f"{GROUP}/container.web", "cpus.numakin.io/container.web", "policy.numakin.io", "prometheus.io/scrape", "numakin.example/group",
])  # fmt: skip
ANNOTATIONS = st.none() | st.dictionaries(KEYS, st.text("ab", min_size=1, max_size=3), min_size=1)


def deployment(annotations: dict[str, str] | None, limit: int | None = 10) -> dict[str, Any]:
    """As the API server stores it: without what is empty."""
    metadata = {"labels": {"app": "web"}} | ({"annotations": annotations} if annotations else {})
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": metadata}}
    if limit is not None:
        spec["revisionHistoryLimit"] = limit
    return {"metadata": {"name": "web"}, "spec": spec}


def running(before: dict[str, Any], way: str, group: str = "shop") -> dict[str, Any]:
    after = patched(before, templates.begun(before))
    return patched(after, templates.changed(after, way, group))


@given(ANNOTATIONS, st.lists(st.sampled_from(templates.DESIGN.ways), max_size=5))
def test_at_the_end_it_is_as_it_was(annotations: dict[str, str] | None, ways: list[str]):
    before = deployment(annotations)
    now = patched(deepcopy(before), templates.begun(before))
    for way in ways:
        now = patched(now, templates.changed(now, way, "shop"))
        assert templates.way_of(now) == way
        assert templates.is_compared(now)
    now = patched(now, templates.restored(now))
    assert now["spec"]["template"] == before["spec"]["template"]
    assert patched(now, templates.ended(now)) == before


@given(ANNOTATIONS, st.sampled_from([WITHOUT, AGAIN]))
def test_without_numakin_nothing_of_it_is_left_and_all_else_is(annotations: dict[str, str] | None, way: str):
    left = templates.annotations_of(running(deployment(annotations), way))
    others = {key: text for key, text in (annotations or {}).items() if ".numakin.io" not in key}
    assert left == others | {templates.WAY: way}


def test_with_numakin_its_own_annotations_count():
    own = {GROUP: "mine", "cpus.numakin.io": "exclusive"}
    assert templates.annotations_of(running(deployment(own), WITH)) == own | {templates.WAY: WITH}


def test_without_a_group_of_its_own_it_gets_the_one_that_is_given():
    assert templates.annotations_of(running(deployment(None), WITH)) == {GROUP: "shop", templates.WAY: WITH}


def test_a_group_of_one_container_alone_is_its_own_too():
    """Else its other containers, as a mesh's, would be placed in the comparison alone."""
    own = {f"{GROUP}/container.web": "mine"}
    assert templates.annotations_of(running(deployment(own), WITH)) == own | {templates.WAY: WITH}
    assert templates.group_for({"cart": deployment(None), "web": deployment(own)}) == "mine"


def test_back_and_forth_it_has_its_own_annotations_again():
    own = {GROUP: "mine", "policy.numakin.io": "restricted"}
    now = running(deployment(own), WITHOUT)
    now = patched(now, templates.changed(now, WITH, "shop"))
    assert templates.annotations_of(now) == own | {templates.WAY: WITH}


@pytest.mark.parametrize(("limit", "held"), [(10, 13), (0, 3), (None, 13)])
def test_the_history_of_revisions_is_held_meanwhile(limit: int | None, held: int):
    before = deployment(None, limit)
    assert templates.begun(before)["spec"]["revisionHistoryLimit"] == held


def test_those_without_a_group_join_the_first_that_has_one():
    objects = {"web": deployment(None), "cart": deployment({GROUP: "shop"}), "db": deployment({GROUP: "data"})}
    assert templates.group_for(objects) == "shop"
    assert templates.group_for({"web": deployment(None), "cart": deployment(None)}) == "web"


def test_its_pods_are_selected_as_kubernetes_writes_it():
    made = deployment(None)
    made["spec"]["selector"]["matchExpressions"] = [
        {"key": "tier", "operator": "In", "values": ["a", "b"]},
        {"key": "zone", "operator": "NotIn", "values": ["z"]},
        {"key": "shop", "operator": "Exists"},
        {"key": "old", "operator": "DoesNotExist"},
    ]
    assert templates.selector_of(made) == "app=web,tier in (a,b),zone notin (z),shop,!old"
