"""Groups that were cut come together again by evictions, on a real control plane: budgets rule, nothing is evicted for
nothing, and a crash in the middle costs no second pod.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from lab.cluster.binaries import REPOSITORY, Binaries
from lab.cluster.cluster import Cluster, Terms
from numakin.kubectl.apiserver import connect
from numakin.kubectl.evicting import Evicting
from numakin.kubectl.reach import Direct
from tests.cluster.conftest import made, up
from tests.cluster.rights import requests
from tests.cluster.workloads import Deployment, Namespace, deployment, nodes_by_group, only, published

pytestmark = pytest.mark.thorough

NODES = {f"node-{number}": "epyc-7763-nps2" for number in range(3)}
SHORT_LEASE = ("--lease-duration", "3", "--renew-deadline", "2", "--retry-period", "0.5")
OPTIONS = (*SHORT_LEASE, "--regroup-period", "0.5", "--regroup", "evict", "--regroup-budget", "100")
ACCOUNT = "system:serviceaccount:numakin:numakin-extender"


@pytest.fixture(scope="module")
def evicting(kubernetes: Binaries, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    terms = Terms(NODES, extenders=2, extender_options=OPTIONS)
    with up(kubernetes, terms, request) as cluster:
        role = REPOSITORY / "manifests" / "components" / "regroup" / "evicting.yaml"
        cluster.apply(yaml.safe_load_all(role.read_text()))
        yield cluster


@pytest.fixture
def shop(evicting: Cluster) -> Iterator[Namespace]:
    yield from made(evicting)


def group(name: str, replicas: int, *, regroup: str = "evict", **more: Any) -> Deployment:
    annotations = {"group.numakin.io": name, "regroup.numakin.io": regroup}
    return deployment(name, replicas, annotations=annotations, cpu="1", **more)


def cut(shop: Namespace, name: str, **more: Any) -> None:
    """A group of six on node-0, and two that are bound to node-1 by hand while all nodes are open: whatever else is
    closed meanwhile, the group could be planned to go there.
    """
    with only(shop, "node-0"):
        shop.deploy(group(name, 6, **more))
        shop.until_running(6)
    plane = shop.cluster.plane
    plane.scheduler.kill()
    shop.cluster.kubectl("scale", f"deployment/{name}", "--replicas=8", "-n", shop.name)
    shop.cluster.until(lambda: len(shop.pods()) == 8, "two more to be made")
    for pod in shop.pods():
        if not pod["spec"].get("nodeName"):
            bind(shop, pod["metadata"]["name"], "node-1")
    plane.scheduler.start()


def bind(shop: Namespace, pod: str, node: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
    shop.cluster.plane.api.request("POST", f"/api/v1/namespaces/{shop.name}/pods/{pod}/binding", None, body)


def record(shop: Namespace, name: str) -> dict[str, Any]:
    """As it is written on the group's object; empty where nothing is."""
    told = json.loads(shop.cluster.kubectl("get", "affinitygroup", name, "-n", shop.name, "-o", "json"))
    return json.loads(told["metadata"].get("annotations", {}).get("numakin.io/regroup", "{}"))


def asked(shop: Namespace, user: str = ACCOUNT) -> list[int]:
    """What the API server answered to evictions in the namespace."""
    return [
        event["responseStatus"]["code"]
        for event in requests(shop.cluster.plane.audit_log, user)
        if event["stage"] == "ResponseComplete"
        and (what := event.get("objectRef", {})).get("subresource") == "eviction"
        and what["namespace"] == shop.name
    ]


def whole(shop: Namespace, name: str) -> bool:
    running = [pod for pod in shop.bound() if not pod["metadata"].get("deletionTimestamp")]
    return len(running) == 8 and nodes_by_group(shop.pods()).get(name) == {"node-0"}


def reasons(shop: Namespace) -> set[str]:
    events = shop.cluster.plane.api.get(f"/api/v1/namespaces/{shop.name}/events").json()["items"]
    return {event["reason"] for event in events}


