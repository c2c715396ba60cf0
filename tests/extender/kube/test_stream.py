"""A watch's bytes become changes, however they are cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.kube import stream
from extender.kube.api import ApiError
from extender.kube.rows import PodObject
from extender.kube.stream import BadFrame, Lines, pods, reduce


def event(type_: str, name: str, revision: int = 5, **spec: str) -> bytes:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(revision)}
    return json.dumps({"type": type_, "object": {"kind": "Pod", "metadata": metadata, "spec": spec}}).encode()


def test_the_last_word_on_each_object_counts():
    frames = [
        event("ADDED", "a"),
        event("MODIFIED", "a", 6, nodeName="n1"),
        event("ADDED", "b", 7),
        event("DELETED", "b", 8),
    ]
    batch = reduce(pods(), frames)
    assert [(row.name, row.node) for row in batch.changes.rows] == [("a", "n1")]
    assert batch.changes.gone == ("uid-b",)
    assert not batch.changes.whole
    assert (batch.revision, batch.events) == ("8", 4)


def test_a_bookmark_moves_the_revision_and_nothing_else():
    frame = b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9"},"spec":{"containers":null},"status":{}}}'
    batch = reduce(pods(), [frame])
    assert (batch.changes, batch.revision, batch.events) == (None, "9", 0)


def test_an_error_frame_is_an_error():
    frame = (
        b'{"type":"ERROR","object":{"kind":"Status","message":"too old resource version: 300 (455)",'
        b'"reason":"Expired","code":410}}'
    )
    with pytest.raises(ApiError, match=r"410 Expired: too old resource version: 300 \(455\)"):
        reduce(pods(), [event("ADDED", "a"), frame])


@pytest.mark.parametrize(
    "frame",
    [b"{", b"[]", b'{"type":"ADDED"}', b'{"type":1,"object":{}}', b'{"type":"ADDED","object":{"spec":{}}}', b"\xff"],
)
def test_what_is_no_event_is_said_to_be_none(frame):
    with pytest.raises(BadFrame):
        reduce(pods(), [frame])


def test_unknown_event_types_are_passed_over():
    assert reduce(pods(), [event("RENAMED", "a")]).changes is None


def test_an_object_that_no_row_can_be_made_of_costs_no_other_its_place():
    names = {"n1": "b"}
    kind = stream.resource(
        "/pods", PodObject, lambda pod: names[pod.spec.node_name], key=lambda name: name, gone_key=stream.name
    )
    listed = [json.loads(event("ADDED", name, nodeName=node))["object"] for name, node in (("a", ""), ("b", "n1"))]
    page = json.dumps({"metadata": {"resourceVersion": "9"}, "items": listed}).encode()
    assert kind.page(page).rows == ["b"]
    changes = reduce(kind, [event("ADDED", "a"), event("ADDED", "b", nodeName="n1")]).changes
    assert (changes.rows, changes.gone) == (("b",), ("a",))


@given(st.lists(st.text(alphabet='abc{}"', min_size=1)), st.data())
def test_lines_come_out_whole_wherever_the_bytes_are_cut(texts, data):
    whole = [text.encode() for text in texts]
    stream_ = b"".join(line + b"\n" for line in whole)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream_)))))
    lines, result = Lines(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream_)], strict=True):
        result += lines.feed(stream_[start:end])
    assert result == whole


def test_an_endless_event_is_refused(monkeypatch):
    monkeypatch.setattr(stream, "LARGEST_FRAME", 1000)
    with pytest.raises(BadFrame, match="a watch event is over 1000 bytes"):
        Lines().feed(b"x" * 1001)


def test_the_largest_event_is_longer_than_any_object():
    assert stream.LARGEST_FRAME > 10 * 1_572_864
