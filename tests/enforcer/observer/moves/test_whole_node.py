"""Moves by the operator's options, from the observer's offer to the hook's answer and back."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from enforcer.hook import status_report
from enforcer.observer.moves.candidates import REST
from enforcer.settings.config import Config
from tests import machines
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


@pytest.mark.parametrize("moves", ["plan", "make"])
def test_a_step_of_several_members_is_offered_until_it_is_made_however_small_the_budget(moves: str) -> None:
    """Two pairs that fill two NUMA nodes, each pair apart: one of each has to go, in one step."""
    node = WholeNode("ab", "cd", config=Config(moves=moves, move_budget=1), at_any_time=False)
    for name, home in {"a": "0", "b": "1", "c": "0", "d": "1"}.items():
        node.run(name, home, 2)
    node.rest()
    assert [len(members) for members in node.windows(2 * REST)] == [2] * 2 * REST


def test_planned_moves_of_those_who_may_move_later_are_told_beside_those_that_were_told() -> None:
    four = machines.machine("four NUMA nodes of 2 CPUs", ["0-1", "2-3", "4-5", "6-7"], [8] * 4)
    node = WholeNode("ab", "cd", machine=four, config=Config(moves="plan"))
    node.run("a", "0")
    node.run("b", "1")
    node.windows(REST // 2)
    node.run("c", "2")
    node.run("d", "3")
    node.windows(4 * REST)
    rows: Any = status_report.of(node.agent)["planned_moves"]
    told = {row["pod"].removeprefix("shop/") for row in rows}
    assert len(told & {"a", "b"}) == len(told & {"c", "d"}) == 1


@pytest.mark.parametrize("at_any_time", [True, False], ids=["made at once", "made late"])
@pytest.mark.parametrize("seed", range(4))
def test_two_pairs_are_brought_together_by_two_moves(seed: int, *, at_any_time: bool) -> None:
    """Beside replicas that do not talk, by rates that rise and fall."""
    rates = Random(seed)
    four = machines.machine("four NUMA nodes of 2 CPUs", ["0-1", "2-3", "4-5", "6-7"], [8] * 4)
    node = WholeNode(machine=four, at_any_time=at_any_time)
    pairs = {("shop", "visitor"): 4000, ("cache", "reader"): 8487}
    homes = {
        "shop": "1",
        "visitor": "3",
        "cache": "0",
        "reader": "2",
        "visitor-2": "1",
        "reader-2": "0",
        "cache-2": "2",
    }
    for name, home in homes.items():
        node.run(name, home, 0.5 if name in {"shop", "cache", "cache-2"} else 0.1)
    node.rest()
    for _ in range(3 * REST):
        for (server, client), weight in pairs.items():
            node.talk[f"uid-{server}", f"uid-{client}"] = weight * rates.uniform(0.8, 1.2)
        node.windows(1)
        node.stop_another()
    assert [len(set(node.homes(*pair))) for pair in pairs] == [1, 1]
    assert node.agent.records.counts["moved"] == len(pairs), node.homes(*homes)


def test_what_is_planned_is_not_looked_at_afterwards() -> None:
    node = apart(Config(moves="plan"))
    node.windows(3 * REST)
    assert not any(name in node.agent.records.counts for name in ("move helped", "move did not help"))
