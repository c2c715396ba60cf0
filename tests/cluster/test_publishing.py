"""What the extender publishes, and what it is asked, on a real API server: ownership of fields, schemas, defaults.

The stand-in of the other tests keeps each manager's fields apart and no more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from extender.kube.api import MERGE_PATCH, Api, ApiError
from extender.kube.objects.affinitygroup import EdgeStatus, GroupStatus, MemberStatus, affinity_group
from extender.kube.publish import Desired, Publisher
from lab.cluster.cluster import Cluster
from tests.cluster.conftest import made
from tests.cluster.workloads import Namespace
from tests.extender.kube.objects.specs import BAD, TAKEN
from tests.manifests.rendered import files, one
from tests.supervised import threads

CREATES = {"dryRun": "All", "fieldValidation": "Strict"}
COPY = "copy.example"
"""The group of a copy of our definition, which the cluster's own extender knows nothing of."""


def copied(group: GroupStatus) -> Desired:
    made = affinity_group(group)
    body = {**made.body, "apiVersion": made.body["apiVersion"].replace("numakin.io", COPY)}
    return replace(made, path=made.path.replace("numakin.io", COPY), body=body)


def published(api: Api, *groups: GroupStatus) -> Publisher:
    """A publisher of its own, after one round."""
    publisher = Publisher(api, lambda: map(copied, groups), threads=threads())
    publisher.round()
    return publisher


@pytest.fixture(scope="module")
def api(ten_nodes: Cluster) -> Api:
    """Of a cluster that has the copy."""
    definition = json.loads(json.dumps(one(files(), "CustomResourceDefinition", "affinitygroups.numakin.io")))
    definition["metadata"]["name"] = f"affinitygroups.{COPY}"
    definition["spec"]["group"] = COPY
    definition["spec"]["names"].pop("shortNames", None)
    ten_nodes.apply([definition])
    ten_nodes.kubectl("wait", "--for=condition=Established", "crd", f"affinitygroups.{COPY}", "--timeout=180s")
    return ten_nodes.plane.api


@pytest.fixture
def cart(namespace: Namespace) -> GroupStatus:
    return GroupStatus(namespace.name, "cart", (MemberStatus("cart-1", "node-1", "0"),), 0.925)


def stored(api: Api, group: GroupStatus) -> dict[str, Any]:
    return api.get(copied(group).path).json()


def test_an_owner_that_applied_is_not_overruled(api: Api, cart: GroupStatus):
    group = copied(cart)
    api.apply(
        group.path,
        {**group.body, "metadata": {**group.body["metadata"], "annotations": {"numakin.io/group": "x"}}},
        manager="someone",
    )
    publisher = published(api, cart)
    assert (publisher.published, publisher.left_to_others) == (0, 1)
    assert "status" not in stored(api, cart)


def test_nor_is_one_that_wrote(api: Api, cart: GroupStatus):
    published(api, cart)
    path = copied(cart).path
    api.request("PATCH", f"{path}/status", body={"status": {"locality": "1 %"}}, content_type=MERGE_PATCH)
    publisher = published(api, cart)
    assert (publisher.published, publisher.left_to_others) == (0, 1)
    assert stored(api, cart)["status"]["locality"] == "1 %"


def test_a_users_spec_and_what_was_learned_outlive_a_status_that_knows_neither(api: Api, cart: GroupStatus):
    edge = EdgeStatus("shop/Deployment/cart", "shop/StatefulSet/db", 1000, 20)
    published(api, GroupStatus(cart.namespace, "cart", edges=(edge,), learned="text"))
    path = copied(cart).path
    api.request("PATCH", path, body={"spec": {"size": 8}}, content_type=MERGE_PATCH)
    assert published(api, cart).published == 1
    now = stored(api, cart)
    assert (now["spec"], now["status"]["learned"], now["status"]["memberCount"]) == ({"size": 8}, "text", 1)


@pytest.fixture
def by_subresource(ten_nodes: Cluster) -> None:
    """What a manager applied to an object and to its status are two sets of fields."""
    if ten_nodes.plane.release.minor < 22:
        pytest.skip("before Kubernetes 1.22 an object's fields and its status' take each other's place for one manager")


