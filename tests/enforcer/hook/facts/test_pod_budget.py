"""Pods with resources of their own (pod-level resources), as a real kubelet and containerd show them to the hook."""

from __future__ import annotations

from dataclasses import replace

import pytest

from enforcer.hook.facts.pod_budget import NOTHING, Own, ResourceSettings, asked_by_itself, own_resources
from enforcer.hook.ownership.checkpoint import Past
from enforcer.hook.process import Hook
from numakin.placement.model.demand import PodBudget
from numakin.placement.model.rules import Rules
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb
from tests.enforcer.hook.timers import TimersAlone
from tests.enforcer.hook.world import World, member

MIB = 1 << 20

BOTH = ResourceSettings(1000, 1000, 64 * MIB)
"""Seen with kubelet 1.36.2 and containerd 2.3.4: of the sandbox of a pod with requests = limits = 1 CPU and 64 MiB, and
of each of its containers, which ask for nothing.
"""

UNSET = ResourceSettings()
"""Seen there too: of the containers of a pod that has requests alone."""


def limited(cpu: int, *, limit: int | None = None, memory: int | None = 64 * MIB) -> ResourceSettings:
    return ResourceSettings(cpu, limit or cpu, memory)


@pytest.mark.parametrize(
    ("pod", "containers", "expected"),
    [
        (BOTH, {"a": BOTH, "b": BOTH}, Own(PodBudget(1), frozenset("ab"), memory=True)),
        (BOTH, {"a": BOTH}, NOTHING),
        (ResourceSettings(700), {"a": UNSET, "b": UNSET}, NOTHING),
        (limited(4000), {"a": limited(4000), "b": limited(1000)}, Own(PodBudget(4, (("b", 1),)), frozenset("a"), True)),
        (limited(4000), {"a": limited(4000), "b": limited(1500)}, Own(PodBudget(4), frozenset("a"), True)),
        (limited(4000), {"a": limited(500, limit=4000), "b": limited(4000)}, Own(PodBudget(4), frozenset("ab"), True)),
        (limited(2000, memory=None), {"a": limited(2000, memory=None), "b": UNSET}, NOTHING),
        (limited(2000), {"a": limited(1000, memory=32 * MIB), "b": limited(1000, memory=32 * MIB)}, NOTHING),
        (limited(2000), {"a": limited(1000), "b": limited(1000)}, Own(memory=True)),
        (
            ResourceSettings(1000, 2000),
            {"a": ResourceSettings(0, 2000), "b": ResourceSettings(500, 2000)},
            Own(PodBudget(1), frozenset("ab")),
        ),
        (limited(2000), {"a": limited(3000), "b": limited(1000)}, Own(memory=True)),
        (ResourceSettings(), {"a": UNSET, "b": UNSET}, NOTHING),
        (ResourceSettings(), {}, NOTHING),
    ],
    ids=[
        "both are given the pod's limits",
        "one alone shows nothing",
        "requests alone show nothing",
        "one with whole CPUs of its own",
        "one with a limit of its own that is no whole CPUs",
        "one with a request of its own and the pod's limit",
        "a sum of which one sets nothing",
        "a sum of both",
        "memory alone",
        "a pod whose limit is above its request",
        "resized beyond the sum of its creation",
        "best effort",
        "no container",
    ],
)
def test_a_limit_is_the_pod_s_own_where_a_container_has_the_very_same_and_all_together_have_more(
    pod: ResourceSettings, containers: dict[str, ResourceSettings], expected: Own
):
    assert own_resources(pod, containers) == expected


@pytest.mark.parametrize(
    ("container", "milli"), [(BOTH, 0), (ResourceSettings(500, 1000), 500), (ResourceSettings(0, 1000), 0)], ids=str
)
def test_what_a_container_asks_for_that_was_given_the_pod_s_limit(container: ResourceSettings, milli: int):
    assert asked_by_itself(BOTH, container) == milli


