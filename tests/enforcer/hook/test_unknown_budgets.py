"""A pod's own CPUs are given to its containers once, also where they were not known when the first ones came."""

from __future__ import annotations

from dataclasses import replace

import pytest

from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.demand import Demand
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb
from tests.enforcer.hook.world import GIB, World, container, member

OWN = {"cpus": "exclusive"}


def of_pod(sandbox: nri.PodSandbox, name: str, cpus: int) -> nri.Container:
    """A container that asks for nothing itself, as the kubelet makes it: with its pod's limit."""
    made = container(f"{sandbox.name}-{name}", cpus)
    made.name = name
    made.linux.resources.CopyFrom(limited(cpus))
    return made


def limited(cpus: int) -> nri.LinuxResources:
    made = nri.LinuxResources()
    made.cpu.shares.value, made.cpu.period.value, made.cpu.quota.value = 1024 * cpus, 100_000, 100_000 * cpus
    made.memory.limit.value = GIB
    return made


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
