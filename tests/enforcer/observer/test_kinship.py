"""From traffic to what the hook decides by."""

from dataclasses import replace

import pytest

from enforcer.observer import kinship
from enforcer.observer.kinship import WorkloadIndex
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.plan.expected import PEAK_S
from numakin.placement.plan.problem import Workload
from numakin.placement.state.occupancy import Occupancy, Reservation
from numakin.placement.traffic.graph import Flow, Graph, TrafficTally
from numakin.wire import local_pb2 as local
from numakin.wire import report_pb2 as pb

PERIOD = int(PEAK_S / WorkloadIndex().window_s)
"""Windows of ten minutes."""


def here(*pods: tuple[str, str]) -> list[local.LocalContainer]:
    """(pod, workload) of opted-in containers."""
    return [local.LocalContainer(id=f"c-{pod}", pod=pod, workload=workload, opted_in=True) for pod, workload in pods]


def seen(*flows: tuple[str, str, int]) -> Graph:
    tally = TrafficTally(half_life=60)
    tally.add([Flow(source, target, "tcp", 1000 * messages, messages) for source, target, messages in flows], 0.0)
    return tally.graph(0.0)


def weights(graph: Graph, workload_index: WorkloadIndex) -> dict[str, dict[str, float]]:
    return kinship.learned(graph.weights(), graph.rolled_up(workload_index.workloads).weights(), workload_index)


def test_pods_that_talk_are_kin_in_proportion() -> None:
    workload_index = WorkloadIndex().after(
        here(("a", "ns/Deployment/a"), ("b", "ns/Deployment/b"), ("c", "ns/Deployment/c"))
    )
    result = weights(seen(("a", "b", 300), ("c", "a", 100)), workload_index)
    assert result["a"]["b"] > 2.9 * result["a"]["c"] > 0
    assert set(result["b"]) == {"a"}


def test_the_next_replica_starts_with_what_its_siblings_learned() -> None:
    pods = here(("a1", "ns/Deployment/a"), ("b1", "ns/Deployment/b"), ("b2", "ns/Deployment/b"))
    result = weights(seen(("a1", "b1", 100), ("a1", "b2", 300)), WorkloadIndex().after(pods))
    assert result["ns/Deployment/a"]["b1"] == result["ns/Deployment/a"]["b2"] > 0


def test_a_workload_outlives_its_pods() -> None:
    workload_index = WorkloadIndex().after(here(("a1", "ns/Deployment/a"), ("b1", "ns/Deployment/b")))
    workload_index = workload_index.after(here(("b1", "ns/Deployment/b")))
    result = weights(seen(("a1", "b1", 100)), workload_index)
    assert set(result["ns/Deployment/a"]) == {"b1"}
    assert "a1" not in result


def test_pairs_that_have_been_silent_for_days_are_no_kin_any_more() -> None:
    """Their pods would be placed by nobody: neither by what they exchange nor by their group."""
    workload_index = WorkloadIndex().after(here(("a", "ns/Deployment/a"), ("b", "ns/Deployment/b")))
    tally = TrafficTally(half_life=60)
    tally.add([Flow("a", "b", "tcp", 1000, 10)], 0.0)
    assert weights(tally.graph(3 * 86_400.0), workload_index) == {}


def test_those_who_have_not_opted_in_and_addresses_are_nobodys_kin() -> None:
    plain = local.LocalContainer(id="c", pod="plain", workload="ns/Pod/plain")
    workload_index = WorkloadIndex().after([*here(("a", "ns/Deployment/a")), plain])
    assert weights(seen(("a", "plain", 100), ("a", "10.0.0.7:80", 100)), workload_index) == {}


def test_the_roster_of_the_past_is_bounded() -> None:
    workload_index = WorkloadIndex()
    for start in range(0, 3 * kinship.MOST_PAST, 1024):
        workload_index = workload_index.after(
            here(*((f"p{number}", "ns/Deployment/a") for number in range(start, start + 1024)))
        )
    assert len(workload_index.workloads) <= kinship.MOST_PAST + 1024


ONE, TWO = Demand(1000, 1 << 20), Demand(2000, 1 << 20)


