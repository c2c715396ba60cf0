"""What the extender nominated, and what becomes of it when the container comes."""

import pytest

from numakin.wire import report_pb2 as pb
from tests.enforcer.hook.world import GIB, World, container, member


class TestNominations:
    """What the extender nominated is honoured while it fits, and each outcome is told."""

    def test_a_nomination_that_fits_is_kept(self, world: World) -> None:
        world.agent.expect(pb.Expect(pod="uid-a", numa_nodes="1"))
        world.create(member("a"), container("a"))
        assert world.mems("a") == "1"
        assert world.last.outcome == pb.KEPT

    def test_a_nomination_that_does_not_fit_any_more_is_declined_with_a_reason(self, world: World) -> None:
        world.agent.expect(pb.Expect(pod="uid-full", numa_nodes="1"))
        world.create(member("full"), container("full", cpus=8))
        world.agent.expect(pb.Expect(pod="uid-a", numa_nodes="1"))
        world.create(member("a"), container("a", cpus=2))
        assert world.mems("a") == "0"
        assert world.last.outcome == pb.DECLINED
        assert world.last.reasons

    def test_a_nomination_after_the_container_is_late(self, world: World) -> None:
        world.create(member("a"), container("a"))
        world.agent.expect(pb.Expect(pod="uid-a", numa_nodes="1"))
        assert world.last.outcome == pb.LATE
        assert world.mems("a") == "0"

    def test_one_whose_numa_nodes_are_no_list_costs_no_member_its_place(
        self, world: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        world.agent.expect(pb.Expect(pod="uid-a", numa_nodes="q", planned="1-", name="a", namespace="shop"))
        world.create(member("a"), container("a"))
        assert (world.mems("a"), world.last.outcome) == ("0", pb.UNPROMISED)
        assert caplog.messages.count("a nomination's NUMA nodes are no list") == 2

    def test_the_same_nomination_of_another_replica_is_no_news(self, world: World) -> None:
        nomination = pb.Expect(pod="uid-a", numa_nodes="1")
        world.agent.expect(nomination)
        world.create(member("a"), container("a"))
        world.agent.expect(nomination)
        assert [entry.outcome for entry in world.agent.records.take()] == [pb.KEPT]

    def test_a_nomination_that_every_replica_makes_late_is_late_once(self, world: World) -> None:
        world.create(member("a"), container("a"))
        for _ in range(2):
            world.agent.expect(pb.Expect(pod="uid-a", numa_nodes="1"))
        assert [entry.outcome for entry in world.agent.records.take()] == [pb.UNPROMISED, pb.LATE]

    def test_a_replica_that_can_nominate_nothing_takes_nothing_away(self, world: World) -> None:
        world.agent.expect(pb.Expect(pod="uid-a", numa_nodes="1"))
        world.agent.expect(pb.Expect(pod="uid-a"))
        world.create(member("a"), container("a"))
        assert world.mems("a") == "1"
        assert world.last.outcome == pb.KEPT

    def test_kin_that_come_without_a_place_take_none_from_the_kin_that_it_was_made_with(self, world: World) -> None:
        nominated = {"numa_nodes": "1", "planned": "1", "kin": [pb.KinWeight(pod="uid-b", weight=2.0)]}
        world.agent.expect(pb.Expect(pod="uid-a", **nominated))
        world.agent.expect(pb.Expect(pod="uid-a", kin=[pb.KinWeight(pod="uid-c", weight=1.0)]))
        world.create(member("a"), container("a"))
        kin = world.agent.ledger.nominations.kin("uid-a")
        assert kin is not None
        assert (str(kin.planned), dict(kin.weights)) == ("1", {"uid-b": 2.0})
        assert (world.mems("a"), world.last.outcome) == ("1", pb.KEPT)

    def test_true_requests_take_the_place_of_estimates(self, world: World) -> None:
        received = pb.Expect(pod="uid-a", pod_demand=pb.Demand(cpu_milli=500, memory=GIB // 2, memory_limit=GIB))
        received.containers.add(name="app", demand=received.pod_demand)
        world.agent.expect(received)
        world.create(member("a"), container("a", cpus=0.5))
        assert world.agent.occupancy.reservations["uid-a"].demand.memory == GIB // 2
        assert "estimated" not in {reason.what for reason in world.last.reasons}

    @pytest.mark.parametrize(
        ("own", "received", "cpus", "size"),
        [
            ({}, {"policy": "none"}, "0-15", 0),
            ({}, {"policy": "restricted", "size": 6}, "0-3,8-11", 6),
            ({"size": "3"}, {"policy": "best-effort", "size": 3}, "0-3,8-11", 3),
            ({"size": "3"}, {"policy": "of tomorrow"}, "0-3,8-11", 3),
        ],
    )
    def test_what_the_groups_object_says_is_obeyed(self, world: World, own, received, cpus, size) -> None:
        nomination = pb.Expect(pod="uid-a")
        nomination.containers.add(name="app", demand=pb.Demand(cpu_milli=500), **received)
        world.agent.expect(nomination)
        world.create(member("a", **own), container("a"))
        assert world.cpus("a") == cpus
        assert world.agent.occupancy.reservations["uid-a"].size == size

    def test_without_them_the_reasons_say_that_numbers_are_estimates(self, world: World) -> None:
        world.create(member("a"), container("a"))
        assert "estimated" in {reason.what for reason in world.last.reasons}
