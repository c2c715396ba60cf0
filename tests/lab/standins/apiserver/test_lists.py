"""Lists and watches of the stand-in follow the rules that were recorded: paging, revisions, selectors, bookmarks, endings."""

import base64
import json

import pytest

from tests.lab.standins.apiserver.asking import asked, pods
from tests.lab.standins.apiserver.recorded import exchanges


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
    monkeypatch.setattr("lab.standins.apiserver.objects.reading.FUTURE_WAIT_S", 0.05)
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
