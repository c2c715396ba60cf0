"""Which pods are a Deployment's own while its rollout is awaited, and what ends a comparison."""

from __future__ import annotations

from typing import Any

import pytest

from numakin.kubectl.comparing import templates
from numakin.kubectl.comparing.deployment import Deployment
from numakin.kubectl.errors import CommandError
from tests.numakin.kubectl.comparing.patches import patched


def owned(name: str, owner: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, "ownerReferences": [{"uid": owner}]}, **more}


def pod(name: str, owner: str, phase: str = "Running") -> dict[str, Any]:
    return owned(name, owner, status={"phase": phase})


class Listed:
    """An API server that has one Deployment, rolled out with two replicas, its ReplicaSet, and these pods."""

    def __init__(self, *pods: dict[str, Any]) -> None:
        self.pods = pods

    def object(self, path: str, _query: Any = None) -> Any:
        if path.endswith("/pods"):
            return {"items": [*self.pods]}
        if path.endswith("/replicasets"):
            return {"items": [owned("web-1", "web"), owned("db-1", "db")]}
        status = {"observedGeneration": 1} | dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), 2)
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {}}
        return {"metadata": {"name": "web", "uid": "web", "generation": 1}, "spec": spec, "status": status}


def rolled_out(*pods: dict[str, Any]) -> list[str]:
    return [
        each["metadata"]["name"] for each in Deployment(Listed(*pods), "default", "web", timeout_s=0).rolled_out(None)
    ]


@pytest.mark.parametrize("other", [
    pod("evicted", "web-1", "Failed"), pod("done", "web-1", "Succeeded"), pod("others", "db-1"),
    {"metadata": {"name": "bare", "uid": "bare"}, "status": {"phase": "Running"}},
], ids=lambda other: other["metadata"]["name"])  # fmt: skip
def test_pods_that_ended_and_those_of_others_are_not_awaited(other):
    assert rolled_out(pod("a", "web-1"), pod("b", "web-1"), other) == ["a", "b"]


def test_an_old_pod_that_is_still_there_is():
    with pytest.raises(CommandError, match="was not rolled out"):
        rolled_out(pod("a", "web-1"), pod("b", "web-1"), pod("old", "web-1"))


def restarting(name: str, *restarts: int) -> dict[str, Any]:
    """restarts: of its containers."""
    return owned(
        name, "web-1", status={"phase": "Running", "containerStatuses": [{"restartCount": n} for n in restarts]}
    )


def test_pods_that_restarted_or_were_replaced_since_are_counted():
    server = Listed(restarting("a", 0, 2), restarting("b", 1))
    web = Deployment(server, "default", "web", timeout_s=0)
    pods = web.rolled_out(None)
    assert web.disturbed(pods) == 0, "what was before does not count"
    server.pods = restarting("a", 0, 3), restarting("b", 1)
    assert web.disturbed(pods) == 1
    server.pods = restarting("a", 1, 4), restarting("c", 0)
    assert web.disturbed(pods) == 2


class Compared:
    """An API server that has one Deployment, which is being compared."""

    def __init__(self, replicas: int) -> None:
        spec = {"replicas": replicas, "template": {"metadata": {}}}
        before = {"metadata": {"name": "web"}, "spec": spec}
        self.deployment = patched(before, templates.begun(before))
        self.deployment = patched(self.deployment, templates.changed(self.deployment, templates.WITH, "shop"))

    def object(self, _path: str, _query: Any = None) -> Any:
        return self.deployment


def test_one_that_an_autoscaler_changes_is_not_compared_any_further():
    """Else more pods of the one way would be compared with fewer of the other, and the ratio told as numakin's."""
    server = Compared(replicas=3)
    web = Deployment(server, "default", "web", timeout_s=0)
    web.must_run(templates.WITH)
    server.deployment = patched(server.deployment, {"spec": {"replicas": 5}})
    with pytest.raises(CommandError, match="somebody else has scaled deployment/web to 5 replicas"):
        web.must_run(templates.WITH)
