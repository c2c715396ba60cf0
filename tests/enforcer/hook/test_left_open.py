"""Members that have no home run on all CPUs that no other container has for itself, and follow as those come and go."""

from __future__ import annotations

import pytest

from enforcer.hook.ownership import checkpoint
from numakin.placement.model.cpuset import CpuSet, NumaSet
from tests.enforcer.hook.changing import becomes, without
from tests.enforcer.hook.world import GIB, World, container, member, two_numa_nodes

OWN = {"cpus": "exclusive"}


def comes(world: World, name: str, count: float, memory: int = 0, **more: str) -> None:
    world.create(member(name, **more), container(name, count, memory))


def with_one_open(world: World) -> None:
    """NUMA node 0 has CPUs of an exclusive member, and `big` asks for more memory than there is."""
    comes(world, "own", 2, **OWN)
    comes(world, "big", 1, 64 * GIB, group="big")


def test_who_fits_nowhere_is_off_exclusive_cpus_and_follows_them(world: World) -> None:
    with_one_open(world)
    assert world.cpus("big") == str(world.machine.cpus - CpuSet.parse(world.cpus("own")))
    comes(world, "more", 2, group="more", **OWN)
    own, more = (CpuSet.parse(world.cpus(name)) for name in ("own", "more"))
    assert world.cpus("big") == str(world.machine.cpus - own - more)
    for name in ("own", "more"):
        world.apply(world.agent.stop_container(member(name, **OWN), container(name)))
    assert world.cpus("big") == str(world.machine.cpus)


def test_before_there_are_exclusive_cpus_nothing_is_set(world: World) -> None:
    assert world.create(member("big"), container("big", 1, 64 * GIB)) is None
    comes(world, "own", 2, group="other", **OWN)
    assert world.cpus("big") == str(world.machine.cpus - CpuSet.parse(world.cpus("own")))


@pytest.mark.parametrize("asked", [{"policy": "none"}, {}], ids=["as asked", "fits nowhere"])
def test_a_cgroup_of_version_2_that_names_no_cpus_has_all_of_them_at_its_start(
    world: World, asked: dict[str, str]
) -> None:
    sandbox, big = member("big", **asked), container("big", 1, 64 * GIB)
    world.create(sandbox, big)
    world.cgroups["/kubepods/big"] = CpuSet(), NumaSet()
    assert world.agent.post_start_container(sandbox, big) == []


def restarted(world: World, *, recorded: bool) -> list[str]:
    """The containers that the runtime is asked to change after a restart."""
    names = ("own", "big")
    text = checkpoint.Wording().text(world.agent.occupancy, checkpoint.Past(), released=False)
    marked = {name: container(name, cpus, memory) for name, cpus, memory in (("own", 2, 0), ("big", 1, 64 * GIB))}
    if not recorded:
        for name, allocation in world.agent.occupancy.allocations.items():
            kind = " open" if allocation.open else ""
            mark = f"cpus={allocation.cpus} mems= exclusive={allocation.exclusive} homes=0-1{kind}"
            marked[name].annotations["pinned.numakin.io"] = mark
    agent = world.started()
    if recorded:
        agent.takeover.remember(checkpoint.read(text))
    pods = [member("own", **OWN), member("big", group="big")]
    updates = agent.synchronize(pods, [marked[name] for name in names])
    world.apply(updates)
    return [update.container_id for update in updates if update.container_id == "own"]


@pytest.mark.parametrize("recorded", [True, False], ids=["record", "mark"])
def test_a_restart_knows_by_the_record_or_by_the_mark_that_it_left_one_open(world: World, *, recorded: bool) -> None:
    with_one_open(world)
    before = world.cpus("own"), world.cpus("big")
    assert restarted(world, recorded=recorded) == []
    assert (world.cpus("own"), world.cpus("big")) == before
    held = world.agent.occupancy.allocations
    assert (held["big"].open, held["big"].externally_managed) == (True, False)


def test_one_that_was_open_and_has_another_cpuset_at_a_start_is_open_again(world: World) -> None:
    """Whose work that is nobody can tell; an owner that keeps cpusets writes again, over the runtime."""
    with_one_open(world)
    was = world.cpus("big")
    world.cgroups["/kubepods/big"] = (CpuSet.parse("3-5"), NumaSet.parse("0-1"))
    restarted(world, recorded=True)
    assert world.agent.occupancy.allocations["big"].open
    assert world.cpus("big") == was


def test_what_waits_for_an_answer_names_no_cpu_that_went_meanwhile(world: World) -> None:
    machine = two_numa_nodes()
    comes(world, "a", 9)
    comes(world, "b", 1)
    world.agent.moves.take_along(world.agent.rehoming.onto(_facts(world, without(machine, CpuSet.parse("4-7,12-15")))))
    world.machine = without(machine, CpuSet.parse("2-7,12-15"))
    world.agent.moves.take_along(world.agent.rehoming.onto(world.facts()))
    carried = world.agent.moves.with_stop([])
    assert carried
    for update in carried:
        assert CpuSet.parse(update.linux.resources.cpu.cpus) <= world.machine.all_cpus


def test_who_was_released_while_cpus_were_offline_gets_them_when_they_are_back(world: World) -> None:
    comes(world, "a", 1)
    becomes(world, without(two_numa_nodes(), CpuSet.parse("4-7,12-15")))
    world.apply(world.agent.release())
    assert world.cpus("a") == "0-3,8-11"
    becomes(world, two_numa_nodes())
    assert world.cpus("a") == "0-15"


def _facts(world: World, machine):
    world.machine = machine
    return world.facts()


def test_whose_rounded_up_cpus_others_need_shares_from_then_on_and_is_told_so(world: World) -> None:
    comes(world, "own", 1.5, **OWN)
    assert len(CpuSet.parse(world.cpus("own"))) == 2
    for name, count in (("a", 6), ("b", 8)):
        comes(world, name, count, group=name)
    comes(world, "late", 0.4)
    held = world.agent.occupancy.allocations
    assert not any(allocation.exclusive or allocation.open for allocation in held.values())
    assert world.cpus("own") == world.cpus("late") == "0-3,8-11"
    assert world.agent.records.counts["shares again"] == 1
    (why,) = world.agent.records.latest()["own"].reasons
    assert why.effect == "its request was rounded up, and others need the rest: it shares from now on"
