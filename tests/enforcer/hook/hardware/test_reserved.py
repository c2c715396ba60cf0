"""`--reserved-cpus` is another at a restart: who is on CPUs that are reserved by now is placed anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from enforcer.hook.agent import Agent
from enforcer.hook.ownership import checkpoint
from numakin.placement.model.cpuset import CpuSet
from tests.enforcer.hook.world import World, container, member

OWN = {"cpus": "exclusive"}
SYSTEM = {"katalyst.kubewharf.io/qos_level": "system_cores"}


def restarted(world: World, reserved: str, **members: dict[str, str]) -> None:
    """members: their annotations by name; each asks for 2 CPUs."""
    past = checkpoint.read(checkpoint.Wording().text(world.agent.occupancy, checkpoint.Past(), released=False))
    world.agent = Agent(replace(world.facts(), reserved=CpuSet.parse(reserved)), world.nominations)
    world.agent.takeover.remember(past)
    pods = [member(name, **keys) for name, keys in members.items()]
    world.apply(world.agent.synchronize(pods, [container(name, 2) for name in members]))


@pytest.mark.parametrize("reserved", ["0", "0-3", "0-3,8-11"], ids=["a CPU", "half", "all of its NUMA node"])
@pytest.mark.parametrize("keys", [{}, OWN], ids=["shared", "exclusive"])
def test_a_member_leaves_cpus_that_are_reserved_now(world: World, keys: dict[str, str], reserved: str) -> None:
    world.create(member("a", **keys), container("a", 2))
    assert not CpuSet.parse(world.cpus("a")).isdisjoint(CpuSet.parse(reserved))
    restarted(world, reserved, a=keys)
    held = world.agent.occupancy.allocations["a"]
    assert world.cpus("a") == str(held.cpus)
    assert held.cpus.isdisjoint(CpuSet.parse(reserved))
    assert (len(held.exclusive), held.open) == (2 if keys else 0, False)


def test_what_was_decided_anew_says_why(world: World) -> None:
    world.create(member("a", **OWN), container("a", 2))
    restarted(world, "0", a=OWN)
    assert str(world.agent.records.latest()["a"].reasons[0].what) == "reserved"


def test_cpus_that_are_reserved_no_more_are_in_the_pool_again(world: World) -> None:
    world.agent = Agent(replace(world.facts(), reserved=CpuSet.parse("0-1")), world.nominations)
    world.create(member("a"), container("a", 2))
    other = world.cpus("a")
    restarted(world, "", a={})
    assert world.cpus("a") in {"0-3,8-11", "4-7,12-15"}
    assert CpuSet.parse(other) <= CpuSet.parse(world.cpus("a"))


def test_who_is_to_run_on_reserved_cpus_gets_them_from_the_member_that_had_them_for_itself(world: World) -> None:
    world.create(member("own", **OWN), container("own", 2))
    world.create(member("system", **SYSTEM), container("system", 2))
    reserved = world.cpus("own")
    restarted(world, reserved, own=OWN, system=SYSTEM)
    assert world.cpus("system") == reserved
    held = world.agent.occupancy.allocations["own"]
    assert (world.cpus("own"), len(held.exclusive)) == (str(held.exclusive), 2)
    assert str(held.exclusive) != reserved
