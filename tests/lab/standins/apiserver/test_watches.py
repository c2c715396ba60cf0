"""The stand-in API server's watches are as recorded."""

import http.client
from typing import Any
from urllib.parse import urlsplit

import pytest

from lab.standins.patience import PATIENCE_S
from tests.lab.standins.apiserver.asking import asked, pods, told
from tests.lab.standins.apiserver.recorded import exchanges


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