@pytest.mark.usefixtures("by_subresource")
def test_members_that_have_gone_are_not_shown(api: Api, cart: GroupStatus):
    published(api, cart)
    assert published(api, GroupStatus(cart.namespace, "cart")).published == 1
    status = stored(api, cart)["status"]
    assert (status["memberCount"], status.get("members") or []) == (0, [])


@pytest.mark.usefixtures("by_subresource")
def test_what_is_as_it_was_is_no_write(api: Api, cart: GroupStatus):
    published(api, cart)
    before = stored(api, cart)["metadata"]["resourceVersion"]
    assert published(api, cart).published == 1
    assert stored(api, cart)["metadata"]["resourceVersion"] == before


def test_the_fullest_status_is_taken(api: Api, cart: GroupStatus):
    members = tuple(
        MemberStatus("p" * 250 + f"{n:03}", "n" * 253, "0-1", "Deployment/" + "w" * 253) for n in range(600)
    )
    edges = tuple(EdgeStatus("a" * 320, "b" * 320 + str(n), n, n) for n in range(600))
    full = GroupStatus(cart.namespace, "cart", members, 1.0, edges, "x" * 65_536)
    assert published(api, full).published == 1


@pytest.fixture(scope="module")
def unchanged(ten_nodes: Cluster) -> Iterator[Namespace]:
    """A namespace in which nothing is made that stays."""
    yield from made(ten_nodes)


def created(api: Api, namespace: Namespace, spec: Any) -> dict[str, Any]:
    path = f"/apis/numakin.io/v1alpha1/namespaces/{namespace.name}/affinitygroups"
    body = {"apiVersion": "numakin.io/v1alpha1", "kind": "AffinityGroup", "metadata": {"name": "a"}, "spec": spec}
    return api.request("POST", path, CREATES, body).json()


def test_the_definition_takes_each_spec_that_the_extender_takes(api: Api, unchanged: Namespace):
    for spec, _ in TAKEN:
        if spec is not None:
            assert created(api, unchanged, spec)["spec"] == spec


@pytest.mark.parametrize("spec", [spec for spec, _ in BAD], ids=lambda spec: json.dumps(spec)[:40])
def test_and_refuses_each_that_the_extender_does_not(api: Api, unchanged: Namespace, spec: Any):
    with pytest.raises(ApiError, match=r"^(400|422) "):
        created(api, unchanged, spec)


@pytest.fixture
def pods_resources(ten_nodes: Cluster) -> None:
    if ten_nodes.plane.release.minor < 34:
        pytest.skip("before Kubernetes 1.34 a pod has no resources of its own unless a feature gate says so")


@pytest.mark.usefixtures("pods_resources")
@pytest.mark.parametrize(
    ("own", "containers", "requests"),
    [
        ({"limits": {"cpu": "2"}}, [{}, {}], {"cpu": "2"}),
        ({"limits": {"cpu": "2"}}, [{"requests": {"cpu": "500m"}}, {"limits": {"cpu": "1"}}], {"cpu": "1500m"}),
        ({"limits": {"memory": "1Gi"}}, [{"requests": {"cpu": "1"}}], {"cpu": "1", "memory": "1Gi"}),
        ({"requests": {"cpu": "700m"}}, [{}], {"cpu": "700m"}),
    ],
    ids=["the limit", "the containers' sum", "the sum of what has no limit", "no limits, nothing filled in"],
)
def test_what_a_pods_own_resources_leave_out_is_filled_in(api: Api, unchanged: Namespace, own, containers, requests):
    """So the extender reads a pod's requests alone."""
    given = [{"name": f"c{at}", "image": "x", "resources": resources} for at, resources in enumerate(containers)]
    body = {"metadata": {"name": "p"}, "spec": {"containers": given, "resources": own}}
    answer = api.request("POST", f"/api/v1/namespaces/{unchanged.name}/pods", CREATES, body).json()
    assert answer["spec"]["resources"]["requests"] == requests
