"""A container whose start fails is tried again: what the former attempt was given is free, though the runtime has told
nothing of its end.
"""

from __future__ import annotations

import pytest

from numakin.placement.model.cpuset import CpuSet
from numakin.wire import nri_pb2 as nri
from tests.enforcer.hook.world import World, container, member, pod


def attempt(world: World, number: int, cpus: float, sandbox: nri.PodSandbox, name: str = "app") -> CpuSet:
    """The cpuset that this attempt is answered; its start fails, and the runtime says nothing."""
    made = container(f"{sandbox.name}-{name}-{number}", cpus)
    made.name, made.pod_sandbox_id = name, sandbox.id
    world.create(sandbox, made)
    return world.cgroups[made.linux.cgroups_path][0]


def test_each_attempt_gets_cpus_of_its_own_and_the_former_ones_are_free(world: World) -> None:
    own = member("own", cpus="exclusive")
    given = [attempt(world, number, 5, own) for number in range(4)]
    assert {len(cpus) for cpus in given} == {5}
    assert world.agent.occupancy.exclusive == given[-1]
    assert world.agent.occupancy.allocations.keys() == {"own-app-3"}


def test_a_former_attempt_counts_in_no_quota(world: World) -> None:
    own = member("own", cpus="exclusive", scope="container")
    given = [attempt(world, number, 2, own) for number in range(3)]
    assert {len(cpus) for cpus in given} == {2}


def test_who_shares_has_the_pool_that_the_last_attempt_leaves(world: World) -> None:
    """Also where the runtime has carried out nothing of an answer to a create that failed."""
    world.create(member("a"), container("a"))
    wide = world.cgroups["/kubepods/a"]
    own = attempt(world, 0, 2, member("own", cpus="exclusive"))
    world.cgroups["/kubepods/a"] = wide
    again = attempt(world, 1, 2, member("own", cpus="exclusive"))
    assert CpuSet.parse(world.cpus("a")) == wide[0] - again
    assert own == again


def test_the_pods_other_containers_and_other_pods_containers_of_that_name_are_none_of_its_attempts(
    world: World,
) -> None:
    own, other = member("own", cpus="exclusive"), member("other", cpus="exclusive")
    attempt(world, 0, 1, own)
    attempt(world, 0, 1, own, "side")
    attempt(world, 0, 1, other)
    assert len(world.agent.occupancy.exclusive) == 3


def test_it_is_found_in_the_pods_other_sandbox_and_its_late_removal_takes_nothing(world: World) -> None:
    """Its pause process died meanwhile."""
    first = member("own", cpus="exclusive")
    attempt(world, 0, 2, first)
    second = nri.PodSandbox()
    second.CopyFrom(first)
    second.id = "sandbox-own-again"
    world.agent.run_pod_sandbox(second)
    given = attempt(world, 1, 2, second)
    assert world.agent.occupancy.exclusive == given
    failed = container("own-app-0", 2)
    failed.state = nri.CONTAINER_STOPPED
    world.agent.remove_container(first, failed)
    world.agent.stop_pod_sandbox(first)
    assert world.agent.occupancy.exclusive == given


def test_an_attempt_of_what_has_not_opted_in_holds_no_room(world: World) -> None:
    for number in range(3):
        attempt(world, number, 14, pod("plain"))
    world.create(member("a"), container("a", 1))
    assert world.cpus("a") != str(world.machine.cpus)


@pytest.mark.parametrize("uid", ["uid-own", ""], ids=["of a kubelet", "of a client without uids"])
def test_a_pod_without_a_uid_is_not_taken_for_another_one(world: World, uid: str) -> None:
    pods = [member(name, cpus="exclusive") for name in ("one", "two")]
    for sandbox in pods:
        sandbox.uid = uid
        attempt(world, 0, 1, sandbox)
    assert len(world.agent.occupancy.exclusive) == (1 if uid else 2)
