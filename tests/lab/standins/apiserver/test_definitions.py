"""The stand-in takes a CustomResourceDefinition, and an object of a built-in kind, only as the real API server does."""

import copy
import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.apiserver.model import refusals
from lab.standins.apiserver.server import ADMIN_TOKEN
from lab.standins.patience import PATIENCE_S
from tests.lab.standins.apiserver.recorded import exchanges
from tests.manifests.rendered import files, one

OURS = one(files(), "CustomResourceDefinition", "affinitygroups.numakin.io")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "main", "image": "i"}]},
}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running
        running.warned.clear()


def send(
    server: ApiServer, method: str, path: str, body: Any, media: str = "application/json"
) -> tuple[int, dict[str, Any], str]:
    """Status, body, and the Warning header."""
    where = urlsplit(server.url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=PATIENCE_S)
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": media}
    connection.request(method, path, json.dumps(body), headers)
    answer = connection.getresponse()
    result = json.loads(answer.read())
    connection.close()
    return answer.status, result, answer.getheader("Warning", "")


def slipped() -> dict[str, Any]:
    """Ours with what YAML makes of an unquoted comma in a column's description."""
    definition = copy.deepcopy(OURS)
    definition["spec"]["versions"][0]["additionalPrinterColumns"][1]["as NODE/NUMA-NODES"] = None
    return definition


def test_our_definition_is_taken(server):
    status, stored, warning = send(server, "POST", f"{DEFINITIONS}?fieldValidation=Strict", OURS)
    assert (status, warning) == (201, "")
    assert send(server, "GET", "/apis/numakin.io/v1alpha1/affinitygroups", None)[0] == 200
    assert stored["spec"] == OURS["spec"]


def test_kubectl_apply_is_refused_an_unknown_field_of_a_definition(server):
    status, refused, _ = send(server, "POST", f"{DEFINITIONS}?fieldValidation=Strict", slipped())
    assert status == 400
    field = "spec.versions[0].additionalPrinterColumns[1].as NODE/NUMA-NODES"
    assert refused["message"].endswith(f'strict decoding error: unknown field "{field}"')
    with pytest.raises(refusals.Refused):
        server.define(slipped())


def test_without_strictness_an_unknown_field_is_dropped_with_a_warning(server):
    status, stored, warning = send(server, "POST", DEFINITIONS, slipped())
    assert (status, stored["spec"]) == (201, OURS["spec"])
    assert 'unknown field \\"spec.versions[0].additionalPrinterColumns[1]' in warning


@pytest.mark.parametrize("validation", ["Strict", "Ignore"])
def test_server_side_apply_fails_on_an_unknown_field(server, validation):
    """500, whatever validation is asked for."""
    path = f"{DEFINITIONS}/affinitygroups.numakin.io?fieldManager=kubectl&fieldValidation={validation}"
    status, refused, _ = send(server, "PATCH", path, slipped(), "application/apply-patch+yaml")
    assert status == 500
    assert "field not declared in schema" in refused["message"]
    assert send(server, "PATCH", path, OURS, "application/apply-patch+yaml")[0] == 201


def test_a_protected_group_needs_an_approval_as_recorded(server):
    refused, taken = exchanges("05-nrt-crd")
    for exchange in (refused, taken):
        status, body, _ = send(server, "POST", DEFINITIONS, json.loads(exchange["request"]["body"]))
        assert status == exchange["response"]["status"]
        if status != 201:
            assert body == exchange["response"]["body"]


def without_type(schema: dict[str, Any]) -> None:
    del schema["properties"]["spec"]["properties"]["size"]["type"]


def without_items(schema: dict[str, Any]) -> None:
    del schema["properties"]["status"]["properties"]["members"]["items"]


def optional_key(schema: dict[str, Any]) -> None:
    schema["properties"]["status"]["properties"]["members"]["items"]["required"].remove("pod")


def misspelt_below_items(schema: dict[str, Any]) -> None:
    schema["properties"]["status"]["properties"]["members"]["items"]["requird"] = ["pod"]


@pytest.mark.parametrize(
    ("spoil", "received"),
    [
        (without_type, "must not be empty for specified object fields"),
        (without_items, "must be specified"),
        (optional_key, "so it must have a default or be a required property"),
        (misspelt_below_items, 'unknown field "spec.versions[0].schema.openAPIV3Schema.properties.status'),
    ],
)
def test_a_schema_that_is_not_structural_is_refused(server, spoil, received):
    definition = copy.deepcopy(OURS)
    spoil(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    with pytest.raises(refusals.Refused) as refused:
        server.define(definition)
    assert received in refused.value.message


def test_an_unknown_field_of_a_pod(server):
    pod = {**POD, "spec": {**POD["spec"], "nodNeame": "n1"}}
    path = "/api/v1/namespaces/default/pods"
    assert send(server, "POST", f"{path}?fieldValidation=Strict", pod)[0] == 400
    status, stored, warning = send(server, "POST", path, pod)
    assert (status, warning) == (201, '299 - "unknown field \\"spec.nodNeame\\""')
    assert "nodNeame" not in stored["spec"]


def test_a_test_fails_whose_client_was_warned():
    with pytest.warns(UserWarning, match="nodNeame"), ApiServer() as server:
        send(server, "POST", "/api/v1/namespaces/default/pods", {**POD, "spec": {**POD["spec"], "nodNeame": "n1"}})


def test_a_wrong_type_in_a_pod(server):
    status, refused, _ = send(server, "POST", "/api/v1/namespaces/default/pods", {**POD, "spec": {"containers": {}}})
    assert status == 400
    assert "spec.containers" in refused["message"]


SERVED = {
    "Namespace": "namespaces",
    "ServiceAccount": "serviceaccounts",
    "CustomResourceDefinition": "customresourcedefinitions",
}


@pytest.mark.parametrize("each", [file for file in files() if file["kind"] in SERVED], ids=lambda each: each["kind"])
def test_what_the_manifests_hold_is_taken(server, each):
    namespace = "default" if each["kind"] == "ServiceAccount" else ""
    server.create(each["apiVersion"], SERVED[each["kind"]], copy.deepcopy(each), namespace)
