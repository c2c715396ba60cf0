"""Requests to the API server: errors as they are told, connections kept."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from extender.kube.api import Api, ApiError, Unreachable
from extender.kube.config import KEPT, connect
from lab.standins.apiserver import ApiServer
from lab.standins.apiserver.faults import THROTTLED, Answer, Cut
from lab.standins.patience import PATIENCE_S

PODS = "/api/v1/pods"


def test_a_status_is_told_by_its_reason_and_message(api):
    with pytest.raises(ApiError, match=r'^404 NotFound: nodes "n1" not found$') as raised:
        api.get("/api/v1/nodes/n1")
    assert (raised.value.code, raised.value.reason, raised.value.retry_after_s) == (404, "NotFound", 0)


def test_plain_text_is_told_as_it_is(server, api):
    server.order(THROTTLED, "list", "pods")
    with pytest.raises(ApiError, match="429 : Too many requests, please try again later") as raised:
        api.get(PODS)
    assert raised.value.retry_after_s == 1


@pytest.mark.parametrize("retry_after", ["", "soon", "-1", "Fri, 20 Nov 2026 21:00:00 GMT"])
def test_a_retry_after_that_is_no_number_is_none(server, api, retry_after):
    server.order(Answer(503, b"", {"Retry-After": retry_after}), "list", "pods")
    with pytest.raises(ApiError) as raised:
        api.get(PODS)
    assert raised.value.retry_after_s == 0


@pytest.mark.parametrize("retry_after", ["9" * 400, "86400"])
def test_a_retry_after_without_measure_is_bounded(server, api, retry_after):
    server.order(Answer(503, b"", {"Retry-After": retry_after}), "list", "pods")
    with pytest.raises(ApiError) as raised:
        api.get(PODS)
    assert raised.value.retry_after_s == 300


@pytest.mark.parametrize("body", [b"null", b"[]", b'"x"', b'{"message": null, "reason": 5}', b"[" * 100_000])
def test_a_refusal_of_any_shape_is_told(server, api, body):
    server.order(Answer(500, body), "list", "pods")
    with pytest.raises(ApiError, match=r"^500 "):
        api.get(PODS)


@pytest.mark.parametrize("body", [b"<html>Please log in</html>", b"", b"null", b"[]", b"\xff", b"[" * 100_000])
def test_an_answer_that_is_no_object_is_none_of_an_api_server(server, api, body):
    server.order(Answer(200, body), "list", "pods")
    with pytest.raises(Unreachable, match=r"GET /api/v1/pods: the answer is no JSON object: b'"):
        api.get(PODS).json()


def test_credentials_that_can_not_be_read_are_told_as_every_other_failure():
    class Unreadable:
        configuration, rest_client = SimpleNamespace(host="http://127.0.0.1:1"), None

        def update_params_for_auth(self, *_):
            raise FileNotFoundError(2, "No such file or directory", "/run/token")

    with pytest.raises(Unreachable, match="/run/token"):
        Api(Unreadable()).get(PODS)


def test_a_message_is_bounded(server, api):
    server.order(Answer(500, b"x" * 100_000), "list", "pods")
    with pytest.raises(ApiError) as raised:
        api.get(PODS)
    assert len(str(raised.value)) < 600


def test_a_refusal_is_not_repeated_by_itself(server, api):
    """A create that was cut may have happened: only who asked can know whether to ask again."""
    server.order(Cut(), "create", "pods")
    with pytest.raises(Unreachable, match="POST /api/v1/namespaces/default/pods"):
        api.request("POST", "/api/v1/namespaces/default/pods", body={"metadata": {"name": "a"}})
    assert server.count("create", "pods") == 1


def test_nobody_there_is_said(tmp_path):
    with ApiServer() as gone:
        path = gone.kubeconfig(tmp_path / "kubeconfig")
    with pytest.raises(Unreachable, match=f"GET {PODS}"):
        connect(str(path), {}).get(PODS)


def test_connections_are_kept(api):
    for _ in range(5):
        api.get(PODS)
    with pytest.raises(ApiError):
        api.get("/api/v1/nodes/none")
    api.get(PODS)
    pools = api._client.rest_client.pool_manager.pools
    (key,) = pools.keys()
    pool = pools[key]
    assert pool.num_connections == 1
    assert pool.num_requests == 7


def test_connections_of_all_that_ask_at_one_time_are_kept(api):
    together = threading.Barrier(KEPT)

    def ask(_: int) -> None:
        with api.stream(PODS, {}, PATIENCE_S) as answer:
            together.wait(PATIENCE_S)
            answer.read()

    with ThreadPoolExecutor(KEPT) as threads:
        for _ in range(3):
            [*threads.map(ask, range(KEPT))]
    pools = api._client.rest_client.pool_manager.pools
    (key,) = pools.keys()
    assert pools[key].num_connections == KEPT


def test_a_stream_that_is_left_early_gives_no_half_read_connection_back(server, api):
    server.create_pod("a")
    with api.stream(PODS, {"watch": "true"}, 10) as response:
        assert next(response.stream())
    assert api.get(PODS).json()["kind"] == "PodList"
