"""Which pods are a Deployment's own while its rollout is awaited."""

from __future__ import annotations

from typing import Any

import pytest

from numakin.kubectl.comparing.deployment import Deployment
from numakin.kubectl.errors import CommandError


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
