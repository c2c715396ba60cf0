"""What is nested too deep to be decoded is left out, and all around it stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.kube.levels import MOST_LEVELS, shallow
from extender.kube.stream import pods, reduce

DEEP = (1_500, 10_000)
"""Go's own bound of what it decodes is the latter."""


def nested(levels: int, innermost: str = "1", opening: str = '{"a":', closing: str = "}") -> str:
    return opening * levels + innermost + closing * levels


def pod(name: str, levels: int = 0, revision: int = 5) -> str:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(revision)}
    return f'{{"metadata":{json.dumps(metadata)},"spec":{{"nodeName":"n1","x":{nested(levels)}}},"status":{{}}}}'


@pytest.mark.parametrize("levels", DEEP)
def test_a_list_has_all_its_objects_however_deep_one_is(levels: int) -> None:
    items = ",".join((pod("a"), pod("deep", levels), pod("b")))
    page = pods().page(f'{{"metadata":{{"resourceVersion":"7"}},"items":[{items}]}}'.encode())
    assert [(row.name, row.node) for row in page.rows] == [("a", "n1"), ("deep", "n1"), ("b", "n1")]
    assert page.revision == "7"


@pytest.mark.parametrize("levels", DEEP)
def test_a_watch_goes_on_over_an_object_however_deep_it_is(levels: int) -> None:
    frames = [
        f'{{"type":"ADDED","object":{text}}}'.encode() for text in (pod("a"), pod("deep", levels), pod("b", 0, 9))
    ]
    batch = reduce(pods(), frames)
    assert batch.changes is not None
    assert [row.name for row in batch.changes.rows] == ["a", "deep", "b"]
    assert (batch.revision, batch.events) == ("9", 3)


@pytest.mark.parametrize(
    ("levels", "left"), [(MOST_LEVELS, MOST_LEVELS), (MOST_LEVELS + 1, MOST_LEVELS), (5_000, MOST_LEVELS)]
)
def test_so_many_levels_are_read(levels: int, left: int) -> None:
    value = json.loads(shallow(nested(levels, opening="[", closing="]").encode()))
    depth = 0
    while isinstance(value, list):
        value, depth = (value or [None])[0], depth + 1
    assert depth == left


def test_brackets_in_texts_are_none() -> None:
    texts = ["[" * 500, '{"\\' * 300, "}]", '\\"[']
    assert json.loads(shallow(json.dumps([texts, 1]).encode())) == [texts, 1]


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_what_is_not_deep_stays_as_it_is(value: Any) -> None:
    text = json.dumps(value).encode()
    assert shallow(text) == text


@pytest.mark.parametrize("text", [b"", b"]" * 9, b"[" * 9_000, b'"', b'["' + b"\\" * 9_001])
def test_what_is_no_json_stays_none(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        json.loads(shallow(text))
