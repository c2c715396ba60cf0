"""What the hook does between events, when something in it raises."""

from __future__ import annotations

import pytest

from enforcer.hook.outbox import Outbox
from enforcer.hook.process import Hook
from enforcer.hook.read_back import AT_ONCE
from enforcer.hook.wiring import PREPARE_EVERY_S, READ_BACK_S
from numakin.wire import local_pb2 as local
from tests.enforcer.hook.timers import TimersAlone
from tests.enforcer.hook.world import World, container, member

UNREADABLE: tuple[()] = ()
"""In place of a cgroup's CPUs and memory: what no reading of one can be."""


@pytest.fixture
def loop() -> TimersAlone:
    return TimersAlone()


class Observers:
    """The hook's own socket, with one observer behind it; the message at `fails_at` raises."""

    def __init__(self, fails_at: int = -1) -> None:
        self.told: list[local.FromHook] = []
        self.observers, self.unsent, self._fails_at = ["one"], False, fails_at

    def broadcast(self, message: local.FromHook) -> None:
        self._fails_at -= 1
        if self._fails_at == -1:
            raise ValueError("a fault of ours")
        self.told.append(message)

    def flush(self) -> None:
        """Nothing waits."""


@pytest.fixture
def hook(world: World, loop: TimersAlone) -> Hook:
    made = Hook(loop, {})
    made.wiring.agent = world.agent
    made.wiring.at_any_time = True
    made.wiring.carry_out = lambda updates, _on_answer: world.apply(updates)
    made.wiring._outbox = Outbox(world.agent)
    made.wiring._outbox.registered = True
    made.wiring._control = Observers()  # type: ignore[assignment]
    made.wiring._start = local.Start(node="n1")
    return made


def faults(hook: Hook) -> int:
    return hook.wiring.stats.handler_errors["timer"]


def test_one_cgroup_over_which_it_raises_costs_those_of_later_turns_nothing(
    world: World, loop: TimersAlone, hook: Hook
) -> None:
    names = [f"m{at}" for at in range(AT_ONCE + 1)]
    for name in names:
        world.create(member(name), container(name, 0.1))
    right = world.cgroups["/kubepods/" + names[-1]]
    world.cgroups["/kubepods/m0"] = UNREADABLE  # type: ignore[assignment]
    world.cgroups["/kubepods/" + names[-1]] = world.machine.all_cpus, right[1]
    hook.wiring.call_later(0, lambda: hook.wiring.read_back(READ_BACK_S))
    loop.go_on(2 * READ_BACK_S + 1)
    assert world.cgroups["/kubepods/" + names[-1]] == right
    assert faults(hook) == 3, "one in each round"


def test_the_runtime_is_answered_and_timers_go_on(world: World, loop: TimersAlone, hook: Hook) -> None:
    rounds: list[float] = []

    def fails() -> None:
        hook.wiring.call_later(1, fails)
        rounds.append(loop.now)
        raise ValueError("a fault of ours")

    hook.wiring.call_later(1, fails)
    loop.go_on(3)
    world.create(member("web"), container("web"))
    stop = hook.handlers().stop_container
    assert stop is not None
    assert stop(member("web"), container("web")) == []
    loop.go_on(PREPARE_EVERY_S)
    assert rounds == [1, 2, 3]
    assert faults(hook) == 3


def test_a_look_at_what_is_live_that_raises_costs_no_other_its_turn(
    world: World, loop: TimersAlone, hook: Hook
) -> None:
    world.create(member("kin"), container("kin"))
    world.create(member("own", cpus="exclusive"), container("own", 2))
    looks: list[str] = []

    def raising() -> None:
        raise ValueError("a fault of ours")

    hook.wiring._run(iter((raising, lambda: looks.append("the next"))))
    loop.go_on(1)
    assert looks == ["the next"]
    assert faults(hook) == 1


@pytest.mark.parametrize("fails_at", [0, 1])
def test_what_could_not_be_told_to_observers_is_told_whole(
    world: World, loop: TimersAlone, hook: Hook, fails_at: int
) -> None:
    observers = Observers(fails_at)
    hook.wiring._control = observers  # type: ignore[assignment]
    world.create(member("web"), container("web"))
    hook.wiring.publish_soon()
    loop.go_on(1)
    assert faults(hook) == 1
    del observers.told[:]
    hook.wiring.publish_soon()
    loop.go_on(1)
    told = [message.WhichOneof("message") for message in observers.told]
    assert told[:2] == ["start", "report"]
    assert [it.id for message in observers.told for it in message.containers.containers] == ["web"]
    del observers.told[:]
    hook.wiring.publish_soon()
    loop.go_on(1)
    assert not observers.told, "once"
