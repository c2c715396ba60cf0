"""The same questions through the API server's service proxy, with a user's own kubeconfig and rights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lab.standins.apiserver import ApiServer, faults
from numakin.kubectl.apiserver import connect
from numakin.kubectl.reach import VIEWER_HEADER, ViewerToken
from tests.manifests.rendered import MANIFESTS
from tests.numakin.kubectl.asking import Told, ask
from tests.numakin.kubectl.documents import deployment

VIEWER = next(yaml.safe_load_all((MANIFESTS / "base/viewer.yaml").read_text()))
PROXY, NODES, *_ = VIEWER["rules"]


@pytest.fixture
def api(extender) -> Iterator[ApiServer]:
    with ApiServer() as server:
        server.create("v1", "namespaces", {"metadata": {"name": "numakin"}})
        server.create("v1", "services", {"metadata": {"name": "numakin-extender"}}, "numakin")
        server.behind.backends["services", "numakin", "numakin-extender", "web"] = f"http://{extender.web_address}"
        yield server


def asked(api: ApiServer, folder: Path, *words: str, token: str = "admin-token", namespace: str = "shop") -> Told:
    config = api.kubeconfig(folder / "config", token, namespace)
    return ask(*words, KUBECONFIG=str(config))


@pytest.mark.parametrize("command", [("map",), ("groups", "-A"), ("top", "--once"), ("explain", "pod", "cart-0")])
def test_every_question_is_answered(api, tmp_path, command):
    received = asked(api, tmp_path, *command)
    assert received.code == 0, received.err


def test_the_namespace_is_the_contexts(api, tmp_path):
    assert "shop/boutique" in asked(api, tmp_path, "groups").out
    assert "in namespace default" in asked(api, tmp_path, "groups", namespace="default").out


def test_a_plan_takes_only_nodes_that_kube_scheduler_may_use(api, tmp_path, written):
    api.create_node("node-1", spec={"unschedulable": True})
    api.create_node("node-2")
    received = asked(api, tmp_path, "plan", "-f", written(deployment(2)), "-o", "json")
    assert received.code == 0, received.err
    assert [row["node"] for row in received.json["pods"]] == ["node-2"] * 2


def test_a_viewer_needs_to_read_and_to_plan_one_right_more(api, tmp_path, written):
    api.create_node("node-1")
    viewer = api.grant("viewer", [PROXY | {"verbs": ["get"]}, NODES])
    planner = api.grant("planner", [PROXY | {"verbs": ["get", "create"]}, NODES])
    assert asked(api, tmp_path, "map", token=viewer).code == 0
    received = asked(api, tmp_path, "plan", "-f", written(deployment(1)), token=viewer)
    assert received.code == 3
    assert 'cannot create resource "services/proxy"' in received.err
    assert asked(api, tmp_path, "plan", "-f", written(deployment(1)), token=planner).code == 0


def test_without_the_right_to_list_nodes_every_node_is_taken_and_that_is_said(api, tmp_path, written):
    token = api.grant("planner", [PROXY | {"verbs": ["get", "create"]}])
    received = asked(api, tmp_path, "plan", "-f", written(deployment(1)), token=token)
    assert (received.code, "may not list nodes" in received.err) == (0, True)


@pytest.mark.parametrize("code", [429, 500, 503, 504])
def test_nodes_that_are_not_told_are_not_taken_for_none(api, tmp_path, written, code):
    api.order(faults.Answer(code, b"come back later"), "list", "nodes")
    received = asked(api, tmp_path, "plan", "-f", written(deployment(1)))
    assert (received.code, received.out) == (3, "")
    (line,) = received.err.splitlines()
    assert f"the API server answers {code}: come back later" in line


def test_an_affinity_without_its_operator_costs_one_line(api, tmp_path, written):
    api.create_node("node-1")
    wrong = deployment(1)
    terms = [{"matchExpressions": [{"key": "zone"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    wrong["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": required}
    received = asked(api, tmp_path, "plan", "-f", written(wrong))
    assert received.code == 2
    (line,) = received.err.splitlines()
    assert "an expression has no operator" in line


def test_who_may_not_is_told_what_it_takes(api, tmp_path):
    received = asked(api, tmp_path, "map", token=api.grant("nobody", []))
    assert received.code == 3
    (line,) = received.err.splitlines()
    assert 'User "nobody" cannot get resource "services/proxy"' in line
    assert "ClusterRole numakin-viewer has it" in line


@pytest.mark.parametrize(("change", "why"), [
    (lambda api: api.behind.backends.clear(), "no replica of the extender answers"),
    (lambda api: api.delete("v1", "services", "numakin-extender", "numakin"), "is numakin installed there?"),
], ids=["no replica", "not installed"])  # fmt: skip
def test_what_is_missing_is_told_in_one_line(api, tmp_path, change, why):
    change(api)
    received = asked(api, tmp_path, "map")
    assert received.code == 3
    (line,) = received.err.splitlines()
    assert why in line


def test_an_unknown_user_is_told_to_log_in(api, tmp_path):
    received = asked(api, tmp_path, "map", token="stale")
    assert received.code == 3
    assert "log in again" in received.err


def test_another_namespace_of_numakins_is_an_option(api, tmp_path):
    received = asked(api, tmp_path, "map", "--numakin-namespace", "elsewhere")
    assert "there is no service elsewhere/numakin-extender" in received.err


def test_where_there_is_an_account_for_viewers_its_token_goes_along(api, tmp_path):
    api.create("v1", "serviceaccounts", {"metadata": {"name": "numakin-viewer"}}, "numakin")
    assert asked(api, tmp_path, "map").code == 0
    (granted,) = [request for request in api.asked if request.subresource == "token"]
    assert json.loads(granted.body)["spec"] == {"audiences": ["numakin"], "expirationSeconds": 600}
    (passed, *_) = [request for request in api.asked if request.subresource == "proxy"]
    assert passed.headers["x-numakin-token"].count(".") == 2
    assert "Bearer" not in passed.headers["x-numakin-token"]


def test_a_token_that_was_not_given_for_once_is_asked_for_again(api, tmp_path):
    """`top` and comparisons ask for minutes: they were told that they may not read."""
    api.create("v1", "serviceaccounts", {"metadata": {"name": "numakin-viewer"}}, "numakin")
    api.order(faults.THROTTLED, "create", "serviceaccounts/token")
    token = ViewerToken(connect(str(api.kubeconfig(tmp_path / "config", "admin-token", "shop")), ""), "numakin")
    assert token.headers == {}
    given = token.headers
    assert given[VIEWER_HEADER].count(".") == 2
    assert token.headers == given


def test_who_may_not_have_a_token_is_not_refused_again_with_every_question(api, tmp_path):
    token = ViewerToken(
        connect(str(api.kubeconfig(tmp_path / "config", api.grant("nobody", []), "shop")), ""), "numakin"
    )
    assert token.headers == token.headers == {}
    assert sum(request.subresource == "token" for request in api.asked) == 1