def resources(cpus: float, quota: float = 0, memory: int = 0) -> nri.LinuxResources:
    """As they were seen: a quota that is not set is a message without a value."""
    made = nri.LinuxResources()
    made.cpu.shares.value = max(2, int(cpus * 1024))
    made.cpu.period.value = 100_000
    made.cpu.quota.SetInParent()
    if quota:
        made.cpu.quota.value = int(quota * 100_000)
    if memory:
        made.memory.limit.value = memory
    return made


def sandbox(request: float, quota: float = 0, memory: int = 64 * MIB, /, **keys: str) -> nri.PodSandbox:
    made = member("a", **keys)
    made.linux.pod_resources.CopyFrom(resources(request, quota, memory if quota else 0))
    return made


def part(name: str, cpus: float = 0, quota: float = 0, memory: int = 64 * MIB) -> nri.Container:
    made = nri.Container(id=f"a-{name}", pod_sandbox_id="sandbox-a", name=name, state=nri.CONTAINER_RUNNING)
    made.linux.cgroups_path = f"/kubepods/a-{name}"
    made.linux.resources.CopyFrom(resources(cpus, quota, memory if quota else 0))
    return made


def told(*parts: tuple[str, int], cpu: int, **more) -> pb.Expect:
    """The extender's word. parts: names, and the CPUs that they ask for by themselves."""
    made = pb.Expect(pod="uid-a", budget=True, pod_demand=pb.Demand(cpu_milli=cpu, memory=64 * MIB), **more)
    for name, cpus in parts:
        made.containers.add(name=name, demand=pb.Demand(cpu_milli=1000 * cpus), slice=cpus)
    return made


def reserved(world: World) -> int:
    return world.agent.occupancy.reservations["uid-a"].demand.cpu_milli


class TestRecorded:
    """The two pods that were run on the real ones."""

    def test_one_cpu_for_two_containers_is_one_exclusive_cpu_that_both_have(self, world: World) -> None:
        of = sandbox(1, 1, cpus="exclusive")
        for name in ("first", "second"):
            world.create(of, part(name, 1, 1))
        assert world.cpus("a-first") == world.cpus("a-second")
        assert len(world.agent.occupancy.exclusive) == 1
        assert reserved(world) == 1000

    def test_requests_alone_count_as_the_pod_s(self, world: World) -> None:
        of = sandbox(0.7)
        for name in ("first", "second"):
            world.create(of, part(name))
        assert reserved(world) == 700

    @pytest.mark.parametrize("scope", ["pod", "container"])
    def test_shared_containers_count_the_budget_once(self, world: World, scope: str) -> None:
        of = sandbox(6, 6, scope=scope)
        for name in ("first", "second", "third"):
            world.create(of, part(name, 6, 6))
        assert sum(world.agent.occupancy.cpu_load(world.machine).values()) == 6000
        assert world.cpus("a-first") == world.cpus("a-third")

    def test_its_memory_counts_once_too(self, world: World) -> None:
        of = sandbox(1, 1)
        for name in ("first", "second"):
            world.create(of, part(name, 1, 1))
        demand = world.agent.occupancy.reservations["uid-a"].demand
        assert (demand.memory, demand.memory_limit) == (64 * MIB, 64 * MIB)


