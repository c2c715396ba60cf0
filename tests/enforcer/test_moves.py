"""Which running members the observer would have moved."""

from __future__ import annotations

import pytest

from enforcer.moves import REST, Rested, moves, wishes_of
from enforcer.planner import Situation
from placement.cpuset import NumaSet
from placement.occupancy import Occupancy, Seat
from placement.wishes import Move
from proto import local_pb2 as local
from tests.machines import SMALL
from tests.placement.asking import demand

TALK = {("c", "d"): 10.0}
ANY = dict.fromkeys("cdxyz", Move.CPUS)


def at(**homes: str) -> Occupancy:
    occupancy = Occupancy()
    for pod, home in homes.items():
        occupancy = occupancy.seated(
            Seat(pod, pod, "", NumaSet.parse(home), demand(1), workload=f"ns/Deployment/{pod}")
        )
    return occupancy


def after(windows: int, rested: Rested, occupancy: Occupancy, wishes=ANY, budget: int = 2, talk=TALK) -> list:
    """The steps, each as ways (seat, from, to)."""
    for _ in range(windows):
        movable = rested.movable(occupancy, wishes)
    found = moves(SMALL, Situation(occupancy, [], {}, talk, movable), budget)
    return [[(one.seat, one.source, one.target) for one in step.ways] for step in found.steps]


def test_a_member_moves_to_its_kin_once_it_has_rested_where_it_is() -> None:
    rested, apart = Rested(), at(c="0", d="1")
    assert after(REST, rested, apart) == []
    assert after(1, rested, apart) in ([[("d", "1", "0")]], [[("c", "0", "1")]])


def test_it_rests_again_where_it_has_moved_to() -> None:
    rested = Rested()
    after(REST + 1, rested, at(c="0", d="0"))
    assert after(REST, rested, at(c="0", d="1"), {"d": Move.CPUS}) == []
    assert after(1, rested, at(c="0", d="1"), {"d": Move.CPUS}) == [[("d", "1", "0")]]


@pytest.mark.parametrize(
    ("wishes", "mover"),
    [
        ({"c": Move.NEVER, "d": Move.CPUS}, "d"),
        ({"c": Move.CPUS_AND_MEMORY, "d": Move.NEVER}, "c"),
        ({"c": Move.CPUS}, "c"),
    ],
)
def test_who_may_not_move_or_is_not_there_stays(wishes, mover) -> None:
    ((way,),) = after(REST + 1, Rested(), at(c="0", d="1"), wishes)
    assert way[0] == mover


def test_replicas_go_each_to_the_peer_that_they_talk_with_themselves() -> None:
    """Of two workloads with two replicas each, paired off."""
    homes = {"c": "0", "x": "1", "d": "1", "y": "0"}
    steps = after(REST + 1, Rested(), at(**homes), talk={("c", "d"): 10.0, ("x", "y"): 10.0})
    assert len(steps) == 1
    now = homes | {seat: target for seat, _, target in steps[0]}
    assert (now["c"], now["x"]) == (now["d"], now["y"])


def test_a_pod_that_was_never_seen_to_talk_makes_no_room() -> None:
    full = at(c="0", x="0", y="0", z="0", d="1", **dict.fromkeys("abe", "1"))
    assert after(REST + 1, Rested(), full, dict.fromkeys("abcdexyz", Move.CPUS)) == []


def test_a_budget_of_none_moves_nobody() -> None:
    assert after(REST + 1, Rested(), at(c="0", d="1"), budget=0) == []


def test_a_pod_allows_no_more_than_the_strictest_of_its_containers() -> None:
    containers = [
        local.LocalContainer(pod="a", opted_in=True, move="cpus-and-memory"),
        local.LocalContainer(pod="a", opted_in=True, move="cpus"),
        local.LocalContainer(pod="b", opted_in=True, move="cpus"),
        local.LocalContainer(pod="b", opted_in=True, move="never"),
        local.LocalContainer(pod="c", opted_in=True),
        local.LocalContainer(pod="plain"),
    ]
    assert wishes_of(containers) == {"a": Move.CPUS, "b": Move.NEVER, "c": Move.NEVER}
