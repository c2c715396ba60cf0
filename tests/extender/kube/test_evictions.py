"""Pods are evicted by the subresource that PodDisruptionBudgets rule, and by no other way."""

from __future__ import annotations

import json

import pytest

from extender.kube.api import Api
from extender.kube.config import connect
from extender.kube.evictions import Answered, Evictions
from lab.standins.apiserver import ApiServer
from lab.standins.apiserver.faults import THROTTLED, Cut


@pytest.fixture
def uid(server: ApiServer) -> str:
    """Of a pod that runs."""
    pod = server.create_pod("web-1", "shop", labels={"app": "web"})
    server.create_node("n1")
    server.bind("web-1", "n1", "shop")
    server.set_phase("web-1", "Running", "shop")
    return pod["metadata"]["uid"]


def leaving(server: ApiServer) -> bool:
    return bool(server.get("v1", "pods", "web-1", "shop")["metadata"].get("deletionTimestamp"))


def budget(server: ApiServer, allowed: int, name: str = "web") -> None:
    body = {"metadata": {"name": name}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}}
    server.create("policy/v1", "poddisruptionbudgets", body, "shop")
    status = {"disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2}
    server.patch("policy/v1", "poddisruptionbudgets", name, {"status": status}, namespace="shop", subresource="status")


def test_the_pod_is_being_deleted_with_its_grace(api: Api, server: ApiServer, uid: str):
    assert Evictions(api).ask("shop", "web-1", uid).answered is Answered.ACCEPTED
    assert leaving(server)


def test_asking_twice_evicts_once(api: Api, server: ApiServer, uid: str):
    budget(server, 1)
    evictions = Evictions(api)
    assert [evictions.ask("shop", "web-1", uid).answered for _ in range(2)] == [Answered.ACCEPTED] * 2
    assert server.get("policy/v1", "poddisruptionbudgets", "web", "shop")["status"]["disruptionsAllowed"] == 0


def test_a_budget_that_allows_none_refuses(api: Api, server: ApiServer, uid: str):
    budget(server, 0)
    answer = Evictions(api).ask("shop", "web-1", uid)
    assert answer.answered is Answered.REFUSED
    assert "would violate the pod's disruption budget" in answer.why
    assert not leaving(server)


def test_another_pod_of_that_name_is_left_alone(api: Api, server: ApiServer, uid: str):
    """As of a StatefulSet, whose pods come again by their names."""
    assert Evictions(api).ask("shop", "web-1", "uid-of-before").answered is Answered.FAILED
    assert not leaving(server)


def test_an_api_server_that_is_busy_says_when_to_come_again(api: Api, server: ApiServer, uid: str):
    server.order(THROTTLED, resource="pods/eviction")
    answer = Evictions(api).ask("shop", "web-1", uid)
    assert (answer.answered, answer.retry_after_s) == (Answered.REFUSED, 1.0)


def test_a_lost_answer_tells_nothing(api: Api, server: ApiServer, uid: str):
    server.order(Cut(), resource="pods/eviction")
    assert Evictions(api).ask("shop", "web-1", uid).answered is Answered.FAILED


def test_without_the_right_it_is_denied(server: ApiServer, uid: str, tmp_path):
    token = server.grant("extender", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "delete"]}])
    api = connect(str(server.kubeconfig(tmp_path / "other", token)), {})
    answer = Evictions(api).ask("shop", "web-1", uid)
    assert answer.answered is Answered.DENIED
    assert 'cannot create resource "pods/eviction"' in answer.why


def test_the_version_is_the_one_that_is_served(api: Api, server: ApiServer, uid: str):
    Evictions(api).ask("shop", "web-1", uid)
    (request,) = (each for each in server.asked if each.subresource == "eviction")
    assert json.loads(request.body)["apiVersion"] == "policy/v1"