class TestSlices:
    @pytest.mark.parametrize("nominated", [True, False])
    @pytest.mark.parametrize("order", [("app", "db", "log"), ("db", "log", "app"), ("log", "app", "db")])
    def test_whole_cpus_of_its_own_are_cut_out_of_the_pod_s(self, world: World, order, nominated) -> None:
        parts = {"app": part("app", 4, 4), "db": part("db", 2, 2, 32 * MIB), "log": part("log", 4, 4)}
        if nominated:
            world.agent.expect(told(("app", 0), ("db", 2), ("log", 0), cpu=4000))
        for name in order:
            world.create(sandbox(4, 4, cpus="exclusive"), parts[name])
        app, db, log = (set(world.agent.occupancy.allocations[f"a-{name}"].exclusive) for name in ("app", "db", "log"))
        assert app == log
        assert (len(app), len(db), len(world.agent.occupancy.exclusive)) == (2, 2, 4)
        assert {name: world.cpus(f"a-{name}") for name in parts} == {
            name: str(world.agent.occupancy.allocations[f"a-{name}"].cpus) for name in parts
        }, "what the runtime was told is what is known"

    def test_with_the_extender_s_word_a_pod_with_requests_alone_has_its_set_too(self, world: World) -> None:
        world.agent.expect(told(("first", 0), ("second", 0), cpu=2000))
        for name in ("first", "second"):
            world.create(sandbox(2, cpus="exclusive"), part(name))
        assert world.cpus("a-first") == world.cpus("a-second")
        assert len(world.agent.occupancy.exclusive) == 2


