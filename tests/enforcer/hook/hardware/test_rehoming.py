"""CPUs and memory go and come while members run: nothing is left on what is gone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enforcer.hook.facts.pods import Claim
from enforcer.local.learned import plan_to
from enforcer.local.report_differences import ReportedNode, report
from extender.reports import incoming
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.plan.plan import Plan, PlannedSlots
from tests import examples
from tests.enforcer.hook.changing import becomes, without
from tests.enforcer.hook.world import GIB, World, container, member, pod, two_numa_nodes
from tests.machines import CXL

OWN = {"cpus": "exclusive"}


def run(world: World, name: str, count: float = 1, **more: str) -> None:
    world.create(member(name, **more), container(name, count))


def test_a_shared_pool_narrows_with_the_cpus_that_go_and_widens_when_they_come_back(world: World) -> None:
    run(world, "a")
    assert world.cpus("a") == "0-3,8-11"
    becomes(world, without(world.machine, CpuSet.parse("8-15")))
    assert world.cpus("a") == "0-3"
    becomes(world, two_numa_nodes())
    assert world.cpus("a") == "0-3,8-11"


def test_a_container_that_loses_one_of_its_own_cpus_gets_another_on_its_numa_node(world: World) -> None:
    run(world, "own", 2, **OWN)
    run(world, "beside")
    lost = CpuSet.of((min(CpuSet.parse(world.cpus("own"))),))
    becomes(world, without(world.machine, lost))
    own, beside = CpuSet.parse(world.cpus("own")), CpuSet.parse(world.cpus("beside"))
    assert len(own) == 2
    assert own | beside == CpuSet.parse("0-3,8-11") - lost
    assert own.isdisjoint(beside)
    assert world.last.event == "machine"
    assert world.last.reasons[0].what == "machine"


def test_cpus_that_come_back_belong_to_whoever_shares_them(world: World) -> None:
    run(world, "own", 2, **OWN)
    run(world, "beside")
    lost = CpuSet.of((min(CpuSet.parse(world.cpus("own"))),))
    whole = world.machine
    becomes(world, without(whole, lost))
    own = world.cpus("own")
    becomes(world, whole)
    assert world.cpus("own") == own
    assert CpuSet.parse(world.cpus("beside")) == CpuSet.parse("0-3,8-11") - CpuSet.parse(own)


def test_whole_cores_are_whole_once_smt_is_switched_on() -> None:
    world = World(without(two_numa_nodes(), CpuSet.parse("8-15")))
    run(world, "own", 3, cpus="exclusive-cores")
    run(world, "beside")
    becomes(world, two_numa_nodes())
    own, beside = CpuSet.parse(world.cpus("own")), CpuSet.parse(world.cpus("beside"))
    assert len(own) == 4
    assert all(world.machine.core_of(cpu) <= own for cpu in own)
    assert own.isdisjoint(beside)


def test_a_group_whose_numa_node_loses_all_its_cpus_goes_to_another_together(world: World) -> None:
    run(world, "a")
    run(world, "b")
    becomes(world, without(world.machine, CpuSet.parse("0-3,8-11")))
    assert (world.cpus("a"), world.cpus("b")) == ("4-7,12-15", "4-7,12-15")


def test_more_exclusive_cpus_than_are_left_cost_the_container_its_pin_and_nobody_else_anything(world: World) -> None:
    run(world, "own", 8, **OWN)
    run(world, "other", 4, group="other")
    becomes(world, without(world.machine, CpuSet.parse("4-6,8-15")))
    assert world.cpus("own") == str(world.machine.all_cpus)
    assert CpuSet.parse(world.cpus("other")) <= world.machine.all_cpus
    becomes(world, two_numa_nodes())
    assert len(CpuSet.parse(world.cpus("own"))) == 8


def test_a_container_that_stays_without_a_pin_has_every_cpu_that_comes_back(world: World) -> None:
    run(world, "own", 8, **OWN)
    becomes(world, without(world.machine, CpuSet.parse("0,4-6,8-15")))
    becomes(world, without(two_numa_nodes(), CpuSet.parse("0,4-6,8-12")))
    assert world.cpus("own") == str(world.machine.all_cpus)


def test_bound_memory_follows_when_that_of_its_numa_node_goes(world: World) -> None:
    run(world, "a", memory="bind")
    assert world.mems("a") == "0"
    becomes(world, without(world.machine, mems=NumaSet.parse("0")))
    assert world.mems("a") == "1"


@pytest.mark.parametrize(("limit", "mems"), [(12, "0-1"), (6, "0")], ids=["more than is left", "less"])
def test_who_may_use_more_memory_than_is_left_where_it_is_bound_is_bound_no_more(
    world: World, limit: int, mems: str
) -> None:
    """The kernel would kill it, and the other NUMA node has memory."""
    world.create(member("a"), container("a", memory=limit * GIB))
    assert world.mems("a") == "0"
    becomes(world, without(world.machine, half=NumaSet.parse("0")))
    assert world.mems("a") == mems


def test_what_has_not_opted_in_or_is_anothers_is_not_touched(world: World) -> None:
    world.create(pod("plain"), container("plain"))
    run(world, "a")
    world.agent.taken_over(member("a"), container("a"), Claim("0-3", ""))
    before = dict(world.cgroups)
    becomes(world, without(world.machine, CpuSet.parse("0-3,8-11")))
    assert world.cgroups == before


def test_a_pod_whose_containers_have_ended_finds_another_place_when_its_own_is_gone(world: World) -> None:
    run(world, "a")
    world.agent.stop_container(member("a"), container("a"))
    becomes(world, without(world.machine, CpuSet.parse("0-3,8-11")))
    run(world, "a")
    assert world.cpus("a") == "4-7,12-15"


def test_a_plan_made_for_the_machine_of_before_places_nobody_where_nothing_is(world: World) -> None:
    workload = "shop/ReplicaSet/web"
    becomes(world, without(world.machine, gone=NumaSet.parse("1")))
    slots = {workload: (PlannedSlots(NumaSet.parse("1"), 3),)}
    world.agent.ledger.learned.planned(plan_to(Plan(slots, {workload: {1: 1.0}}, {workload: Demand(1000)})))
    replica = member("web-1")
    replica.labels["pod-template-hash"] = "1"
    world.create(replica, container("web-1"))
    assert world.agent.records.counts["failed"] == 0
    assert world.cpus("web-1") == "0-3,8-11"


def test_memory_that_is_added_is_there_for_newcomers() -> None:
    world = World(without(CXL, gone=NumaSet.parse("2")))
    run(world, "a", memory="bind")
    becomes(world, CXL)
    assert world.agent.ledger.machine.all_mems == NumaSet.parse("0-2")
    assert world.mems("a") == "0"


class TestAfterARestart:
    """The kernel took the CPUs away while nobody was there to see it."""

    def test_a_container_of_which_the_kernel_left_the_rest_gets_cpus_anew(self, world: World) -> None:
        run(world, "own", 2, **OWN)
        had = CpuSet.parse(world.cpus("own"))
        lost = CpuSet.of((min(had),))
        mark = container("own", 2)
        mark.annotations["pinned.numakin.io"] = f"cpus={had} mems= exclusive={had} homes=0"
        world.machine = without(world.machine, lost)
        world.cgroups["/kubepods/own"] = had - lost, NumaSet.parse("0-1")
        world.started()
        world.apply(world.agent.synchronize([member("own", **OWN)], [mark]))
        now = CpuSet.parse(world.cpus("own"))
        assert len(now) == 2
        assert now <= world.machine.cpus
        assert not world.agent.records.counts["yielded"]


CPUS = st.sets(st.integers(0, 15), max_size=15).map(CpuSet.of)
MEMBERS = st.lists(
    st.tuples(st.integers(1, 6), st.sampled_from(["shared", "exclusive"]), st.sampled_from(["auto", "bind"])),
    max_size=6,
)


@settings(max_examples=examples.of(60), deadline=None)
@given(MEMBERS, st.lists(CPUS, min_size=1, max_size=4))
def test_whatever_goes_and_comes_everything_lies_on_what_is_there(
    members: list[tuple[int, str, str]], offline: list[CpuSet]
) -> None:
    world, whole = World(), two_numa_nodes()
    for number, (cpus, kind, memory) in enumerate(members):
        run(world, f"m{number}", cpus, cpus=kind, memory=memory)
    for cpus in offline:
        machine = without(whole, cpus)
        becomes(world, machine)
        occupancy = world.agent.occupancy
        taken = CpuSet()
        for allocation in occupancy.allocations.values():
            assert allocation.cpus <= machine.cpus
            assert not allocation.cpus or world.cpus(allocation.container) == str(allocation.cpus)
            assert allocation.exclusive.isdisjoint(taken)
            taken |= allocation.exclusive
        for allocation in occupancy.allocations.values():
            assert allocation.exclusive or allocation.cpus.isdisjoint(taken)
        incoming.report(report(None, ReportedNode(occupancy, registered=True)), machine)
        assert occupancy.load(machine) == replace(occupancy, index=type(occupancy.index)()).on(machine).load(machine)
    assert world.agent.records.counts["failed"] == 0
