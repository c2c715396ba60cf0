"""Members that another owner confines to more than one NUMA node, where the operator allows to narrow them within that."""

from dataclasses import replace

import pytest

from enforcer.hook.agent import Agent
from enforcer.hook.facts.node_facts import NodeFacts
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.wire import nri_pb2 as nri
from tests.enforcer.hook.changing import becomes, without
from tests.enforcer.hook.world import GIB, World, container, member

MACHINE, HOME = "0-15", {"0-3,8-11", "4-7,12-15"}


class Allowing(World):
    """The operator allows it."""

    def facts(self) -> NodeFacts:
        return replace(super().facts(), within_others=True)


@pytest.fixture
def world() -> World:
    return Allowing()


def confined(world: World, name: str, given: str, **more: str) -> nri.Container:
    """Created and started, with what the runtime does of it."""
    made = container(name)
    made.linux.resources.cpu.cpus = given
    adjust, _ = world.agent.create_container(member(name, **more), made)
    if adjust is not None:
        assert not adjust.linux.resources.cpu.cpus, "the runtime takes a cpuset from one plugin alone"
        made.annotations.update(adjust.annotations)
    world.cgroups[f"/kubepods/{name}"] = CpuSet.parse(given), world.machine.mems
    world.apply(world.agent.post_start_container(member(name), made))
    return made


def test_it_is_narrowed_to_a_numa_node_beside_its_kin_once_it_has_started(world: World) -> None:
    world.create(member("kin"), container("kin"))
    confined(world, "a", MACHINE)
    assert world.cpus("a") == world.cpus("kin")
    assert not world.agent.ledger.yielded.containers


def test_it_counts_as_what_its_workload_is_seen_to_use(world: World) -> None:
    confined(world, "a", MACHINE)
    world.agent.used({world.agent.ledger.demands.workload(member("a")): 3000})
    assert world.agent.occupancy.reservations["uid-a"].demand.used_milli == 3000


def test_its_memory_is_opened_too_when_it_may_use_more_than_its_numa_node_has(world: World) -> None:
    made = confined(world, "a", MACHINE)
    home = world.cpus("a")
    assert world.mems("a") == "0"
    more = container("a", memory=20 * GIB).linux.resources
    world.apply(world.agent.update_container(member("a"), made, more))
    assert (world.cpus("a"), world.mems("a")) == (home, "0-1")
    assert world.agent.occupancy.reservations["uid-a"].demand.memory_limit == 20 * GIB


@pytest.mark.parametrize(
    ("given", "more"),
    [("0-3,8-11", {}), ("0-2", {}), ("2-15", {}), (MACHINE, {"cpus": "exclusive"})],
    ids=["one NUMA node's", "less than that", "where its home would not lie within", "it wants CPUs of its own"],
)
def test_it_is_left_to_the_other_owner_where_nothing_is_to_be_narrowed(world: World, given: str, more: dict) -> None:
    confined(world, "a", given, **more)
    assert world.cpus("a") == given
    assert world.agent.ledger.yielded.containers == 1


def test_by_default_it_is_left_to_the_other_owner() -> None:
    world = World()
    confined(world, "a", MACHINE)
    assert world.cpus("a") == MACHINE
    assert world.agent.ledger.yielded.containers == 1


def test_it_follows_its_pool_and_is_never_placed_anew(world: World) -> None:
    """Elsewhere might be outside what the other owner gave it."""
    confined(world, "a", MACHINE)
    home = CpuSet.parse(world.cpus("a"))
    world.create(member("own", cpus="exclusive"), container("own"))
    assert CpuSet.parse(world.cpus("a")) == home - CpuSet.parse(world.cpus("own"))
    assert "a" not in world.agent.ledger.requests


def test_its_pods_next_container_may_be_wider_but_does_not_widen_it_beyond_the_other_owners(world: World) -> None:
    confined(world, "a", "0-14")
    side = container("side", cpus=12)
    side.name = "side"
    world.create(member("a"), side)
    assert world.cpus("side") == MACHINE
    assert world.cpus("a") == "0-14"
    assert world.agent.ledger.settle() == []