def test_a_group_that_says_so_comes_together_again_by_itself(shop: Namespace):
    cut(shop, "cut")
    shop.cluster.until(lambda: whole(shop, "cut"), "the group to be whole again")
    assert asked(shop) == [201, 201]
    shop.cluster.until(lambda: {"NumaEvicted", "NumaRegrouped"} <= reasons(shop), "it to be told by Events")
    shop.cluster.until(lambda: record(shop, "cut").get("step") is None, "the last step to be over")


def test_a_group_that_does_not_say_so_stays_as_it_is(shop: Namespace):
    cut(shop, "cut", regroup="never")
    shop.cluster.until(lambda: planned(shop, "cut"), "a plan to be found")
    assert asked(shop) == []


def planned(shop: Namespace, name: str) -> bool:
    answer = shop.cluster.extenders[0].get(f"/api/v1/regroup?group={shop.name}/{name}")
    return bool(answer["evictions"]["steps"])


def test_a_disruption_budget_is_waited_for(shop: Namespace):
    budget = {
        "apiVersion": shop.cluster.plane.release.known(
            {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "cut"}}
        )["apiVersion"],
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "cut"},
        "spec": {"minAvailable": 8, "selector": {"matchLabels": {"app": "cut"}}},
    }
    shop.cluster.kubectl("apply", "-n", shop.name, "-f", "-", text=json.dumps(budget))
    cut(shop, "cut")
    shop.cluster.until(lambda: 429 in asked(shop), "an eviction to be refused")
    assert 201 not in asked(shop)
    assert len(shop.bound()) == 8
    shop.cluster.kubectl("delete", "poddisruptionbudget", "cut", "-n", shop.name)
    shop.cluster.until(lambda: whole(shop, "cut"), "the group to be whole again")
    assert asked(shop).count(201) == 2


def test_a_crash_of_the_extender_that_leads_costs_no_second_pod(shop: Namespace):
    """It dies once the pod is evicted, while the one in its place waits for a node."""
    cluster = shop.cluster
    cluster.until(lambda: sum(leading(extender) for extender in cluster.extenders) == 1, "one replica to lead")
    (leader,) = (extender for extender in cluster.extenders if leading(extender))
    cut(shop, "cut")
    cluster.plane.scheduler.kill()
    cluster.until(lambda: 201 in asked(shop), "a pod to be evicted")
    leader.process.kill()
    try:
        (other,) = (extender for extender in cluster.extenders if extender is not leader)
        cluster.until(lambda: leading(other), "the other replica to lead")
        cluster.plane.scheduler.start()
        cluster.until(lambda: whole(shop, "cut"), "the group to be whole again")
        assert asked(shop).count(201) == 2
    finally:
        leader.start()
        cluster.until(cluster.all_report, "the killed replica to know every node again")


def leading(extender: Any) -> bool:
    return extender.process.running and extender.metric("numakin_extender_leading") == 1


def test_a_person_carries_a_plan_out_once(shop: Namespace):
    """Of pods that do not say evict: the person does."""
    cut(shop, "cut", regroup="never")
    cluster = shop.cluster
    cluster.until(lambda: all(planned_by(extender, shop) for extender in cluster.extenders), "a plan to be found")
    cluster.until(lambda: "cut" in published(shop), "the group's object")
    said: list[str] = []
    api, extender = connect(str(cluster.plane.kubeconfig), ""), Direct(f"http://{cluster.extenders[0].web}")
    rows = Evicting(api, extender, f"{shop.name}/cut", said.append).carry_out()
    assert [row["done"] for row in rows] == [True, True], rows
    assert whole(shop, "cut")
    assert asked(shop) == [], "the extender itself has evicted nothing"


def planned_by(extender: Any, shop: Namespace) -> bool:
    """Whether it knows that node-0 is open."""
    steps = extender.get(f"/api/v1/regroup?group={shop.name}/cut")["evictions"]["steps"]
    return {each["step"]["node"] for each in steps} == {"node-0"}
