"""Which running members the observer would have moved."""

from __future__ import annotations

import pytest

from enforcer.moves import REST, Moves, wishes_of
from placement.cpuset import NumaSet
from placement.known import Workload
from placement.occupancy import Occupancy, Seat
from placement.wishes import Move
from proto import local_pb2 as local
from tests.machines import SMALL
from tests.placement.asking import demand

WEIGHTS = {("cart", "db"): 10.0}
WORKLOADS = [Workload("cart", demand(1), 1), Workload("db", demand(1), 1)]
NAMES = {"c": "cart", "d": "db"}
ANY = dict.fromkeys(NAMES, Move.CPUS)


def at(**homes: str) -> Occupancy:
    occupancy = Occupancy()
    for pod, home in homes.items():
        occupancy = occupancy.seated(Seat(pod, pod, "", NumaSet.parse(home), demand(1), workload=NAMES[pod]))
    return occupancy


def ways(moves: local.Moves) -> list[list[tuple[str, str, str]]]:
    return [[(one.seat, one.source, one.target) for one in step.ways] for step in moves.steps]


def after(windows: int, moves: Moves, occupancy: Occupancy, wishes=ANY) -> local.Moves:
    for _ in range(windows):
        last = moves.due(occupancy, WORKLOADS, WEIGHTS, wishes)
    return last


def test_a_member_moves_to_its_kin_once_it_has_rested_where_it_is() -> None:
    moves, apart = Moves(SMALL, budget=2), at(c="0", d="1")
    assert ways(after(REST, moves, apart)) == []
    assert ways(after(1, moves, apart)) in ([[("d", "1", "0")]], [[("c", "0", "1")]])


def test_it_rests_again_where_it_has_moved_to() -> None:
    moves = Moves(SMALL, budget=2)
    after(REST + 1, moves, at(c="0", d="0"))
    assert ways(after(REST, moves, at(c="0", d="1"), {"d": Move.CPUS})) == []
    assert ways(after(1, moves, at(c="0", d="1"), {"d": Move.CPUS})) == [[("d", "1", "0")]]


@pytest.mark.parametrize(
    ("wishes", "mover"),
    [
        ({"c": Move.NEVER, "d": Move.CPUS}, "d"),
        ({"c": Move.CPUS_AND_MEMORY, "d": Move.NEVER}, "c"),
        ({"c": Move.CPUS}, "c"),
    ],
)
def test_who_may_not_move_or_is_not_there_stays(wishes, mover) -> None:
    ((way,),) = ways(after(REST + 1, Moves(SMALL, budget=2), at(c="0", d="1"), wishes))
    assert way[0] == mover


def test_a_budget_of_none_moves_nobody() -> None:
    assert ways(after(REST + 1, Moves(SMALL, budget=0), at(c="0", d="1"))) == []


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
