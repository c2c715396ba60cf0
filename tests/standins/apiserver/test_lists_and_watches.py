"""Lists and watches of the stand-in follow the rules that were recorded: paging, revisions, selectors, bookmarks, endings."""

import base64
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from standins.apiserver import ApiServer
from standins.apiserver.faults import THROTTLED, Answer, Cut
from standins.patience import PATIENCE_S
from tests.standins.apiserver.recorded import exchanges

WEB = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "main", "image": "example.invalid/web:1"}]}}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


def asked(
    server: ApiServer, path: str, method: str = "GET", body: bytes | None = None, **query: str
) -> tuple[int, Any, Any]:
    """Code, body (frames of a watch as a list) and headers."""
    where = urlsplit(server.url)
    headers = {"Authorization": "Bearer admin-token", "Content-Type": "application/json"}
    with closing(http.client.HTTPConnection(where.hostname, where.port, timeout=PATIENCE_S)) as connection:
        connection.request(method, f"{path}?{urlencode(query)}" if query else path, body, headers)
        with connection.getresponse() as answer:
            text = answer.read()
    if "watch" in query and answer.status == 200:
        return 200, [json.loads(line) for line in text.splitlines()], answer.headers
    return answer.status, json.loads(text) if text.startswith(b"{") else text, answer.headers


def told(frames: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(frame["type"], frame["object"]["metadata"].get("name", "")) for frame in frames]


def pods(server: ApiServer, *names: str, **labels: str) -> None:
    for name in names:
        server.create_pod(name, labels=labels)


def test_pages_are_as_recorded(server):
    """The first page's revision on all, remainingItemCount on all but the last, a continue token on all but the last."""
    pods(server, "web-1", "web-2", "web-3", "web-4", "web-5", "web-6")
    server.create_pod("other-1", "other")
    _, first, _ = asked(server, "/api/v1/pods", limit="3")
    server.create_pod("late", "aaa")
    _, second, _ = asked(server, "/api/v1/pods", limit="3", **{"continue": first["metadata"]["continue"]})
    _, third, _ = asked(server, "/api/v1/pods", limit="3", **{"continue": second["metadata"]["continue"]})
    for page, exchange in zip((first, second, third), exchanges("01-list-paged"), strict=True):
        real = exchange["response"]["body"]
        assert page["metadata"].keys() == real["metadata"].keys()
        assert page["metadata"].get("remainingItemCount") == real["metadata"].get("remainingItemCount")
        assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        assert [item["metadata"]["name"] for item in page["items"]][:1] == [real["items"][0]["metadata"]["name"]]
        assert "kind" not in page["items"][0]


def test_the_continue_token_is_as_recorded(server):
    pods(server, "web-1", "web-2")
    _, page, _ = asked(server, "/api/v1/pods", limit="1")
    real = exchanges("01-list-paged")[0]["response"]["body"]["metadata"]["continue"]
    ours = json.loads(base64.urlsafe_b64decode(page["metadata"]["continue"] + "=="))
    theirs = json.loads(base64.urlsafe_b64decode(real + "=="))
    assert ours.keys() == theirs.keys()
    assert ours["start"] == "/default/web-1\0"


def test_a_selector_leaves_the_count_away(server):
    pods(server, "a", "b", tier="back")
    _, page, _ = asked(server, "/api/v1/pods", limit="1", labelSelector="tier=back")
    assert "continue" in page["metadata"]
    assert "remainingItemCount" not in page["metadata"]


def test_revision_0_takes_no_limit(server):
    pods(server, "a", "b", "c")
    _, page, _ = asked(server, "/api/v1/pods", limit="2", resourceVersion="0")
    assert len(page["items"]) == 3


