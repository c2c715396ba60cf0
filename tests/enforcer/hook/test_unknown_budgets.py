"""A pod's own CPUs are given to its containers once, also where they were not known when the first ones came."""

from __future__ import annotations

from dataclasses import replace

import pytest

from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.demand import Demand
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb
from tests.enforcer.hook.world import GIB, World, container, limited, member, of_pod, pod
from tests.machines import machine

OWN = {"cpus": "exclusive"}


def own(world: World, name: str) -> CpuSet:
    return world.agent.occupancy.allocations[name].exclusive


@pytest.fixture
def sandbox(world: World) -> nri.PodSandbox:
    """Of six CPUs, where each NUMA node has five left: its containers are placed one by one."""
    for name in ("a", "b"):
        world.create(member(name, group=name, **OWN), container(name, 3))
    return member("p", scope="container", **OWN)


def test_a_second_container_shows_that_the_first_has_its_pods(world: World, sandbox: nri.PodSandbox) -> None:
    sandbox.linux.pod_resources.CopyFrom(limited(6))
    world.create(sandbox, of_pod(sandbox, "app", 6))
    world.create(sandbox, of_pod(sandbox, "side", 6))
    assert (len(own(world, "p-app")), own(world, "p-side")) == (6, own(world, "p-app"))
    assert world.cpus("p-side") == world.cpus("p-app")


def test_it_is_shared_where_it_leaves_nothing_else_of_its_numa_node(world: World) -> None:
    sandbox = member("p", **OWN)
    sandbox.linux.pod_resources.CopyFrom(limited(8))
    for name in ("app", "side"):
        world.create(sandbox, of_pod(sandbox, name, 8))
    assert world.cpus("p-side") == world.cpus("p-app") == "0-3,8-11"


def test_what_was_given_twice_is_taken_back_when_the_extender_says_whose_it_is(
    world: World, sandbox: nri.PodSandbox
) -> None:
    """The runtime does not say what the sandbox has."""
    for name in ("app", "side"):
        world.create(sandbox, of_pod(sandbox, name, 4))
    assert (len(own(world, "p-app")), len(own(world, "p-side"))) == (4, 4)
    said = pb.Expect(pod=sandbox.uid, budget=True, pod_demand=pb.Demand(cpu_milli=4000, memory=GIB))
    for name in ("app", "side"):
        said.containers.add(name=name, demand=pb.Demand())
    world.agent.expect(said)
    world.apply(world.agent.moves.with_stop([]))
    assert len(own(world, "p-app")) == 4
    assert own(world, "p-side") == own(world, "p-app")
    assert world.cpus("p-side") == world.cpus("p-app") == str(own(world, "p-app"))


@pytest.mark.parametrize("claimed", ["", "8-11"], ids=["ours", "another owner's"])
def test_a_container_that_was_placed_by_itself_has_the_cpus_of_its_pod_s_numa_nodes_from_then_on(claimed: str) -> None:
    """Where its pod was before there was no room for it when it came again; the room there is kept. claimed: the CPUs
    that the one that shows it has from another owner.
    """
    world = World(machine("four NUMA nodes", ["0-3", "4-7", "8-11", "12-15"], [8, 8, 8, 8]))
    sandbox = member("p", scope="container")
    sandbox.linux.pod_resources.CopyFrom(limited(4))
    app, again, side = (of_pod(sandbox, name, 4) for name in ("app", "again", "side"))
    again.name = "app"
    world.create(sandbox, app)
    world.agent.stop_container(sandbox, app)
    world.create(pod("plain"), container("plain"))
    world.create(sandbox, again)
    assert CpuSet.parse(world.cpus("p-again")).isdisjoint(CpuSet.parse(world.cpus("p-app")))
    alone = CpuSet.parse(world.cpus("p-again"))
    side.linux.resources.cpu.cpus = claimed
    world.create(sandbox, side)
    assert world.cpus("p-again") == str(alone | CpuSet.parse(world.cpus("p-app")))
    assert claimed or world.cpus("p-side") == world.cpus("p-again")


def test_who_asks_for_cpus_by_itself_for_a_moment_gets_none_that_its_pods_other_container_has(world: World) -> None:
    """As a resize of the pod may look like before it has reached both."""
    sandbox = member("p", **OWN)
    sandbox.linux.pod_resources.CopyFrom(limited(2))
    for name in ("app", "side"):
        world.create(sandbox, of_pod(sandbox, name, 2))
    ledger = world.agent.ledger
    ledger.place(replace(ledger.requests["p-app"], budget=None, demand=Demand(cpu_milli=1000)))
    assert len(own(world, "p-app")) == 1
    assert own(world, "p-app").isdisjoint(own(world, "p-side"))
    assert len(own(world, "p-side")) == 2
