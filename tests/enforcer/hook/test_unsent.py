"""Updates that the answer to what caused them can't have: a container's removal, a pod's resize, a word of the extender."""

from __future__ import annotations

from dataclasses import replace

import pytest

from enforcer.hook.process import Hook
from enforcer.hook.unbinding import unbound
from enforcer.nri.calls import OnAnswer, UpdateAnswer
from enforcer.nri.handlers import Updates
from numakin.wire import nri_pb2 as nri
from tests.enforcer.hook.timers import TimersAlone
from tests.enforcer.hook.world import GIB, World, container, member

OWN = member("own", cpus="exclusive")


@pytest.fixture
def loop() -> TimersAlone:
    return TimersAlone()


@pytest.fixture
def hook(world: World, loop: TimersAlone) -> Hook:
    made = Hook(loop, {})
    made.wiring.agent = world.agent
    made.wiring.carry_out = lambda updates, _on_answer: world.apply(updates)
    return made


@pytest.fixture
def home(world: World) -> str:
    """Of a member who shares CPUs, of which another one's container, which has not started, has some alone by now."""
    world.create(member("kin"), container("kin"))
    before = world.cpus("kin")
    world.create(OWN, container("own", 2))
    assert world.cpus("kin") != before
    return before


def removed(hook: Hook) -> None:
    remove = hook.handlers().remove_container
    assert remove is not None
    remove(OWN, container("own", 2))


def test_they_are_sent_at_once_where_the_runtime_takes_them_at_any_time(
    world: World, loop: TimersAlone, hook: Hook, home: str
) -> None:
    hook.wiring.at_any_time = True
    removed(hook)
    loop.go_on(0.1)
    assert world.cpus("kin") == home
    assert not world.agent.moves.unsent


def test_what_changed_while_they_were_under_way_is_told_once_more(
    world: World, loop: TimersAlone, hook: Hook, home: str
) -> None:
    """A runtime takes seconds for some, and carries out an event's answer meanwhile: whichever of the two was last."""
    hook.wiring.at_any_time = True
    under_way: list[tuple[Updates, OnAnswer]] = []
    hook.wiring.carry_out = lambda updates, on_answer: under_way.append((updates, on_answer))
    removed(hook)
    loop.go_on(0.1)
    world.create(member("next", cpus="exclusive"), container("next", 2))
    given = world.cpus("kin")
    assert given != home
    while under_way:
        updates, on_answer = under_way.pop()
        world.apply(updates)
        on_answer(UpdateAnswer())
        loop.go_on(0.1)
    assert world.cpus("kin") == given
    assert not world.agent.moves.unsent


def test_else_they_go_with_the_answer_to_the_next_resize_of_any_container(world: World, hook: Hook, home: str) -> None:
    world.create(member("other", group="other"), container("other"))
    removed(hook)
    assert world.cpus("kin") != home
    update = hook.handlers().update_container
    assert update is not None
    world.apply(update(member("other", group="other"), container("other"), nri.LinuxResources()))
    assert world.cpus("kin") == home


def test_where_nothing_happens_they_go_with_the_answer_to_a_synchronize_once_a_minute_at_most(
    loop: TimersAlone, hook: Hook, home: str
) -> None:
    reasons: list[str] = []
    hook.wiring.register_again = reasons.append
    loop.call_later(0, hook.wiring._refresh)
    removed(hook)
    loop.go_on(8)
    assert reasons == ["cpusets that containers are to have wait for an answer that may have them"]
    loop.go_on(50)
    assert len(reasons) == 1


def test_memory_that_is_to_be_opened_is_opened_though_cpus_come_free_meanwhile(
    world: World, hook: Hook, home: str
) -> None:
    ledger = world.agent.ledger
    assert world.mems("kin") == "0"
    asked = ledger.requests["kin"]
    more = replace(asked, pod_demand=replace(asked.pod_demand, memory=64 * GIB, memory_limit=64 * GIB))
    ledger.occupancy, opened = unbound(world.machine, ledger.occupancy, [more])  # as after a resize of its pod
    world.agent.moves.take_along(opened)
    removed(hook)
    world.apply(world.agent.moves.unsent_updates())
    assert (world.cpus("kin"), world.mems("kin")) == (home, "0-1")