def seated(*pods: tuple[str, str], demand: Demand = ONE) -> Occupancy:
    """(pod, workload)."""
    occupancy = Occupancy()
    for pod, workload in pods:
        occupancy = occupancy.with_reservation(
            Reservation(pod, pod, "ns/shop", NumaSet.parse("1"), demand, workload=workload)
        )
    return occupancy


PODS = (("a1", "ns/Deployment/a"), ("a2", "ns/Deployment/a"), ("b1", "ns/Deployment/b"))
TALK = {("ns/Deployment/a", "ns/Deployment/b"): 100.0}


class TestExpected:
    """The workloads that a plan has reservations for."""

    def test_as_many_replicas_as_there_were_lately_each_asking_what_the_newest_did(self) -> None:
        workload_index = WorkloadIndex().after(here(*PODS)).over_a_window(seated(*PODS))
        workload_index = workload_index.after(here(*PODS[1:])).over_a_window(seated(*PODS[1:], demand=TWO))
        assert sorted(workload_index.expected(TALK), key=lambda entry: entry.name) == [
            Workload("ns/Deployment/a", TWO, 2),
            Workload("ns/Deployment/b", TWO, 1),
        ]

    def test_a_replica_asks_for_what_all_of_its_containers_do(self) -> None:
        occupancy = seated(*PODS[1:])
        for name in ("web", "side"):
            part = replace(occupancy.reservations["b1"], key=f"b1/{name}", demand=TWO)
            occupancy = occupancy.with_reservation(part)
        occupancy = occupancy.without_reservation("b1")
        workload_index = WorkloadIndex().after(here(*PODS[1:])).over_a_window(occupancy)
        (b,) = (entry for entry in workload_index.expected(TALK) if entry.name == "ns/Deployment/b")
        assert (b.demand.cpu_milli, b.replicas) == (4000, 1)

    def test_none_of_a_workload_that_was_guessed_until_the_owner_of_its_pods_was_known(self) -> None:
        """As an operator's, whose pods' labels do not name it: pods would be expected, and given slots, that never come."""
        guessed = (*PODS, ("c1", "ns/Pod/c1"), ("c2", "ns/Pod/c2"))
        known = (*PODS, ("c1", "ns/StrimziPodSet/c"), ("c2", "ns/StrimziPodSet/c"))
        workload_index = WorkloadIndex().after(here(*guessed)).over_a_window(seated(*guessed))
        workload_index = workload_index.after(here(*known)).over_a_window(seated(*known))
        expected = workload_index.expected(workload_index.with_silent(TALK))
        assert {(entry.name, entry.replicas) for entry in expected} == {
            ("ns/Deployment/a", 2), ("ns/Deployment/b", 1), ("ns/StrimziPodSet/c", 2),
        }  # fmt: skip

    def test_where_nobody_was_seen_to_talk_there_is_nothing_to_plan(self) -> None:
        workload_index = WorkloadIndex().after(here(*PODS)).over_a_window(seated(*PODS))
        assert workload_index.expected(workload_index.with_silent({})) == []

    def test_a_workload_that_was_not_seen_to_talk_is_planned_with_its_group_or_namespace_alone(self) -> None:
        pods = (*PODS, ("c1", "ns/Deployment/c"), ("d1", "other/Deployment/d"))
        workload_index = WorkloadIndex().after(here(*pods)).over_a_window(seated(*pods))
        weights = workload_index.with_silent(TALK)
        assert {entry.name for entry in workload_index.expected(weights)} == {
            "ns/Deployment/a", "ns/Deployment/b", "ns/Deployment/c",
        }  # fmt: skip
        assert weights["ns/Deployment/a", "ns/Deployment/b"] == TALK["ns/Deployment/a", "ns/Deployment/b"]

    def test_another_named_group_of_its_namespace_does_not_draw_it(self) -> None:
        pods = (*PODS, ("c1", "ns/Deployment/c"))
        occupancy = seated(*pods)
        other = replace(occupancy.reservations["c1"], group="ns/batch")
        workload_index = WorkloadIndex().after(here(*pods)).over_a_window(occupancy.with_reservation(other))
        assert workload_index.with_silent(TALK) == TALK

    @pytest.mark.parametrize("age", [0, 1, PERIOD - 1])
    def test_who_is_gone_is_expected_for_a_period_at_least_and_two_at_most(self, age: int) -> None:
        workload_index = (
            WorkloadIndex(windows=age).after(here(*PODS)).over_a_window(seated(*PODS)).after(here(*PODS[:1]))
        )
        both = [Workload("ns/Deployment/a", ONE, 2), Workload("ns/Deployment/b", ONE, 1)]
        for window in range(2 * PERIOD):
            assert window >= PERIOD or workload_index.expected(TALK) == both
            workload_index = workload_index.over_a_window(seated(*PODS[:1]))
        assert workload_index.expected(TALK) == [Workload("ns/Deployment/a", ONE, 1)]
        assert set(workload_index.demands) == {"ns/Deployment/a"}

    @pytest.mark.parametrize("window_s", [1.0, 60.0])
    def test_a_period_is_ten_minutes_however_long_windows_are(self, window_s: float) -> None:
        """As for the extender, and for the rolling update that it is meant for."""
        pods = [*PODS, ("a3", "ns/Deployment/a")]
        workload_index = WorkloadIndex(window_s=window_s).after(here(*pods)).over_a_window(seated(*pods))
        workload_index = workload_index.after(here(*PODS[:1])).counted([count("ns/Deployment/b", 5)])
        minutes = []
        for _ in range(20):
            minutes.append([workload.replicas for workload in workload_index.expected(TALK)])
            for _ in range(int(60 / window_s)):
                workload_index = workload_index.over_a_window(seated(*PODS[:1]))
        assert minutes[:10] == [[3, 5]] * 10
        assert minutes[11:] == [[1, 1]] * 9

    def test_no_fewer_than_are_bound_here_and_no_more_than_there_can_be(self) -> None:
        workload_index = WorkloadIndex().after(here(*PODS)).over_a_window(seated(*PODS))
        counts = [count("ns/Deployment/a", 1), count("ns/Deployment/b", 2, 3), count("ns/Deployment/unknown", 7)]
        expected = workload_index.counted(counts).expected(TALK)
        assert expected == [Workload("ns/Deployment/a", ONE, 1), Workload("ns/Deployment/b", ONE, 2)]
        assert workload_index.counted([]).expected(TALK) == workload_index.expected(TALK), "an extender of before"

    def test_none_of_those_that_have_left(self) -> None:
        workload_index = WorkloadIndex().after(here(*PODS)).over_a_window(seated(*PODS)).after(())
        expected = {entry.name: entry.replicas for entry in workload_index.expected(TALK)}
        assert expected["ns/Deployment/b"] > 0, "it may come back as it was"
        left = workload_index.counted([count("ns/Deployment/b", 0)])
        assert {entry.name: entry.replicas for entry in left.expected(TALK)}["ns/Deployment/b"] == 0

    def test_what_was_announced_counts_for_a_period(self) -> None:
        workload_index = WorkloadIndex().after(here(*PODS)).over_a_window(seated(*PODS))
        workload_index = workload_index.counted([count("ns/Deployment/b", 5)])
        for _ in range(PERIOD):
            assert {entry.name: entry.replicas for entry in workload_index.expected(TALK)}["ns/Deployment/b"] == 5
            workload_index = workload_index.over_a_window(seated(*PODS))
        assert {entry.name: entry.replicas for entry in workload_index.expected(TALK)}["ns/Deployment/b"] == 1
        assert not workload_index.announced

    def test_also_of_a_workload_whose_first_replica_here_is_still_to_come(self) -> None:
        workload_index = WorkloadIndex().counted([count("ns/Deployment/b", 4)])
        workload_index = workload_index.after(here(*PODS)).over_a_window(seated(*PODS))
        assert {entry.name: entry.replicas for entry in workload_index.expected(TALK)}["ns/Deployment/b"] == 4

    def test_of_more_than_the_bound_the_latest_count(self) -> None:
        many = [count(f"ns/Deployment/{at}", 1) for at in range(kinship.MOST_ANNOUNCED + 1)]
        announced = WorkloadIndex().counted(many).counted(many[:1]).announced
        assert len(announced) == kinship.MOST_ANNOUNCED
        assert {"ns/Deployment/0", "ns/Deployment/2"} <= announced.keys()


def count(workload: str, bound: int, unbound: int = 0) -> pb.ReplicaCount:
    return pb.ReplicaCount(workload=workload, bound=bound, unbound=unbound)
