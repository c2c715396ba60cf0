"""What a container has touched by the time that it is placed. The kernel moves the pages that new `cpuset.mems` leave
out before it returns from the write, and the runtime starts no container meanwhile.
"""

from __future__ import annotations

import pytest

from numakin.placement.model.cpuset import CpuSet, NumaSet
from tests.enforcer.hook.changing import becomes, without
from tests.enforcer.hook.moving import ON, offer, run
from tests.enforcer.hook.world import GIB, World, container, member
from tests.machines import machine

MIB = 1 << 20


def runs_unpinned(world: World, name: str, memory: dict[int, int], **more: str) -> None:
    """It came while there was no enforcer."""
    made = container(name, memory=8 * GIB)
    made.pid = 1
    world.memory[made.linux.cgroups_path] = memory
    world.cgroups[made.linux.cgroups_path] = world.machine.all_cpus, world.machine.all_mems
    world.apply(world.agent.synchronize([member(name, **more)], [made]))


@pytest.mark.parametrize(
    ("memory", "more", "mems"),
    [
        ({0: 6 * GIB}, {}, "0"),
        ({0: GIB, 1: 100 * MIB}, {}, "0"),
        ({0: 3 * GIB, 1: 3 * GIB}, {}, "0-1"),
        ({0: 3 * GIB, 1: 3 * GIB}, {"move": "cpus-and-memory"}, "0"),
        ({0: 3 * GIB, 1: 20 * GIB}, {"move": "cpus-and-memory"}, "0-1"),
    ],
    ids=["at home", "little elsewhere", "much elsewhere", "much that may follow", "too much to follow at a time"],
)
def test_a_member_that_ran_unpinned_is_bound_where_little_would_be_moved_for_it(
    world: World, memory: dict[int, int], more: dict[str, str], mems: str
) -> None:
    runs_unpinned(world, "a", memory, **more)
    assert (world.cpus("a"), world.mems("a")) == ("0-3,8-11", mems)
    reasons = {reason.what: reason.effect for reason in world.last.reasons}
    assert ("pages" in reasons) == (mems == "0-1")


@pytest.mark.parametrize(
    ("memory", "mems"),
    [({1: 2 * GIB}, "0"), ({1: 20 * GIB}, "0-1")],
    ids=["much that may follow", "too much to follow at a time"],
)
def test_one_that_waited_for_room_is_bound_where_its_pages_may_follow(memory: dict[int, int], mems: str) -> None:
    world = World(machine("two NUMA nodes", ["0-7", "8-15"], [64, 64]))
    for name in ("a", "b"):
        world.create(member(name, group=name), container(name, 6))
    waiting, made = member("late", move="cpus-and-memory"), container("late", 4, memory=40 * GIB)
    world.create(waiting, made)
    assert (world.cpus("late"), world.mems("late")) == ("0-15", "0-1")
    made.pid = 1
    world.start(waiting, made)
    world.memory[made.linux.cgroups_path] = memory
    world.apply(world.agent.stop_container(member("a", group="a"), container("a", 6)))
    world.agent.stop_pod_sandbox(member("a", group="a"))
    world.apply(world.agent.moves.second_best.improve())
    assert (world.cpus("late"), world.mems("late")) == ("0-7", mems)


def test_one_whose_pages_stay_is_placed_no_other_way_at_the_next_start(world: World) -> None:
    runs_unpinned(world, "a", {1: 4 * GIB})
    before = world.cgroups["/kubepods/a"]
    made = container("a", memory=8 * GIB)
    made.pid = 1
    for agent in (world.agent, world.started()):
        world.apply(agent.synchronize([member("a")], [made]))
        assert world.cgroups["/kubepods/a"] == before


@pytest.mark.parametrize("named", ["", "0-1"], ids=["version 2", "version 1"])
def test_a_binding_that_was_lost_is_not_made_at_the_next_start_over_what_was_touched_since(
    world: World, named: str
) -> None:
    """As where the runtime hung up over it."""
    made = container("a", memory=8 * GIB)
    world.create(member("a"), made)
    assert (world.cpus("a"), world.mems("a")) == ("0-3,8-11", "0")
    made.pid = 1
    world.cgroups["/kubepods/a"] = CpuSet.parse("0-3,8-11"), NumaSet.parse(named)
    world.memory["/kubepods/a"] = {0: GIB, 1: 5 * GIB}
    world.apply(world.agent.synchronize([member("a")], [made]))
    assert (world.cpus("a"), world.mems("a")) == ("0-3,8-11", named)
    assert not world.agent.occupancy.allocations["a"].mems


def test_one_with_open_memory_that_is_resized_is_not_bound_away_from_its_pages(world: World) -> None:
    own, made = member("own", cpus="exclusive"), container("own", 2, memory=0)
    world.create(own, made)
    assert (world.cpus("own"), world.mems("own")) == ("0,8", "0-1"), "it has no limit"
    made.pid = 1
    world.start(own, made)
    world.memory["/kubepods/own"] = {0: GIB, 1: 4 * GIB}
    resources = container("own", 3, memory=8 * GIB).linux.resources
    world.apply(world.agent.update_container(own, made, resources))
    assert len(CpuSet.parse(world.cpus("own"))) == 3
    assert world.mems("own") == "0-1"


def test_one_whose_cpus_go_leaves_its_pages_where_they_are(world: World) -> None:
    made = container("a", memory=8 * GIB)
    world.create(member("a"), made)
    assert (world.cpus("a"), world.mems("a")) == ("0-3,8-11", "0")
    made.pid = 1
    world.start(member("a"), made)
    world.memory["/kubepods/a"] = {0: 6 * GIB}
    becomes(world, without(world.machine, CpuSet.parse("0-3,8-11")))
    assert (world.cpus("a"), world.mems("a")) == ("4-7,12-15", "0-1")


def moving(world: World, name: str, home: str, memory: int) -> None:
    """It runs there, with so many bytes, which may follow it."""
    follows = {"move": "cpus-and-memory"}
    run(world, name, home, **follows)
    made = container(name)
    made.pid = 1
    world.start(member(name, group=name, **follows), made)
    world.memory[made.linux.cgroups_path] = {int(home): memory}


def go(world: World, *ways: tuple[str, str, str]) -> None:
    """A step towards a whole that pays."""
    offered = offer([*ways])
    offered.steps[0].whole = True
    world.apply(world.agent.moves.make(offered.steps[0], offered))


@pytest.mark.parametrize(
    ("memory", "mems"), [(16 * GIB, "1"), (16 * GIB + 1, "0-1")], ids=["as much as may follow", "more"]
)
def test_one_that_is_moved_to_its_kin_takes_along_no_more_than_a_runtime_may_wait_for(
    world: World, memory: int, mems: str
) -> None:
    """However much the observer, which looked at it before, took it to have."""
    moving(world, "a", "0", memory)
    go(world, ("a", "0", "1"))
    assert (world.cpus("a"), world.mems("a")) == (ON["1"], mems)


def test_two_that_change_places_take_along_no_more_together(world: World) -> None:
    moving(world, "a", "0", 9 * GIB)
    moving(world, "b", "1", 9 * GIB)
    go(world, ("a", "0", "1"), ("b", "1", "0"))
    assert {name: (world.cpus(name), world.mems(name)) for name in "ab"} == {"a": (ON["1"], "1"), "b": (ON["0"], "0-1")}
