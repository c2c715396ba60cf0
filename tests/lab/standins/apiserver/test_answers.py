"""How answers of the stand-in API server come, and how they fail when that is ordered."""

import http.client
import json
import threading
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from lab.standins.apiserver import exchange
from lab.standins.apiserver.faults import THROTTLED, Answer, Cut
from lab.standins.patience import PATIENCE_S
from tests.lab.standins.apiserver.asking import WEB, asked, pods


def test_large_answers_are_chunked_and_small_ones_are_not(server):
    _, _, small = asked(server, "/api/v1/pods")
    assert small["Content-Length"]
    pods(server, *(f"p{number}" for number in range(20)))
    _, _, large = asked(server, "/api/v1/pods")
    assert large["Transfer-Encoding"] == "chunked"


def test_a_body_over_the_limit_is_refused(server):
    code, body, _ = asked(server, "/api/v1/namespaces/default/pods", "POST", b"x" * 3_145_729)
    assert (code, body["message"]) == (413, "Request entity too large: limit is 3145728")


def test_faults_come_when_ordered_and_so_often(server):
    server.order(THROTTLED, "list", "pods", times=2)
    server.order(Answer(500, b"{}"), "list", "nodes")
    codes = [asked(server, path)[0] for path in ("/api/v1/pods", "/api/v1/nodes", "/api/v1/pods", "/api/v1/pods")]
    assert codes == [429, 500, 429, 200]


def test_a_cut_comes_without_the_last_chunk(server):
    server.order(Cut(), "watch", "pods", after=1)
    pods(server, "a")
    with pytest.raises(http.client.IncompleteRead):
        asked(server, "/api/v1/pods", watch="true")


def test_closing_ends_everything(server):
    """With a last chunk where there is still time for one."""
    where = urlsplit(server.url)
    with closing(http.client.HTTPConnection(where.hostname, where.port, timeout=PATIENCE_S)) as connection:
        connection.request("GET", "/api/v1/pods?watch=true", headers={"Authorization": "Bearer admin-token"})
        answer = connection.getresponse()
        server.close()
        try:
            rest = answer.read()
        except http.client.IncompleteRead as cut:
            rest = cut.partial
    assert rest == b""


def test_what_is_counted_as_done_is_there_and_what_is_only_asked_may_not_be(server):
    """Whoever waits for a write to have come reads too early."""
    asking = threading.Thread(
        target=asked, args=(server, "/api/v1/namespaces/default/pods", "POST", json.dumps(WEB).encode())
    )
    with server.store.changed:
        asking.start()
        server.wait_for("asked", 1, verb="create", resource="pods")
        assert server.done("create", "pods") == 0
    server.wait_for("done", 1, verb="create", resource="pods")
    assert server.get("v1", "pods", "web", "default")["metadata"]["name"] == "web"
    asking.join()
    code, _, _ = asked(server, "/api/v1/namespaces/default/pods", "POST", json.dumps(WEB).encode())
    assert (code, server.count("create", "pods"), server.done("create", "pods")) == (409, 2, 1)


def test_waiting_in_vain_says_for_what_and_how_far_it_came(server, monkeypatch):
    monkeypatch.setattr(exchange, "PATIENCE_S", 0.0)
    asked(server, "/api/v1/namespaces/default/pods", "POST", json.dumps(WEB).encode())
    with pytest.raises(TimeoutError, match=r"^not within 0 s: 2 of asked create pods; 1 so far$"):
        server.wait_for("asked", 2, verb="create", resource="pods")