class TestResize:
    """A resize in place of the pod's own resources is followed where the runtime shows it."""

    @pytest.fixture
    def running(self, world: World) -> World:
        for name in ("first", "second"):
            world.create(sandbox(2, 2), part(name, 2, 2))
        assert reserved(world) == 2000
        return world

    @pytest.mark.parametrize("order", ["pod first", "containers first"])
    def test_where_the_runtime_says_so(self, running: World, order: str) -> None:
        """UpdatePodSandbox, from NRI 0.10 on: whichever of the two comes first."""

        def of_pod() -> None:
            running.agent.update_pod_sandbox(sandbox(2, 2), resources(3, 3, 128 * MIB))

        if order == "pod first":
            of_pod()
        for name in ("first", "second"):
            running.agent.update_container(sandbox(2, 2), part(name, 2, 2), resources(3, 3, 128 * MIB))
        if order != "pod first":
            of_pod()
        assert reserved(running) == 3000
        assert running.agent.occupancy.reservations["uid-a"].demand.memory == 128 * MIB

    def test_else_by_the_containers_that_were_given_its_limit(self, running: World) -> None:
        for name in ("first", "second"):
            running.agent.update_container(sandbox(2, 2), part(name, 2, 2), resources(3, 3, 128 * MIB))
        assert reserved(running) == 3000

    @pytest.mark.parametrize("cpus", [3, 1])
    def test_its_exclusive_cpus_become_as_many(self, world: World, cpus: int) -> None:
        of = sandbox(2, 2, cpus="exclusive")
        for name in ("first", "second"):
            world.create(of, part(name, 2, 2))
        updates = world.agent.update_container(of, part("first", 2, 2), resources(cpus, cpus, 64 * MIB))
        world.apply(updates)
        world.apply(world.agent.update_container(of, part("second", 2, 2), resources(cpus, cpus, 64 * MIB)))
        world.agent.update_pod_sandbox(of, resources(cpus, cpus, 64 * MIB))
        assert world.cpus("a-first") == world.cpus("a-second") == str(world.agent.occupancy.exclusive)
        assert len(world.agent.occupancy.exclusive) == cpus

    def test_beyond_its_namespaces_quota_it_shares_as_any_other(self, world: World) -> None:
        of = sandbox(2, 2, cpus="exclusive")
        world.agent.ledger.occupancy = replace(world.agent.occupancy, rules=Rules(max_exclusive_cpus_per_namespace=2))
        for name in ("first", "second"):
            world.create(of, part(name, 2, 2))
        assert len(world.agent.occupancy.exclusive) == 2
        for name in ("first", "second"):
            world.agent.update_container(of, part(name, 2, 2), resources(4, 4, 64 * MIB))
        world.agent.update_pod_sandbox(of, resources(4, 4, 64 * MIB))
        assert not world.agent.occupancy.exclusive

    def test_its_cpusets_are_sent_at_once_though_the_answer_has_none(self, world: World) -> None:
        """Where the runtime takes updates at any time; elsewhere they wait, as all such do."""
        loop, of = TimersAlone(), sandbox(2, 2, cpus="exclusive")
        hook = Hook(loop, {})
        hook.wiring.agent, hook.wiring.at_any_time = world.agent, True
        hook.wiring.carry_out = lambda updates, _on_answer: world.apply(updates)
        world.agent.expect(told(("first", 0), ("second", 0), cpu=2000))
        for name in ("first", "second"):
            world.create(of, part(name, 2, 2))
        resized = hook.handlers().update_pod_sandbox
        assert resized is not None
        resized(of, nri.LinuxResources(), resources(4, 4, 64 * MIB))
        loop.go_on(0.1)
        assert world.cpus("a-first") == world.cpus("a-second") == str(world.agent.occupancy.exclusive)
        assert len(world.agent.occupancy.exclusive) == 4

    def test_a_slice_stays_when_the_rest_is_resized(self, world: World) -> None:
        of = sandbox(4, 4, cpus="exclusive")
        world.agent.expect(told(("app", 0), ("db", 2), cpu=4000))
        for entry in (part("app", 4, 4), part("db", 2, 2, 32 * MIB)):
            world.create(of, entry)
        before = world.cpus("a-db")
        world.agent.update_pod_sandbox(of, resources(6, 6, 64 * MIB))
        app, db = (world.agent.occupancy.allocations[f"a-{name}"].exclusive for name in ("app", "db"))
        assert (str(db), len(app), app.isdisjoint(db)) == (before, 4, True)

    def test_of_a_plain_pod_the_new_sum_counts_once(self, world: World) -> None:
        of = sandbox(2, 2)
        for name in ("first", "second"):
            world.create(of, part(name, 1, 1, 32 * MIB))
        world.agent.update_container(of, part("first", 1, 1, 32 * MIB), resources(3, 3, 32 * MIB))
        assert reserved(world) == 4000
        world.agent.update_pod_sandbox(of, resources(4, 4, 64 * MIB))
        assert reserved(world) == 4000

    def test_goes_before_an_older_word_of_the_extender(self, world: World) -> None:
        world.agent.expect(told(("first", 0), ("second", 0), cpu=2000))
        for name in ("first", "second"):
            world.create(sandbox(2, 2), part(name, 2, 2))
        world.agent.update_pod_sandbox(sandbox(2, 2), resources(3, 3, 64 * MIB))
        assert reserved(world) == 3000
        world.agent.expect(told(("first", 0), ("second", 0), cpu=3000))
        assert reserved(world) == 3000

    def test_of_a_pod_that_is_no_member_changes_nothing(self, world: World) -> None:
        before = world.agent.occupancy
        world.agent.update_pod_sandbox(nri.PodSandbox(uid="stranger"), resources(3, 3))
        assert world.agent.occupancy is before


class TestReleased:
    def test_a_resize_pins_nothing(self, world: World) -> None:
        world.agent.release()
        of = sandbox(2, 2, cpus="exclusive")
        for name in ("first", "second"):
            world.create(of, part(name, 2, 2))
        world.agent.update_pod_sandbox(of, resources(3, 3, 64 * MIB))
        assert world.agent.moves.unsent_updates() == []
        assert not world.agent.occupancy.exclusive


class TestRestart:
    def test_containers_that_share_a_set_share_it_after_a_restart(self, world: World) -> None:
        of, parts = sandbox(4, 4, cpus="exclusive"), [part("a", 4, 4), part("db", 2, 2, 32 * MIB), part("b", 4, 4)]
        for entry in parts:
            world.create(of, entry)
        before, past = world.agent.occupancy.allocations, Past().with_those_of(world.agent.occupancy)
        world.started().takeover.remember(past)
        world.apply(world.agent.synchronize([of], parts))
        assert world.agent.occupancy.allocations == before
