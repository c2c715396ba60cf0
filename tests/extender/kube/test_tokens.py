"""An enforcer proves by its token which node it is, and no other."""

import pytest

from extender.kube.api import ApiError
from extender.kube.config import connect
from extender.kube.tokens import AUDIENCE, BadToken, node_in, node_of
from standins.apiserver import ApiServer

ACCOUNT = "numakin:numakin-enforcer"


@pytest.fixture
def node_1(server: ApiServer) -> ApiServer:
    server.create_node("node-1")
    server.create_pod("enforcer-x", "numakin", serviceAccountName="numakin-enforcer")
    server.bind("enforcer-x", "node-1", "numakin")
    return server


def test_a_token_of_the_enforcers_pod_names_its_node(node_1, api):
    token = node_1.token_for("numakin", "numakin-enforcer", AUDIENCE, "enforcer-x")
    assert node_of(api, token, ACCOUNT) == "node-1"


def test_a_token_for_another_audience_is_worth_nothing(node_1, api):
    token = node_1.token_for("numakin", "numakin-enforcer", "other", "enforcer-x")
    with pytest.raises(
        BadToken, match=r'token audiences \["other"\] is invalid for the target audiences \["numakin"\]'
    ):
        node_of(api, token, ACCOUNT)


def test_a_token_of_another_account_is_worth_nothing(node_1, api):
    token = node_1.token_for("numakin", "someone", AUDIENCE, "enforcer-x")
    with pytest.raises(
        BadToken, match="of system:serviceaccount:numakin:someone, not of system:serviceaccount:numakin:"
    ):
        node_of(api, token, ACCOUNT)


def test_a_deleted_pods_token_is_worth_nothing(node_1, api):
    token = node_1.token_for("numakin", "numakin-enforcer", AUDIENCE, "enforcer-x")
    node_1.delete("v1", "pods", "enforcer-x", "numakin", grace_s=0)
    with pytest.raises(BadToken, match="invalidated"):
        node_of(api, token, ACCOUNT)


def test_a_token_that_is_bound_to_no_pod_is_worth_nothing(node_1, api):
    token = node_1.tokens.make("numakin", "numakin-enforcer", (AUDIENCE,))
    with pytest.raises(BadToken, match="not bound to a pod on a node"):
        node_of(api, token, ACCOUNT)


@pytest.mark.parametrize("token", ["", "x" * 20_000, "a\nb", "ünïcode"])
def test_what_is_no_token_is_not_even_asked_about(node_1, api, token):
    with pytest.raises(BadToken, match="not a token"):
        node_of(api, token, ACCOUNT)
    assert node_1.count("create", "tokenreviews") == 0


def test_garbage_is_refused_without_being_repeated(node_1, api):
    with pytest.raises(BadToken, match="invalid bearer token") as raised:
        node_of(api, "secret-garbage", ACCOUNT)
    assert "secret-garbage" not in str(raised.value)


def test_an_api_server_that_ignores_audiences_is_not_trusted():
    user = {"username": "system:serviceaccount:numakin:numakin-enforcer"}
    with pytest.raises(BadToken, match="audience"):
        node_in({"authenticated": True, "user": user}, ACCOUNT)


def test_without_the_right_to_ask_that_is_said(server, tmp_path):
    nobody = connect(str(server.kubeconfig(tmp_path / "nobody", server.grant("nobody", ()))), {})
    with pytest.raises(ApiError, match="403 Forbidden"):
        node_of(nobody, "token", ACCOUNT)