def test_an_expired_token_comes_with_a_fresh_one_that_works(server):
    pods(server, "a", "b", "c")
    _, page, _ = asked(server, "/api/v1/pods", limit="1")
    server.create_node("n")
    server.store.forget(server.store.revision)
    code, gone, _ = asked(server, "/api/v1/pods", limit="1", **{"continue": page["metadata"]["continue"]})
    real = exchanges("02-410-continue-expired")[0]["response"]["body"]
    assert code == 410
    assert {key: gone[key] for key in ("message", "reason", "code")} == {
        key: real[key] for key in ("message", "reason", "code")
    }
    code, rest, _ = asked(server, "/api/v1/pods", limit="1", **{"continue": gone["metadata"]["continue"]})
    assert (code, rest["items"][0]["metadata"]["name"]) == (200, "b")


def test_a_list_of_the_past_is_the_past(server):
    pods(server, "a")
    past = str(server.store.revision)
    server.bind("a", "n1")
    pods(server, "b")
    _, then, _ = asked(server, "/api/v1/pods", resourceVersion=past, resourceVersionMatch="Exact")
    assert [(item["metadata"]["name"], item["spec"].get("nodeName")) for item in then["items"]] == [("a", None)]
    _, now, _ = asked(server, "/api/v1/pods", resourceVersion=past, resourceVersionMatch="NotOlderThan")
    assert len(now["items"]) == 2


def test_a_list_of_the_future_waits_and_gives_up(server, monkeypatch):
    monkeypatch.setattr("standins.apiserver.objects.reading.FUTURE_WAIT_S", 0.05)
    code, body, headers = asked(server, "/api/v1/pods", resourceVersion="100237")
    assert (code, body["reason"], headers["Retry-After"]) == (504, "Timeout", "1")
    assert body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


LABELS = {
    "tier=back": ["b"],
    "tier!=back": ["f", "n"],
    "tier in (front, back)": ["b", "f"],
    "tier notin (front)": ["b", "n"],
    "tier": ["b", "f"],
    "!tier": ["n"],
    "app=web,tier=front": ["f"],
}


@pytest.mark.parametrize(("selector", "names"), LABELS.items(), ids=LABELS)
def test_label_selectors(server, selector, names):
    pods(server, "b", app="web", tier="back")
    pods(server, "f", app="web", tier="front")
    pods(server, "n")
    _, result, _ = asked(server, "/api/v1/pods", labelSelector=selector)
    assert [item["metadata"]["name"] for item in result["items"]] == names


def test_a_pods_life_is_told_as_recorded(server):
    """Creation, binding, status, annotation, nothing, deletion with grace, deletion: and a bookmark or two before the end."""
    start = str(server.store.revision)
    pods(server, "life-1")
    server.bind("life-1", "n2")
    server.set_phase("life-1", "Running")
    server.patch("v1", "pods", "life-1", {"metadata": {"annotations": {"a": "1"}}}, namespace="default")
    server.patch("v1", "pods", "life-1", {"metadata": {"annotations": {"a": "1"}}}, namespace="default")
    server.delete("v1", "pods", "life-1", "default")
    server.delete("v1", "pods", "life-1", "default")
    server.delete("v1", "pods", "life-1", "default", grace_s=0)
    _, frames, headers = asked(
        server,
        "/api/v1/namespaces/default/pods",
        watch="true",
        resourceVersion=start,
        allowWatchBookmarks="true",
        timeoutSeconds="1",
    )
    real = [exchange["data"] for exchange in exchanges("02-watch-lifecycle")[0]["response"]["frames"]]
    shape = [story(frame) for frame in frames]
    assert shape == [story(entry) for entry in real][: len(shape)]
    assert shape[-1][0] == "BOOKMARK"
    assert headers["Content-Type"] == "application/json"


def story(frame: dict[str, Any]) -> tuple[Any, ...]:
    metadata, spec = frame["object"]["metadata"], frame["object"]["spec"]
    return (
        frame["type"],
        metadata.get("name"),
        metadata.get("generation"),
        metadata.get("deletionGracePeriodSeconds"),
        "deletionTimestamp" in metadata,
        spec.get("nodeName"),
        frame["object"]["status"].get("phase"),
    )


