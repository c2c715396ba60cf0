"""AffinityGroup objects tell the story of a group, and keep what was learned."""

import json
import re

import pytest

from extender.kube.affinitygroup import (
    EdgeStatus,
    GroupRow,
    GroupStatus,
    MemberStatus,
    affinity_group,
    affinity_groups,
    homes,
    object_name,
)
from extender.kube.rows import Metadata

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
    assert all(len(one) <= 63 and re.fullmatch(dns_1123, one) for one in objects)


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
    row = affinity_groups().row(json.dumps(body).encode())
    assert row == GroupRow("shop", "Cart", learned="what was learned")


def test_a_users_wishes_are_read():
    body = {
        "metadata": {"name": "cart", "namespace": "shop"},
        "spec": {"policy": "restricted", "priority": 5, "size": 8},
    }
    assert affinity_groups().row(json.dumps(body).encode()) == GroupRow("shop", "cart", "restricted", 5, 8)


def test_an_object_without_anything_is_read_too():
    assert affinity_groups().row(b'{"metadata":{"name":"cart","namespace":"shop"}}') == GroupRow("shop", "cart")


def test_the_key_of_a_row_is_that_of_its_deletion():
    resource = affinity_groups()
    row = resource.row(json.dumps({**affinity_group(GroupStatus("shop", "Cart")).body}).encode())
    gone = resource.gone_key(Metadata(name=object_name("Cart"), namespace=row.namespace))
    assert resource.key(row) == gone
