"""Pods with resources, claims and a scheduling group of their own, as a real API server takes them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab.standins.apiserver import ApiServer
from tests.lab.standins.apiserver.asking import asked

PODS = "/api/v1/namespaces/default/pods"


def pod(spec: dict[str, Any], *containers: dict[str, Any]) -> dict[str, Any]:
    made = [{"name": f"c{at}", "image": "x", "resources": resources} for at, resources in enumerate(containers)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": made, **spec}}


def created(server: ApiServer, body: dict[str, Any]) -> tuple[int, Any]:
    return asked(server, PODS, "POST", json.dumps(body).encode())[:2]


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
def test_what_a_pod_s_own_resources_leave_out_is_filled_in(server: ApiServer, own, containers, requests):
    status, made = created(server, pod({"resources": own}, *containers))
    assert (status, made["spec"]["resources"]["requests"]) == (201, requests)


@pytest.mark.parametrize(
    ("own", "container", "message"),
    [
        (
            {"requests": {"cpu": "1"}},
            {"requests": {"cpu": "1500m"}},
            "must be greater than or equal to aggregate container requests of 1500m",
        ),
        (
            {"limits": {"cpu": "1"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            'spec.resources.limits[cpu]: Invalid value: "2": must be less than or equal to pod limits of 1',
        ),
        ({"requests": {"example.com/gpu": "1"}}, {}, "spec.resources.requests[example.com/gpu]: Unsupported value"),
        ({"claims": [{"name": "gpu"}]}, {}, "spec.resources.claims: Forbidden"),
    ],
    ids=["less than its containers' requests", "a container's limit above it", "another resource", "claims"],
)
def test_what_contradicts_its_containers_is_refused(server: ApiServer, own, container, message: str):
    status, answer = created(server, pod({"resources": own}, container))
    assert status == 422
    assert message in answer["message"]


def test_claims_of_containers_and_a_scheduling_group_are_kept(server: ApiServer):
    spec = {
        "schedulingGroup": {"podGroupName": "gang"},
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}],
    }
    status, made = created(server, pod(spec, {"claims": [{"name": "gpu"}], "requests": {"cpu": "1"}}))
    assert status == 201
    assert made["spec"]["schedulingGroup"] == {"podGroupName": "gang"}
    assert made["spec"]["containers"][0]["resources"]["claims"] == [{"name": "gpu"}]