def test_a_binding_is_an_addition_to_whoever_watches_the_node(server):
    pods(server, "a")
    start = str(server.store.revision)
    server.bind("a", "n2")
    query = {"fieldSelector": "spec.nodeName=n2", "resourceVersion": start, "timeoutSeconds": "1"}
    assert told(asked(server, "/api/v1/pods", watch="true", **query)[1]) == [("ADDED", "a")]


def test_what_leaves_a_selection_is_deleted_from_it_as_it_was(server):
    pods(server, "a", tier="front")
    start = str(server.store.revision)
    server.patch("v1", "pods", "a", {"metadata": {"labels": {"tier": "back"}}}, namespace="default")
    left = server.store.revision
    server.patch("v1", "pods", "a", {"metadata": {"labels": {"tier": "front"}}}, namespace="default")
    query = {"labelSelector": "tier=front", "resourceVersion": start, "timeoutSeconds": "1"}
    _, frames, _ = asked(server, "/api/v1/pods", watch="true", **query)
    assert told(frames) == [("DELETED", "a"), ("ADDED", "a")]
    assert frames[0]["object"]["metadata"]["resourceVersion"] == str(left)
    assert frames[0]["object"]["metadata"]["labels"] == {"tier": "front"}


@pytest.mark.parametrize("revision", ["", "0"])
def test_a_watch_without_a_revision_begins_with_everything(server, revision):
    pods(server, "a", "b")
    _, frames, _ = asked(server, "/api/v1/pods", watch="true", resourceVersion=revision, timeoutSeconds="1")
    assert told(frames) == [("ADDED", "a"), ("ADDED", "b")]


def test_a_watch_list_ends_its_beginning_with_a_marked_bookmark(server):
    pods(server, "a")
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    _, frames, _ = asked(server, "/api/v1/pods", watch="true", timeoutSeconds="1", **query)
    assert told(frames)[:2] == [("ADDED", "a"), ("BOOKMARK", "")]
    assert frames[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_revision_too_old_is_told_in_the_stream(server):
    pods(server, "a", "b")
    server.store.forget(server.store.revision)
    code, frames, _ = asked(server, "/api/v1/pods", watch="true", resourceVersion="2")
    real = exchanges("02-410-watch-instream")[0]["response"]["frames"][0]["data"]
    assert code == 200
    (frame,) = frames
    assert frame["type"] == real["type"] == "ERROR"
    assert frame["object"].keys() == real["object"].keys()
    assert (frame["object"]["reason"], frame["object"]["code"]) == ("Expired", 410)


def test_a_revision_of_the_future_is_met_with_silence(server):
    pods(server, "a")
    query = {"resourceVersion": str(server.store.revision + 100), "allowWatchBookmarks": "true", "timeoutSeconds": "1"}
    assert asked(server, "/api/v1/pods", watch="true", **query)[1] == []


def test_a_connection_outlives_a_watch_that_ended(server):
    where = urlsplit(server.url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=PATIENCE_S)
    for path in ("/api/v1/pods?watch=true&timeoutSeconds=1", "/api/v1/pods"):
        connection.request("GET", path, headers={"Authorization": "Bearer admin-token"})
        answer = connection.getresponse()
        answer.read()
        assert (answer.status, answer.will_close) == (200, False)
    connection.close()


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
        assert server.wait_for(lambda: server.count("create", "pods") == 1)
        assert server.done("create", "pods") == 0
    assert server.wait_for(lambda: server.done("create", "pods") == 1)
    assert server.get("v1", "pods", "web", "default")["metadata"]["name"] == "web"
    asking.join()
    code, _, _ = asked(server, "/api/v1/namespaces/default/pods", "POST", json.dumps(WEB).encode())
    assert (code, server.count("create", "pods"), server.done("create", "pods")) == (409, 2, 1)
