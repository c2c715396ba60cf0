"""Containers of runtimes of virtual machines: their cpuset sizes the machine, so it is nobody's to narrow."""

from dataclasses import replace

import pytest

from enforcer.hook.agent import Agent
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.rules import Rules
from numakin.wire import nri_pb2 as nri
from tests.enforcer.hook.world import World, container, member, pod


@pytest.fixture
def world() -> World:
    made = World()
    facts = replace(made.facts(), rules=Rules(everyone=True), in_vm="kata".__eq__)
    made.agent = Agent(facts, made.nominations)
    return made


def in_vm(of: nri.PodSandbox) -> nri.PodSandbox:
    of.runtime_handler = "kata"
    return of


def test_a_member_is_left_open_and_says_why(world: World) -> None:
    world.agent.run_pod_sandbox(in_vm(member("a")))
    assert world.create(in_vm(member("a")), container("a")) is None
    assert world.last.event == "vm"
    assert world.last.reasons[0].number == "kata"
    assert world.agent.records.counts["in vm"] == 1


def test_nobody_is_moved_off_exclusive_cpus_in_one(world: World) -> None:
    for name, of in (("opted", member), ("plain", pod)):
        world.create(in_vm(of(name)), container(name))
    world.create(member("own", cpus="exclusive"), container("own"))
    for name, of in (("later opted", member), ("later plain", pod)):
        assert world.create(in_vm(of(name)), container(name)) is None
    assert {world.cpus(name) for name in ("opted", "plain")} == {"0-15"}
    assert len(CpuSet.parse(world.cpus("own"))) == 1


def test_it_takes_room_by_its_requests(world: World) -> None:
    world.create(in_vm(member("a")), container("a", cpus=14))
    assert sum(world.agent.occupancy.cpu_load(world.machine).values()) == 14_000


def test_what_runs_already_is_left_as_it_is_and_that_is_said_once(world: World, caplog) -> None:
    names = ("a", "b")
    for name in names:
        world.cgroups[f"/kubepods/{name}"] = world.machine.all_cpus, world.machine.all_mems
    pods = [in_vm(member(name)) for name in names]
    assert world.agent.synchronize(pods, [container(name) for name in names]) == []
    world.agent.records.compose()
    assert [record.fields["handler"] for record in caplog.records if "virtual machines" in record.message] == ["kata"]
