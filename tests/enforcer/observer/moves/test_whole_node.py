"""Moves by the operator's options, from the observer's offer to the hook's answer and back."""

from __future__ import annotations

from enforcer.hook import status_report
from enforcer.observer.moves.candidates import REST
from enforcer.settings.config import Config
from tests.enforcer.observer.moves.whole import WholeNode


def apart(config: Config) -> WholeNode:
    """a on NUMA node 0, b on 1, and they talk."""
    node = WholeNode("ab", config=config)
    node.run("a", "0")
    node.run("b", "1")
    node.rest()
    return node


def test_by_default_moves_are_made_and_none_is_left() -> None:
    node = apart(Config())
    assert [len(members) for members in node.windows(3)] == [1, 0, 0]
    assert len(set(node.homes("a", "b"))) == 1
    assert status_report.of(node.agent)["planned_moves"] == []


def test_planned_moves_are_offered_window_by_window_and_told_once() -> None:
    node = apart(Config(moves="plan"))
    assert [len(members) for members in node.windows(2 * REST)] == [1] * 2 * REST
    assert node.homes("a", "b") == ["0", "1"]
    counts = node.agent.records.counts
    assert (counts["move planned"], counts["moved"], counts["move declined"]) == (1, 0, 0)
    (planned,) = status_report.of(node.agent)["planned_moves"]
    assert planned["why"].endswith("of the traffic here would come home")


def test_what_is_planned_is_not_looked_at_afterwards() -> None:
    node = apart(Config(moves="plan"))
    node.windows(3 * REST)
    assert not any(name in node.agent.records.counts for name in ("move helped", "move did not help"))
