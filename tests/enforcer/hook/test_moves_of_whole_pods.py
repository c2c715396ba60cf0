"""No move parts a pod whose containers are placed one by one."""

from __future__ import annotations

import pytest

from numakin.placement.model.cpuset import CpuSet
from numakin.wire import report_pb2 as pb
from tests.enforcer.hook.moving import ON, make, offer, run, talk
from tests.enforcer.hook.world import World, container, limited, member, of_pod


@pytest.fixture
def sidecars(world: World) -> World:
    """a on NUMA node 0, two containers that are placed one by one; b on 1, with which it talks."""
    run(world, "a", "0", scope="container")
    side = container("a-side")
    side.name, side.pod_sandbox_id = "side", "sandbox-a"
    world.create(member("a", group="a", scope="container"), side)
    run(world, "b", "1")
    talk(world, "ab")
    return world


def test_all_containers_of_a_pod_move_in_one_step(sidecars: World) -> None:
    make(sidecars, ("a", "0", "1"))
    assert {sidecars.cpus(name) for name in ("a", "a-side")} == {ON["1"]}


def test_where_the_runtime_moves_one_of_them_the_others_come_back_to_it(sidecars: World) -> None:
    before, (step,) = sidecars.agent.occupancy, offer([("a", "0", "1")]).steps
    make(sidecars, ("a", "0", "1"))
    sidecars.apply(sidecars.agent.moves.take_back(step, ["a-side"], before))
    assert sidecars.cpus("a") == ON["0"]
    assert sidecars.agent.occupancy.allocations == before.allocations
    assert sidecars.agent.occupancy.reservations == before.reservations


@pytest.mark.parametrize("own", ["exclusive", "shared-stable"])
def test_one_that_came_to_where_its_pod_was_to_go_comes_back_to_it(world: World, own: str) -> None:
    keys = {"cpus.numakin.io/container.side": own}
    world.nominations.add(pb.Expect(pod="uid-a", numa_nodes="0"))
    world.create(member("a", group="a", **keys), container("a"))
    run(world, "b", "1")
    talk(world, "ab")
    before, offered = world.agent.occupancy, offer([("a", "0", "1")])
    really = world.cgroups["/kubepods/a"]
    world.apply(world.agent.moves.make(offered.steps[0], offered))
    world.cgroups["/kubepods/a"] = really
    side = container("a-side")
    side.name, side.pod_sandbox_id = "side", "sandbox-a"
    world.create(member("a", group="a", **keys), side)
    world.apply(world.agent.moves.take_back(offered.steps[0], ["a"], before))
    held = world.agent.occupancy.allocations["a-side"]
    assert held.cpus <= CpuSet.parse(ON["0"])
    assert world.cpus("a-side") == str(held.cpus)
    assert held.exclusive if own == "exclusive" else held.stable


def test_of_a_pod_that_was_not_moved_one_that_came_meanwhile_shares_the_pods_own_cpus(world: World) -> None:
    """And has none more, beside them, on the NUMA node where the pod was to go."""
    sandbox = member("a", group="a", cpus="exclusive")
    sandbox.linux.pod_resources.CopyFrom(limited(2))
    world.nominations.add(pb.Expect(pod="uid-a", numa_nodes="0"))
    world.create(sandbox, of_pod(sandbox, "app", 2))
    run(world, "b", "1")
    talk(world, "ab")
    before, offered = world.agent.occupancy, offer([("a", "0", "1")])
    really = world.cgroups["/kubepods/a-app"]
    world.apply(world.agent.moves.make(offered.steps[0], offered))
    world.cgroups["/kubepods/a-app"] = really
    world.create(sandbox, of_pod(sandbox, "side", 2))
    world.apply(world.agent.moves.take_back(offered.steps[0], ["a-app"], before))
    assert world.cpus("a-side") == world.cpus("a-app") == str(really[0])


def test_a_pod_whose_containers_no_numa_node_holds_is_not_moved_in_part(world: World) -> None:
    for name in ("one", "two"):
        part = container(f"a-{name}", cpus=6)
        part.name, part.pod_sandbox_id = name, "sandbox-a"
        sandbox = member("a", scope="container")
        sandbox.linux.pod_resources.cpu.shares.value = 12 * 1024
        world.create(sandbox, part)
    run(world, "b", "1")
    talk(world, "ab")
    assert {world.mems(f"a-{name}") for name in ("one", "two")} == {"0", "1"}
    for key in ("a/one", "a/two", "a"):
        assert make(world, (key, "0", "1")) == []
