"""An enforcer proves by its token which node it is, and no other."""

import json
from typing import Any

import pytest

from extender.kube.api import Answer, Api, ApiError
from extender.kube.config import connect
from extender.kube.tokens import AUDIENCE, BadToken, bound_in, node_of
from lab.standins.apiserver import ApiServer

ACCOUNT = "numakin:numakin-enforcer"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


@pytest.fixture
def node_1(server: ApiServer) -> ApiServer:
    server.create_node("node-1")
    server.create_pod("enforcer-x", "numakin", serviceAccountName="numakin-enforcer")
    server.bind("enforcer-x", "node-1", "numakin")
    return server


def test_a_token_of_the_enforcers_pod_names_its_node(node_1, api):
    token = node_1.token_for("numakin", "numakin-enforcer", AUDIENCE, "enforcer-x")
    assert node_of(api, token, ACCOUNT) == "node-1"


class TestBefore130:
    """The token names the pod alone."""

    @pytest.fixture
    def older(self, node_1: ApiServer) -> ApiServer:
        node_1.tokens.names_nodes = False
        return node_1

    def test_the_pods_node_is_asked_for(self, older: ApiServer, api):
        token = older.token_for("numakin", "numakin-enforcer", AUDIENCE, "enforcer-x")
        assert node_of(api, token, ACCOUNT) == "node-1"

    def test_a_pod_that_is_on_no_node_proves_nothing(self, older: ApiServer, api):
        older.create_pod("pending", "numakin", serviceAccountName="numakin-enforcer")
        token = older.token_for("numakin", "numakin-enforcer", AUDIENCE, "pending")
        with pytest.raises(BadToken, match="of a pod that is on no node: pending"):
            node_of(api, token, ACCOUNT)

    def test_another_pod_of_that_name_proves_nothing(self, older: ApiServer, api):
        """One that came between the answers, to another node."""
        token = older.token_for("numakin", "numakin-enforcer", AUDIENCE, "enforcer-x")
        review = api.request("POST", REVIEWS, body={"spec": {"token": token, "audiences": [AUDIENCE]}}).json()["status"]
        older.delete("v1", "pods", "enforcer-x", "numakin", grace_s=0)
        older.create_node("node-2")
        older.create_pod("enforcer-x", "numakin", serviceAccountName="numakin-enforcer")
        older.bind("enforcer-x", "node-2", "numakin")
        with pytest.raises(BadToken, match="on no node"):
            node_of(Reviewed(api, review), token, ACCOUNT)


class Reviewed:
    """The API server, but for this TokenReview, which it gave before."""

    def __init__(self, api: Api, status: dict[str, Any]) -> None:
        self._api, self._status = api, status

    def request(self, method: str, path: str, *more: Any, **named: Any) -> Answer:
        if path == REVIEWS:
            return Answer(201, json.dumps({"status": self._status}).encode(), path)
        return self._api.request(method, path, *more, **named)


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
        bound_in({"authenticated": True, "user": user}, ACCOUNT)


@pytest.mark.parametrize("names", [[""], ["a", "b"], []], ids=["empty", "two", "none"])
def test_a_node_without_one_name_is_none(names):
    extra = {"authentication.kubernetes.io/node-name": names}
    user = {"username": "system:serviceaccount:numakin:numakin-enforcer", "extra": extra}
    with pytest.raises(BadToken, match="not bound to a pod on a node"):
        bound_in({"authenticated": True, "audiences": [AUDIENCE], "user": user}, ACCOUNT)


def test_without_the_right_to_ask_that_is_said(server, tmp_path):
    nobody = connect(str(server.kubeconfig(tmp_path / "nobody", server.grant("nobody", ()))), {})
    with pytest.raises(ApiError, match="403 Forbidden"):
        node_of(nobody, "token", ACCOUNT)
