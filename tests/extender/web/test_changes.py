"""The stream of what changes, as a browser reads it, and what it leaves of the server to kube-scheduler."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import pytest

from extender.serving import limits
from lab.standins.patience import PATIENCE_S, until
from tests.extender.running import Extender, machine, recorded, reservation


@pytest.fixture
def reader(extender: Extender) -> Iterator[Callable[[], Reader]]:
    """Makes readers of the stream."""
    with ExitStack() as stack:

        def made() -> Reader:
            connection = stack.enter_context(
                closing(http.client.HTTPConnection(extender.web_address, timeout=PATIENCE_S))
            )
            connection.request("GET", "/api/v1/changes")
            return Reader(connection, stack.enter_context(closing(connection.getresponse())))

        yield made


def test_the_first_event_has_everything(extender: Extender, reader: Readers) -> None:
    extender.enforcer("n1").report(machine(), reservation("a", "0"))
    _seen(extender, "n1")
    event = reader().event()
    assert event["whole"]
    assert [row["name"] for row in event["nodes"]] == ["n1"]


def test_who_asks_for_the_head_alone_has_it_at_once_and_no_stream(extender: Extender) -> None:
    with closing(http.client.HTTPConnection(extender.web_address, timeout=limits.STREAM_S / 2)) as connection:
        for method, content in (("HEAD", ""), ("GET", "ok\n")):
            connection.request(method, "/api/v1/changes" if method == "HEAD" else "/healthz")
            answer = connection.getresponse()
            assert (answer.status, answer.read().decode()) == (200, content)


def test_then_only_what_has_changed_is_sent(extender: Extender, reader: Readers) -> None:
    for node in ("n1", "n2"):
        extender.enforcer(node).report(machine())
        _seen(extender, node)
    stream = reader()
    first = stream.event()
    extender.enforcer("n2", session="session-2").report(machine(), reservation("a", "1"))
    second = stream.event()
    assert not second["whole"]
    assert second["version"] > first["version"]
    assert [(row["name"], row["members"]) for row in second["nodes"]] == [("n2", 1)]


def test_who_knows_a_version_is_sent_only_what_came_after(extender: Extender) -> None:
    extender.enforcer("n1").report(machine())
    version = _seen(extender, "n1")
    assert extender.get(f"/api/v1/overview?since={version}")["nodes"] == []
    extender.enforcer("n2").report(machine())
    changed = until(lambda: extender.get(f"/api/v1/overview?since={version}")["nodes"], "the new node is seen")
    assert [row["name"] for row in changed] == ["n2"]


@pytest.mark.parametrize("version", ["999999", "-1", "x", "9" * 30])
def test_a_version_that_was_never_given_gets_everything(extender: Extender, version: str) -> None:
    assert extender.get(f"/api/v1/overview?since={version}")["whole"]


def test_readers_keep_neither_each_other_nor_kube_scheduler_waiting(extender: Extender, reader: Readers) -> None:
    readers = [reader() for _ in range(limits.STREAMS)]
    assert extender.get("/api/v1/nodes") == {"nodes": [], "unreported": []}
    assert extender.scores(recorded("basic-nodecache-true.prioritize", opted_in=True))
    extender.enforcer("n1").report(machine())
    for entry in readers:
        until(lambda entry=entry: entry.event()["nodes"], "it is told of the node")


def test_a_reader_over_the_bound_is_answered_once(extender: Extender, reader: Readers) -> None:
    readers = [reader() for _ in range(limits.STREAMS)]
    for entry in readers:
        entry.event()
    last = reader()
    assert last.response.read().startswith(b"retry:")


def test_a_reader_that_goes_away_gives_its_place_back(extender: Extender, reader: Readers) -> None:
    first, *_ = [reader() for _ in range(limits.STREAMS)]
    assert "Content-Length" in reader().response.headers
    first.response.close()
    first.connection.close()

    def free() -> bool:
        tried = reader()
        tried.response.close()
        tried.connection.close()
        return "Content-Length" not in tried.response.headers

    until(free, "a place is free again")


def test_streams_end_in_order_when_the_extender_does(extender: Extender, reader: Readers) -> None:
    stream = reader()
    assert extender.program.process is not None
    extender.program.process.terminate()
    assert stream.response.read().startswith(b"retry:")


@dataclass
class Reader:
    """One who follows the stream."""

    connection: http.client.HTTPConnection
    response: http.client.HTTPResponse

    def event(self) -> dict[str, Any]:
        """The next."""
        while line := self.response.readline():
            if line.startswith(b"data: "):
                return dict(json.loads(line[6:]))
        raise AssertionError("the stream ended")


Readers = Callable[[], Reader]


def _seen(extender: Extender, node: str) -> int:
    """The version in which the node is there."""

    def version() -> int:
        overview = extender.get("/api/v1/overview")
        return overview["version"] if node in {row["name"] for row in overview["nodes"]} else 0

    return int(until(version, "the node is seen"))
