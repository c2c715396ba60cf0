"""From traffic to what the hook decides by."""

import pytest

from enforcer import kinship
from enforcer.kinship import Roster
from placement.cpuset import CpuSet, NumaSet
from placement.demand import Demand
from placement.occupancy import Occupancy, Seat
from placement.topology import Machine, NumaNode, uniform_distances
from placement.traffic import Flow, Graph, Tally
from proto import local_pb2 as local


def here(*pods: tuple[str, str]) -> list[local.LocalContainer]:
    """(pod, workload) of opted-in containers."""
    return [local.LocalContainer(id=f"c-{pod}", pod=pod, workload=workload, opted_in=True) for pod, workload in pods]


def seen(*flows: tuple[str, str, int]) -> Graph:
    tally = Tally(half_life=60)
    tally.add([Flow(source, target, "tcp", 1000 * messages, messages) for source, target, messages in flows], 0.0)
    return tally.graph(0.0)


def test_pods_that_talk_are_kin_in_proportion() -> None:
    roster = Roster().after(here(("a", "ns/Deployment/a"), ("b", "ns/Deployment/b"), ("c", "ns/Deployment/c")))
    weights = kinship.learned(seen(("a", "b", 300), ("c", "a", 100)), roster)
    assert weights["a"]["b"] > 2.9 * weights["a"]["c"] > 0
    assert set(weights["b"]) == {"a"}


def test_the_next_replica_starts_with_what_its_siblings_learned() -> None:
    pods = here(("a1", "ns/Deployment/a"), ("b1", "ns/Deployment/b"), ("b2", "ns/Deployment/b"))
    weights = kinship.learned(seen(("a1", "b1", 100), ("a1", "b2", 300)), Roster().after(pods))
    assert weights["ns/Deployment/a"]["b1"] == weights["ns/Deployment/a"]["b2"] > 0


def test_a_workload_outlives_its_pods() -> None:
    roster = Roster().after(here(("a1", "ns/Deployment/a"), ("b1", "ns/Deployment/b")))
    roster = roster.after(here(("b1", "ns/Deployment/b")))
    weights = kinship.learned(seen(("a1", "b1", 100)), roster)
    assert set(weights["ns/Deployment/a"]) == {"b1"}
    assert "a1" not in weights


def test_those_who_have_not_opted_in_and_addresses_are_nobodys_kin() -> None:
    plain = local.LocalContainer(id="c", pod="plain", workload="ns/Pod/plain")
    roster = Roster().after([*here(("a", "ns/Deployment/a")), plain])
    assert kinship.learned(seen(("a", "plain", 100), ("a", "10.0.0.7:80", 100)), roster) == {}


def test_the_roster_of_the_past_is_bounded() -> None:
    roster = Roster()
    for start in range(0, 3 * kinship.MOST_PAST, 1024):
        roster = roster.after(here(*((f"p{number}", "ns/Deployment/a") for number in range(start, start + 1024))))
    assert len(roster.workloads) <= kinship.MOST_PAST + 1024


@pytest.fixture
def machine() -> Machine:
    far = uniform_distances((0, 1))
    return Machine(tuple(NumaNode(one, CpuSet.of(range(8 * one, 8 * one + 8)), 16 << 30, far[one]) for one in (0, 1)))


def test_a_workload_that_was_never_seen_to_talk_stays_its_groups_affair(machine: Machine) -> None:
    roster = Roster().after(here(("a", "ns/Deployment/a"), ("b", "ns/Deployment/b"), ("c", "ns/Deployment/c")))
    occupancy = Occupancy()
    for pod in ("a", "b", "c"):
        occupancy = occupancy.seated(Seat(pod, pod, "ns/shop", NumaSet.parse("1"), Demand(1000, 1 << 20)))
    _, nothing_known = kinship.planned(machine, occupancy, seen(), roster, None)
    assert nothing_known == {}
    _, seats = kinship.planned(machine, occupancy, seen(("a", "b", 100)), roster, None)
    assert set(seats) == {"ns/Deployment/a", "ns/Deployment/b"}


def test_a_plan_keeps_the_next_replica_with_its_kin(machine: Machine) -> None:
    roster = Roster().after(here(("a", "ns/Deployment/a"), ("b", "ns/Deployment/b"), ("x", "ns/Deployment/x")))
    occupancy = Occupancy()
    for pod, home in (("a", "1"), ("b", "1"), ("x", "0")):
        occupancy = occupancy.seated(Seat(pod, pod, "", NumaSet.parse(home), Demand(1000, 1 << 20)))
    _, seats = kinship.planned(machine, occupancy, seen(("a", "b", 100)), roster, None)
    assert str(seats["ns/Deployment/a"]) == "1"


def test_the_table_has_a_row_for_whoever_has_kin_or_a_seat() -> None:
    table = kinship.table({"a": {"b": 2.0}}, {"ns/Deployment/a": NumaSet.parse("1")})
    assert [(row.pod, [one.pod for one in row.kin], row.seat) for row in table.rows] == [
        ("a", ["b"], ""),
        ("ns/Deployment/a", [], "1"),
    ]
