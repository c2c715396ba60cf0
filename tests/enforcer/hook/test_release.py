"""A release is called carried out when every container's cgroup shows it, and failed when its time is over."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from enforcer.hook.agent import Agent
from enforcer.hook.release import LONGEST_S, STUCK_S, Release
from enforcer.nri.calls import OnAnswer, UpdateAnswer
from enforcer.nri.handlers import Updates
from numakin.placement.model.cpuset import CpuSet, NumaSet
from tests.clock import Clock
from tests.enforcer.hook.moving import ON
from tests.enforcer.hook.world import World, container, member


class Host:
    """A runtime that takes updates at any time and answers, or one that is registered with again and says nothing."""

    def __init__(self, world: World, *, at_any_time: bool, answer: UpdateAnswer = UpdateAnswer()) -> None:  # noqa: B008
        self.world, self.at_any_time, self.attached = world, at_any_time, True
        self.agent: Agent = world.agent
        self.clock = Clock()
        self.answers = list[dict[str, object]]()
        self.reasons = list[str]()
        self.register_again: Callable[[str], None] = self.reasons.append
        self.pushed: Updates = ()
        self.carried_out: set[str] | None = None
        """None: all."""
        self._answer = answer
        self._due = list[tuple[float, Callable[[], None]]]()

    def push(self, updates: Updates, on_answer: OnAnswer) -> None:
        self.pushed = updates
        done = self.carried_out
        self.world.apply(update for update in updates if done is None or update.container_id in done)
        on_answer(self._answer)

    def record(self) -> None: ...

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> None:
        self._due.append((delay_s, callback))

    def release(self) -> None:
        Release(self, self.answers.append, self.clock).start()

    def passes(self, seconds: float) -> None:
        until = self.clock() + seconds
        while self._due and self.clock() < until:
            delay_s, callback = self._due.pop(0)
            self.clock.now += delay_s
            callback()

    def synchronizes(self, *names: str) -> list[str]:
        """Registered again, it lists these; the ids of those for which the answer has updates."""
        updates = self.agent.synchronize([member(name) for name in names], [container(name) for name in names])
        self.updates = updates
        return [update.container_id for update in updates]


@pytest.fixture
def older(world: World) -> Host:
    for name in ("a", "b"):
        world.create(member(name), container(name))
    return Host(world, at_any_time=False)


def failed(host: Host) -> dict[str, str]:
    (answer,) = host.answers
    return {row["name"]: row["cpus"] for row in answer["failed"]}  # type: ignore[attr-defined]


def test_an_older_runtime_gets_them_in_the_answer_to_synchronize(older: Host) -> None:
    older.release()
    assert older.pushed == ()
    assert len(older.reasons) == 1
    older.passes(1.0)
    assert older.answers == [], "no cgroup shows it yet"
    assert older.synchronizes("a", "b") == ["a", "b"]
    older.passes(1.0)
    assert older.answers == []
    older.world.apply(older.updates)
    older.passes(1.0)
    assert older.answers == [{"released": 2, "failed": [], "error": ""}]


def test_one_that_ends_meanwhile_is_not_waited_for(older: Host) -> None:
    older.release()
    assert older.synchronizes("b") == ["b"]
    older.world.apply(older.updates)
    older.passes(1.0)
    assert older.answers == [{"released": 1, "failed": [], "error": ""}]


def test_what_a_cgroup_shows_counts_while_the_runtime_has_not_registered_us_again(older: Host) -> None:
    older.release()
    older.synchronizes("a", "b")
    older.attached = False
    older.world.apply(older.updates)
    older.passes(1.0)
    assert older.answers == [{"released": 2, "failed": [], "error": ""}]


def test_one_that_is_not_listed_is_waited_for_until_the_runtime_has_registered_us_again(older: Host) -> None:
    older.release()
    assert older.synchronizes("b") == ["b"]
    older.world.apply(older.updates)
    older.attached = False
    older.passes(1.0)
    assert older.answers == []
    older.attached = True
    older.passes(1.0)
    assert older.answers == [{"released": 1, "failed": [], "error": ""}]


def test_what_the_runtime_does_not_carry_out_is_named_when_the_time_is_over(older: Host) -> None:
    older.release()
    older.synchronizes("a", "b")
    older.world.apply(older.updates[:1])
    older.passes(STUCK_S + 1)
    assert failed(older) == {"shop/b app": ON["0"]}
    assert older.answers[0]["released"] == 1
    assert "did not carry it out in time" in str(older.answers[0]["error"])


def test_while_one_after_the_other_is_released_it_goes_on_to_a_bound(world: World) -> None:
    names = [f"m{number}" for number in range(12)]
    for name in names:
        world.create(member(name, group=name), container(name, cpus=0.1))
    host = Host(world, at_any_time=False)
    host.release()
    host.synchronizes(*names)
    for number in range(11):
        host.passes(STUCK_S - 2)
        world.apply(host.updates[number : number + 1])
    assert host.clock() > LONGEST_S
    assert len(failed(host)) > 1


def test_a_resume_ends_it(older: Host) -> None:
    older.release()
    older.agent.resume()
    older.passes(1.0)
    assert older.answers[0]["error"] == "it was resumed before it was carried out"


def test_a_plugin_that_the_runtime_launched_has_them_in_its_next_answer(older: Host) -> None:
    """It has no way to register again."""
    older.release()
    _, updates = older.agent.create_container(member("later"), container("later"))
    older.world.apply(updates)
    older.passes(1.0)
    assert older.answers == [{"released": 2, "failed": [], "error": ""}]
    _, updates = older.agent.create_container(member("next"), container("next"))
    assert updates == []


def test_a_newer_runtime_is_told_at_once(world: World) -> None:
    world.create(member("a"), container("a"))
    host = Host(world, at_any_time=True)
    host.release()
    assert host.answers == [{"released": 1, "failed": [], "error": ""}]
    assert host.reasons == []


def test_a_newer_runtime_that_says_no_names_nobody_so_the_cgroups_do(world: World) -> None:
    """containerd: one error for the call, whichever container it was, and the others are carried out."""
    for name in ("a", "b"):
        world.create(member(name), container(name))
    host = Host(world, at_any_time=True, answer=UpdateAnswer(error="NRI update of some containers failed"))
    stuck = world.cgroups["/kubepods/b"]
    host.carried_out = {"a"}
    host.release()
    assert host.answers[0]["released"] == 1
    assert failed(host) == {"shop/b app": str(stuck[0])}


def test_a_newer_runtime_that_does_not_answer_has_its_time_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As over a container whose shim hangs."""
    for name in ("a", "b"):
        world.create(member(name), container(name))
    host, asked = Host(world, at_any_time=True), list[OnAnswer]()
    home = world.cpus("b")
    monkeypatch.setattr(host, "push", lambda _updates, on_answer: asked.append(on_answer))
    host.release()
    world.cgroups["/kubepods/a"] = world.machine.all_cpus, world.machine.all_mems
    host.passes(STUCK_S + 2)
    assert [answer["released"] for answer in host.answers] == [1]
    assert failed(host) == {"shop/b app": home}
    assert "did not carry it out in time" in str(host.answers[0]["error"])
    asked[0](UpdateAnswer())
    assert len(host.answers) == 1


def test_all_that_the_cgroup_above_has_will_do(world: World) -> None:
    """Where the node's administrator keeps all pods to some CPUs."""
    world.create(member("a"), container("a"))
    world.widest = CpuSet.parse("0-13"), NumaSet.parse("0-1")
    host = Host(world, at_any_time=False)
    host.release()
    world.cgroups["/kubepods/a"] = world.widest
    host.passes(1.0)
    assert host.answers == [{"released": 1, "failed": [], "error": ""}]