def test_where_its_home_goes_it_is_narrowed_to_another_within_the_same(world: World) -> None:
    made = confined(world, "a", MACHINE)
    home = CpuSet.parse(world.cpus("a"))
    becomes(world, without(world.machine, home))
    assert CpuSet.parse(world.cpus("a")) == CpuSet.parse(MACHINE) - home
    assert world.agent.ledger.within
    assert world.last.event == "machine"
    world.apply(world.agent.stop_container(member("a"), made))
    assert not world.agent.ledger.within
    assert not world.agent.ledger.narrowed


def test_where_nothing_of_it_can_be_its_home_any_more_it_is_left_to_the_other_owner(world: World) -> None:
    world.create(member("kin"), container("kin"))
    confined(world, "a", "0-4,8-12")
    assert world.cpus("a") == "0-3,8-11"
    becomes(world, without(world.machine, CpuSet.parse("0-3,8-11")))
    assert (world.cpus("a"), world.mems("a")) == ("4,12", "0-1"), "memory, too"
    assert world.agent.occupancy.allocations["a"].externally_managed
    assert world.agent.occupancy.reservations["a"].demand.cpu_milli == 1000
    assert world.agent.ledger.yielded.containers == 1


def test_after_a_restart_it_is_known_by_its_mark(world: World) -> None:
    made = confined(world, "a", MACHINE)
    world.started()
    assert world.agent.synchronize([member("a")], [made]) == []
    assert world.cpus("a") in HOME
    assert "a" not in world.agent.ledger.requests


def test_what_no_answer_could_bring_yet_comes_with_the_next_synchronize(world: World) -> None:
    """Before NRI 0.12.1 a runtime takes updates with its answers alone."""
    made = confined(world, "a", MACHINE)
    world.cgroups["/kubepods/a"] = world.machine.cpus, world.machine.mems
    for again in (world.agent, Agent(world.facts(), world.nominations)):
        world.agent = again
        world.cgroups["/kubepods/a"] = CpuSet.parse(MACHINE), world.machine.mems
        world.apply(world.agent.synchronize([member("a")], [made]))
        assert world.cpus("a") in HOME


def test_a_later_word_of_the_other_owner_counts(world: World) -> None:
    made = confined(world, "a", MACHINE)
    asked = nri.LinuxResources()
    asked.cpu.cpus = "5"
    world.agent.update_container(member("a"), made, asked)
    assert world.agent.occupancy.allocations["a"].externally_managed
    assert not world.agent.ledger.within


def test_a_mark_that_its_pods_author_wrote_is_none(world: World) -> None:
    of, made = member("a"), container("a")
    of.annotations["within.numakin.io"] = made.annotations["within.numakin.io"] = "0-1"
    world.cgroups["/kubepods/a"] = world.machine.all_cpus, NumaSet.parse("0-1")
    world.apply(world.agent.synchronize([of], [made]))
    assert world.cpus("a") in HOME
    assert "a" in world.agent.ledger.requests


def test_a_release_gives_it_no_more_than_the_other_owner_did(world: World) -> None:
    confined(world, "a", "0-14")
    world.apply(world.agent.release())
    assert world.cpus("a") == "0-14"


def test_beside_a_container_that_is_let_out_to_more_it_is_left_to_the_other_owner(world: World) -> None:
    of, ledger = member("a"), world.agent.ledger
    world.create(of, container("a"))
    out = replace(ledger.occupancy.reservations["uid-a"], let_out=NumaSet.parse("0-1"))
    ledger.occupancy = ledger.occupancy.with_reservation(out)
    world.apply(ledger.settle())
    side = container("side")
    side.name, side.linux.resources.cpu.cpus = "side", "0-14"
    adjust, _ = world.agent.create_container(of, side)
    assert adjust is None
    assert world.agent.occupancy.allocations["side"].externally_managed
