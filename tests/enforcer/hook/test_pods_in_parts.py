"""A pod of which one container is not placed with the others: what each of them asks for takes room once."""

from __future__ import annotations

import pytest

from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb
from tests.enforcer.hook.world import World, container, pod

APART = pod("p", group="web", scope="container", cpus="exclusive")


def named(key: str, name: str, cpus: int) -> nri.Container:
    made = container(key, cpus)
    made.name = name
    return made


@pytest.fixture
def apart(world: World) -> World:
    """The first was placed for its pod, as nothing was known of the second; no NUMA node has eight CPUs for both."""
    world.create(APART, named("a", "first", 5))
    world.create(APART, named("b", "second", 5))
    assert taken(world) == {"uid-p": ("0", 5000), "uid-p/second": ("1", 5000)}
    return world


def taken(world: World) -> dict[str, tuple[str, int]]:
    reservations = world.agent.occupancy.reservations
    return {key: (str(each.numa_nodes), each.demand.cpu_milli) for key, each in reservations.items()}


def resized(world: World, key: str, name: str, cpus: int) -> None:
    more = named(key, name, cpus)
    world.apply(world.agent.update_container(APART, named(key, name, 5), more.linux.resources))


def test_who_is_resized_stays_on_its_numa_node(apart: World) -> None:
    resized(apart, "b", "second", 6)
    assert taken(apart) == {"uid-p": ("0", 5000), "uid-p/second": ("1", 6000)}
    resized(apart, "a", "first", 4)
    assert taken(apart) == {"uid-p": ("0", 4000), "uid-p/second": ("1", 6000)}


@pytest.mark.parametrize(("key", "name"), [("a", "first"), ("b", "second")])
def test_who_starts_again_finds_its_place_again(apart: World, key: str, name: str) -> None:
    before = taken(apart)
    apart.apply(apart.agent.stop_container(APART, named(key, name, 5)))
    apart.create(APART, named("again", name, 5))
    assert taken(apart) == before


def test_one_that_joins_the_first_adds_to_it(apart: World) -> None:
    apart.create(APART, named("c", "third", 1))
    assert taken(apart) == {"uid-p": ("0", 6000), "uid-p/second": ("1", 5000)}


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_one_that_another_owner_takes_is_none_of_its_pods(world: World, first: str) -> None:
    sandbox, ours, theirs = pod("p", group="web"), named("a", "first", 2), named("b", "second", 3)
    whole = pb.Expect(pod="uid-p", namespace="shop", name="p", pod_demand=pb.Demand(cpu_milli=5000))
    world.agent.expect(whole)
    theirs.linux.resources.cpu.cpus = "4-6"
    for made in (ours, theirs) if first == "ours" else (theirs, ours):
        world.agent.create_container(sandbox, made)
    assert world.agent.occupancy.allocations["b"].externally_managed
    assert sum(world.agent.occupancy.cpu_load(world.machine).values()) == 5000
