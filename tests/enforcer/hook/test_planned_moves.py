"""Moves that are told and not made: what the agent makes of the observer's offers with `--moves plan`."""

from __future__ import annotations

import logging

import pytest

from enforcer.cli.status import _why
from enforcer.hook import status_report
from numakin.wire import local_pb2 as local
from tests.enforcer.hook.moving import offer, run, talk
from tests.enforcer.hook.world import World

OTHER_WAY = [("b", "1", "0")]


def planned(*steps: list[tuple[str, str, str]]) -> local.Moves:
    made = offer(*steps)
    made.plan = True
    return made


@pytest.fixture
def apart(world: World, caplog: pytest.LogCaptureFixture) -> World:
    """a on NUMA node 0, b on 1, and they talk."""
    caplog.set_level(logging.INFO)
    run(world, "a", "0")
    run(world, "b", "1")
    talk(world, "ab")
    world.agent.records.take()
    return world


def told(world: World) -> list[str]:
    return [line for line in _why(status_report.of(world.agent)) if line.startswith("planned")]


def logged(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    return [vars(record)["fields"] for record in caplog.records if record.getMessage() == "a move is planned"]


def test_a_step_that_holds_is_told_and_nobody_moves(apart: World, caplog) -> None:
    before = apart.agent.occupancy
    apart.agent.moves.plan(planned([("a", "0", "1")]))
    assert apart.agent.occupancy is before
    why = "25.0% of the traffic here would come home"
    assert told(apart) == [f"planned and not made: shop/a from NUMA node 0 to NUMA node 1: {why}"]
    assert apart.agent.records.counts["moved"] == 0
    assert apart.agent.records.take() == []
    assert logged(caplog) == [{"pod": "shop/a", "source": "NUMA node 0", "target": "NUMA node 1", "why": why}]


def test_the_same_one_is_told_once_and_shown_while_it_holds(apart: World, caplog) -> None:
    for _ in range(3):
        apart.agent.moves.plan(planned([("a", "0", "1")]))
        assert len(told(apart)) == 1
    apart.agent.moves.plan(planned())
    assert told(apart) == []
    apart.agent.moves.plan(planned([("a", "0", "1")]))
    apart.agent.records.compose()
    assert len(logged(caplog)) == 1
    assert apart.agent.records.counts["move planned"] == 1


def test_another_one_is_told_too(apart: World) -> None:
    apart.agent.moves.plan(planned([("a", "0", "1")]))
    apart.agent.moves.plan(planned(OTHER_WAY))
    assert [line.split()[4] for line in told(apart)] == ["shop/b"]
    assert apart.agent.records.counts["move planned"] == 2


def test_a_step_is_judged_as_if_those_before_it_had_been_made(apart: World) -> None:
    """Once a is with b, b gains nothing by going where a was."""
    apart.agent.moves.plan(planned([("a", "0", "1")], OTHER_WAY))
    assert len(told(apart)) == 1
    assert apart.agent.records.counts["move declined"] == 1


def test_what_is_declined_is_declined_in_the_occupancy_that_is_there(apart: World) -> None:
    apart.agent.moves.plan(planned([("a", "0", "1")], OTHER_WAY))
    declined = apart.agent.moves.declined()
    assert [way.reservation for step in declined.steps for way in step.ways] == ["uid-b"]
    assert declined.generation == apart.agent.occupancy.generation


def test_those_that_would_go_together_are_told_each(world: World) -> None:
    run(world, "a", "0", cpus_asked=7)
    run(world, "b", "1", cpus_asked=7)
    run(world, "c", "0")
    run(world, "d", "1")
    talk(world, "ad", "bc")
    world.agent.moves.plan(planned([("a", "0", "1"), ("b", "1", "0")]))
    assert [line.rpartition(", ")[2] for line in told(world)] == ["with 1 other that would move"] * 2


def test_after_a_release_none_is_told(apart: World) -> None:
    apart.agent.release()
    apart.agent.moves.plan(planned([("a", "0", "1")]))
    assert told(apart) == []


def test_one_that_fails_costs_no_other(apart: World) -> None:
    before = apart.agent.occupancy
    apart.agent.moves.plan(planned([("b", "1", "not a list")], [("a", "0", "1")]))
    assert [line.split()[4] for line in told(apart)] == ["shop/a"]
    assert apart.agent.occupancy is before
