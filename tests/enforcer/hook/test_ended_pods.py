"""When the room of a pod is free again: at its sandbox's end, or where nobody tells of that."""

import pytest

from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb
from tests.enforcer.hook.world import World, container, member


def test_the_room_of_an_ended_pod_is_free(world: World) -> None:
    mine = container("a", cpus=7)
    world.create(member("a"), mine)
    world.agent.stop_container(member("a"), mine)
    assert world.agent.occupancy.reservations
    world.agent.stop_pod_sandbox(member("a"))
    assert not world.agent.occupancy.reservations


def test_the_end_of_an_old_sandbox_leaves_the_pods_new_one_alone(world: World) -> None:
    """As when the pause process dies: the kubelet makes another sandbox for the same pod, and removes the first one
    minutes later.
    """
    first, mine = member("a"), container("a")
    world.create(first, mine)
    world.agent.stop_container(first, mine)
    world.agent.stop_pod_sandbox(first)
    second, again = member("a"), container("a2")
    second.id = again.pod_sandbox_id = "sandbox-a-again"
    world.create(second, again)
    world.agent.stop_pod_sandbox(first)
    assert "a2" in world.agent.occupancy.allocations
    assert world.agent.occupancy.reservations
    world.started().synchronize([first, second], [again])
    world.agent.stop_pod_sandbox(first)
    assert "a2" in world.agent.occupancy.allocations
    world.agent.stop_container(second, again)
    world.agent.stop_pod_sandbox(second)
    assert not world.agent.occupancy.reservations


def test_nothing_is_kept_of_creations_that_another_plugin_undid(world: World) -> None:
    """Of which CRI-O tells no end but their sandbox's."""
    for number in range(3):
        pod = member(f"p{number}")
        world.agent.run_pod_sandbox(pod)
        world.agent.create_container(pod, container(f"c{number}"))
        world.agent.stop_pod_sandbox(pod)
    agent = world.agent
    assert not agent.residents.now()
    assert not agent.ledger.requests
    assert not agent.records.latest()
    assert not agent.occupancy.allocations


class TestWithoutASandboxsEnd:
    """Which containerd does not tell of sandboxes that it recovered at its own start."""

    @pytest.fixture
    def mine(self, world: World) -> nri.Container:
        """Of a pod that was running when the runtime came back."""
        made = container("a")
        world.create(member("a"), made)
        world.pod_cgroups.add("uid-a")
        world.agent.synchronize([member("a")], [made])
        return made

    def test_the_room_is_free_when_the_last_container_is_removed_and_the_pods_cgroup_is_gone(
        self, world: World, mine
    ) -> None:
        world.agent.stop_container(member("a"), mine)
        world.pod_cgroups.clear()
        world.agent.remove_container(member("a"), mine)
        assert not world.agent.occupancy.reservations

    def test_or_when_that_is_seen_later(self, world: World, mine) -> None:
        world.agent.stop_container(member("a"), mine)
        world.agent.remove_container(member("a"), mine)
        world.agent.refresh()
        assert world.agent.occupancy.reservations, "the kubelet may start it again in its cgroup"
        world.pod_cgroups.clear()
        world.agent.refresh()
        assert not world.agent.occupancy.reservations

    def test_a_pod_whose_cgroup_was_never_seen_keeps_its_room(self, world: World) -> None:
        made = container("b")
        world.create(member("b"), made)
        world.agent.remove_container(member("b"), made)
        world.agent.refresh()
        assert world.agent.occupancy.reservations

    def test_a_pod_that_the_api_server_has_no_more_keeps_it_while_a_container_of_it_runs(
        self, world: World, mine
    ) -> None:
        world.agent.deleted(["uid-a", "uid-of-another-node"])
        world.agent.refresh()
        assert world.agent.occupancy.reservations
        world.agent.stop_container(member("a"), mine)
        world.agent.refresh()
        assert not world.agent.occupancy.reservations

    def test_a_pod_that_the_api_server_has_after_all_keeps_it(self, world: World, mine) -> None:
        world.agent.deleted(["uid-a"])
        world.agent.expect(pb.Expect(pod="uid-a"))
        world.agent.stop_container(member("a"), mine)
        world.agent.refresh()
        assert world.agent.occupancy.reservations


def test_exclusive_cpus_of_a_sandbox_that_ends_before_its_container_come_back_with_the_next_answer(
    world: World,
) -> None:
    world.create(member("b"), container("b"))
    world.create(member("own", cpus="exclusive"), container("own", cpus=2))
    assert world.cpus("b") != "0-3,8-11"
    world.agent.stop_pod_sandbox(member("own", cpus="exclusive"))
    world.create(member("c"), container("c"))
    assert world.cpus("b") == "0-3,8-11"


def test_a_decision_on_a_container_that_is_not_there_any_more_after_a_restart_is_not_told(world: World) -> None:
    world.create(member("a"), container("a"))
    world.agent.synchronize([], [])
    world.agent.records.take()
    assert not world.agent.records.latest()
