"""What the hook says of each container for `status`: its group, and what numakin makes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from enforcer.hook import status_report
from enforcer.hook.agent import Agent
from numakin.placement.model.cpuset import CpuSet
from tests.enforcer.hook.reading_back import read, with_one_stuck
from tests.enforcer.hook.world import GIB, World, container, member, pod


@pytest.fixture
def world() -> World:
    made = World()
    made.agent = Agent(replace(made.facts(), in_vm="kata".__eq__), made.nominations)
    return made


def rows(world: World) -> dict[str, dict[str, Any]]:
    """By container id."""
    containers: Any = status_report.of(world.agent)["containers"]
    return {row["id"]: row for row in containers}


def standing(world: World, name: str) -> tuple[str, str]:
    return rows(world)[name]["group"], rows(world)[name]["state"]


def confined(name: str):
    """Another owner asks for its CPUs."""
    made = container(name)
    made.linux.resources.cpu.cpus = "0-2"
    return made


def test_a_member_on_its_numa_node_is_pinned_and_a_restart_changes_nothing_of_it(world: World) -> None:
    world.create(member("web"), container("web"))
    assert standing(world, "web") == ("shop/web", "pinned")
    world.started().synchronize([member("web")], [container("web")])
    assert standing(world, "web") == ("shop/web", "pinned")


def test_who_fits_nowhere_is_left_open(world: World) -> None:
    world.create(member("own", cpus="exclusive"), container("own", 2))
    world.create(member("big", "big"), container("big", 1, 64 * GIB))
    assert standing(world, "big") == ("shop/big", "left open")


def test_who_asks_for_no_placement_is_open_as_asked(world: World) -> None:
    world.create(member("free", policy="none"), container("free"))
    assert standing(world, "free") == ("shop/web", "open as asked")


def test_whose_cpuset_another_owner_sets_is_yielded(world: World) -> None:
    world.create(member("a"), confined("a"))
    assert standing(world, "a") == ("shop/web", "yielded")


def test_whose_cpuset_a_plugin_claims_that_is_asked_later_is_a_conflict(world: World) -> None:
    world.fail(member("a"), container("a1"))
    world.create(member("a"), container("a2"))
    assert standing(world, "a2") == ("shop/web", "conflict")
    assert rows(world).keys() == {"a2"}, "of the one that was never created nothing is said"


def test_one_in_a_virtual_machine_is_said_to_be_in_one(world: World) -> None:
    of = member("a")
    of.runtime_handler = "kata"
    world.create(of, container("a"))
    assert standing(world, "a") == ("shop/web", "in a virtual machine")


def test_after_a_release_all_are_released(world: World) -> None:
    world.create(member("before"), container("before"))
    world.agent.release()
    world.create(member("after"), container("after"))
    assert {row["state"] for row in rows(world).values()} == {"released"}


def test_one_that_has_stopped_is_not_counted_as_pinned(world: World) -> None:
    world.create(member("a"), container("a"))
    world.agent.stop_container(member("a"), container("a"))
    assert {row["state"] for row in rows(world).values()} <= {"stopped"}


def test_whose_cgroup_differs_shows_what_it_has(world: World) -> None:
    read(with_one_stuck(world), 5)
    row = rows(world)["web"]
    assert (row["state"], row["found_cpus"]) == ("pinned", "0-3,8-11")
    assert CpuSet.parse(row["found_cpus"]) != CpuSet.parse(row["cpus"])


def test_other_owners_have_the_same_part_of_the_members_when_the_node_is_released(world: World) -> None:
    for name in "abc":
        world.create(member(name), container(name))
    claimed = container("d")
    claimed.linux.resources.cpu.cpus = "5"
    world.create(member("d"), claimed)
    world.create(pod("stranger"), container("stranger"))
    before = world.agent.ledger.yielded
    assert (before.containers, before.members, before.powerless) == (1, 4, False)
    world.apply(world.agent.release())
    assert world.agent.ledger.yielded == before
