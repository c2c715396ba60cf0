"""AffinityGroup objects tell the story of a group, and keep what was learned."""

import json
import re

import pytest

from extender.kube.objects.affinitygroup import (
    Accepted,
    EdgeStatus,
    GroupCondition,
    GroupStatus,
    MemberStatus,
    affinity_group,
    homes,
    object_name,
)
from extender.kube.objects.grouprows import GroupRow, affinity_groups
from extender.kube.rows import Metadata
from extender.state.group_spec import GroupSpec
from numakin.placement.optin.options import Defaults, Policy


def read(body: dict) -> GroupRow:
    return affinity_groups().row(json.dumps(body).encode())


EDGE = EdgeStatus("shop/Deployment/cart", "shop/StatefulSet/db", 1000, 20)


@pytest.mark.parametrize("name", ["cart", "cart.eu-1", "a"])
def test_a_group_whose_name_can_be_an_objects_has_an_object_of_its_name(name):
    assert object_name(name) == name


def test_other_groups_get_a_name_like_theirs_that_nobody_else_gets():
    names = ["Cart", "cart_", "CART", "cart_1", "cart-1", "a.-b", "_" * 63]
    objects = [object_name(name) for name in names]
    assert len(set(objects)) == len(names)
    assert objects[0].startswith("cart-")
    dns_1123 = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
    assert all(len(entry) <= 63 and re.fullmatch(dns_1123, entry) for entry in objects)


@pytest.mark.parametrize(
    ("places", "shown"),
    [
        ([], ""),
        (["n1/0"], "n1/0"),
        (["n1/0", "n2/1", "n2/1"], "n2/1 n1/0"),
        (["n1/0", "n2/0", "n3/0", "n4/0", "n5/0"], "n1/0 n2/0 n3/0 +2"),
        (["n1/"], "n1/-"),
    ],
)
def test_homes_are_told_in_a_column(places, shown):
    members = [MemberStatus(f"p{at}", *place.split("/")) for at, place in enumerate(places)]
    assert homes(members) == shown


def test_what_was_learned_comes_back_as_it_was_written():
    written = affinity_group(GroupStatus("shop", "Cart", edges=(EDGE,), learned="what was learned"))
    body = {**written.body, "status": {**written.status, **written.learned}}
    body["metadata"] = {**body["metadata"], "namespace": "shop"}
    assert read(body) == GroupRow("shop", "Cart", learned="what was learned")


def test_an_operators_wishes_are_read():
    spec = {"policy": "restricted", "size": 8, "priorities": [{"workload": "Deployment/db", "priority": 5}]}
    row = read({"metadata": {"name": "cart", "namespace": "shop", "generation": 3}, "spec": spec})
    wishes = GroupSpec(Defaults(Policy.RESTRICTED, 8), {"shop/Deployment/db": 5})
    assert row == GroupRow("shop", "cart", wishes, generation=3)


def test_an_object_without_anything_is_read_too():
    assert read({"metadata": {"name": "cart", "namespace": "shop"}}) == GroupRow("shop", "cart")


def test_an_object_is_of_the_group_of_its_name_unless_that_can_be_no_objects_name():
    received = {object_name("Cart"): "Cart", "cart": "Cart", "other": "cart"}
    names = {
        name: read({"metadata": {"name": name, "namespace": "shop", "annotations": {"numakin.io/group": group}}}).name
        for name, group in received.items()
    }
    assert names == {object_name("Cart"): "Cart", "cart": "cart", "other": "other"}


@pytest.mark.parametrize(
    ("managers", "ours"),
    [(["numakin"], True), (["numakin", "numakin-learned"], True), (["numakin", "kubectl-edit"], False), ([], False)],
)
def test_an_object_is_ours_while_nobody_else_has_written_to_it(managers, ours):
    fields = [{"manager": manager, "operation": "Apply"} for manager in managers]
    assert read({"metadata": {"name": "cart", "namespace": "shop", "managedFields": fields}}).ours is ours


@pytest.mark.parametrize(
    ("before", "since", "problems", "then"),
    [
        ("", "", (), "now"),
        ("True", "then", (), "then"),
        ("True", "then", ("bad",), "now"),
        ("False", "then", ("bad",), "then"),
    ],
)
def test_a_condition_keeps_the_time_of_its_last_transition(before, since, problems, then):
    conditions = {"Accepted": GroupCondition("Accepted", before, since=since)}
    row = GroupRow("shop", "cart", GroupSpec(), problems, generation=3, conditions=conditions)
    assert row.judged("now") == Accepted(problems, 3, then)


def test_without_a_spec_there_is_nothing_to_accept():
    assert GroupRow("shop", "cart").judged("now") is None
    assert "conditions" not in affinity_group(GroupStatus("shop", "cart")).status


def test_a_condition_tells_what_is_ignored():
    accepted = Accepted(("spec.size: 0 is not allowed", "spec.policy: x"), 3, "2026-11-21T10:00:00Z")
    assert affinity_group(GroupStatus("shop", "cart", accepted=accepted)).status["conditions"] == [
        {
            "type": "Accepted",
            "status": "False",
            "reason": "PartlyIgnored",
            "message": "spec.size: 0 is not allowed; spec.policy: x",
            "observedGeneration": 3,
            "lastTransitionTime": "2026-11-21T10:00:00Z",
        }
    ]


def test_the_key_of_a_row_is_that_of_its_deletion():
    resource = affinity_groups()
    row = resource.row(json.dumps({**affinity_group(GroupStatus("shop", "Cart")).body}).encode())
    gone = resource.gone_key(Metadata(name=object_name("Cart"), namespace=row.namespace))
    assert resource.key(row) == gone
