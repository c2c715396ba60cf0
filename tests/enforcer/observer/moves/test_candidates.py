"""Which running members the observer would have moved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from enforcer.observer.moves.candidates import (
    LONGEST,
    REST,
    SAVED,
    Allowance,
    MoveBudget,
    Rested,
    move_options,
    offer_of,
    steps_of,
)
from enforcer.observer.planning_thread import PlanningInput
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.optin.options import Move
from numakin.placement.plan.whole import WholeSearch
from numakin.placement.state.occupancy import Occupancy, Reservation
from numakin.wire import local_pb2 as local
from tests.enforcer.observer.moves.apart import at
from tests.machines import KUNPENG_920, SMALL, THIRTY_TWO
from tests.numakin.placement.plan.seated import seated

NO_KIN: dict[str, dict[str, float]] = {}
TALK = {("c", "d"): 1e4}
ANY = dict.fromkeys("cdxyz", Move.CPUS)


def after(
    windows: int, rested: Rested, occupancy: Occupancy, wishes=ANY, budget: int = 2, talk=TALK, kin=NO_KIN
) -> list:
    """The steps, each as ways (reservation, from, to)."""
    for _ in range(windows):
        movable = rested.movable(occupancy, wishes, kin)
    situation = PlanningInput(occupancy, [], {}, talk, movable)
    result = offer_of(steps_of(SMALL, situation, MoveBudget(budget, budget)), situation)
    return [[(way.reservation, way.source, way.target) for way in step.ways] for step in result.steps]


def test_a_member_moves_to_its_kin_once_it_has_rested_where_it_is() -> None:
    rested, apart = Rested(), at(c="0", d="1")
    assert after(REST, rested, apart) == []
    assert after(1, rested, apart) in ([[("d", "1", "0")]], [[("c", "0", "1")]])


def test_it_rests_again_where_it_has_moved_to() -> None:
    rested = Rested()
    after(REST + 1, rested, at(c="0", d="0"))
    assert after(REST, rested, at(c="0", d="1"), {"d": Move.CPUS}) == []
    assert after(1, rested, at(c="0", d="1"), {"d": Move.CPUS}) == [[("d", "1", "0")]]


def test_a_pod_in_parts_is_not_moved() -> None:
    apart = at(c="0", d="1")
    part = replace(apart.reservations["c"], key="c/side", numa_nodes=NumaSet.parse("1"))
    assert after(REST + 2, Rested(), apart.with_reservation(part), {"c": Move.CPUS}) == []


class TestBesideKin:
    """x comes, or moves, to where c is."""

    @pytest.mark.parametrize("there_before", [{}, {"x": "1"}], ids=["new", "moved"])
    @pytest.mark.parametrize("known_as", ["x", "ns/Deployment/x"])
    def test_a_member_rests_again_when_kin_of_it_come_for_its_sake(self, there_before, known_as) -> None:
        rested, kin = Rested(), {known_as: {"c": 1.0}}
        only_c = {"c": Move.CPUS}
        after(REST + 1, rested, at(c="0", d="1", **there_before), only_c, kin=kin)
        assert after(REST, rested, at(c="0", d="1", x="0"), only_c, kin=kin) == []
        assert after(1, rested, at(c="0", d="1", x="0"), only_c, kin=kin) == [[("c", "0", "1")]]

    @pytest.mark.parametrize("every", [1, REST // 2, REST])
    def test_it_does_not_wait_for_ever_where_kin_come_all_the_time(self, every) -> None:
        """As of a CronJob that runs each minute, window by window one of its pods, or none."""
        rested, only_c, steps = Rested(), {"c": Move.CPUS}, []
        for window in range(2 * LONGEST):
            visitors = {f"x{window}": "0"} if window % every == 0 else {}
            kin = {visitor: {"c": 1.0} for visitor in visitors}
            steps.append(after(1, rested, at(c="0", d="1", **visitors), only_c, kin=kin))
        assert not any(steps[:LONGEST])
        assert all(steps[LONGEST:])

    def test_those_that_come_once_in_a_while_are_each_waited_for(self) -> None:
        rested, only_c = Rested(), {"c": Move.CPUS}
        for number in range(2 * LONGEST // (REST + 1)):
            there = at(c="0", d="1", **{f"x{number}": "0"})
            assert after(REST, rested, there, only_c, kin={f"x{number}": {"c": 1.0}}) == []
            assert after(1, rested, there, only_c) == [[("c", "0", "1")]]

    @pytest.mark.parametrize("kin", [{}, {"x": {"d": 1.0}}], ids=["a stranger", "kin of another"])
    def test_others_do_not_keep_it(self, kin) -> None:
        rested = Rested()
        after(REST, rested, at(c="0", d="1"), {"c": Move.CPUS}, kin=kin)
        assert after(1, rested, at(c="0", d="1", x="0"), {"c": Move.CPUS}, kin=kin) == [[("c", "0", "1")]]

    def test_a_newcomer_of_which_nothing_is_known_came_for_its_group(self) -> None:
        rested, apart = Rested(), at(c="0", d="1")
        group = {
            key: replace(reservation, group="ns/shop") for key, reservation in at(c="0", x="0").reservations.items()
        }
        apart = apart.changed({"c": group["c"]})
        after(REST, rested, apart, {"c": Move.CPUS})
        assert after(1, rested, apart.changed({"x": group["x"]}), {"c": Move.CPUS}) == []


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
    steps = after(REST + 1, Rested(), at(**homes), talk={("c", "d"): 1e4, ("x", "y"): 1e4})
    assert len(steps) == 1
    now = homes | {reservation: target for reservation, _, target in steps[0]}
    assert (now["c"], now["x"]) == (now["d"], now["y"])


def test_a_pod_that_was_never_seen_to_talk_makes_no_room() -> None:
    full = at(c="0", x="0", y="0", z="0", d="1", **dict.fromkeys("abe", "1"))
    assert after(REST + 1, Rested(), full, dict.fromkeys("abcdexyz", Move.CPUS)) == []


@pytest.mark.parametrize(("weight", "moved"), [(999.0, 0), (2000.0, 1)])
def test_for_the_little_that_a_wake_up_by_chance_weighs_nobody_moves(weight, moved) -> None:
    """Though it is all the traffic that there is."""
    assert len(after(REST + 1, Rested(), at(c="0", d="1"), talk={("c", "d"): weight})) == moved


@pytest.mark.parametrize(("pairs", "moved"), [(50, 0), (500, 1)])
def test_where_many_members_talk_a_smaller_share_of_all_is_worth_a_move(pairs, moved) -> None:
    """c and d exchange a 1000th of all."""
    occupancy, talk = at(c="0", d="1"), dict(TALK)
    for a, b in ((f"a{number}", f"b{number}") for number in range(pairs)):
        talk[a, b] = 1e7 / pairs
        for pod in (a, b):
            there = Reservation(pod, pod, "", NumaSet.parse("0"), Demand(), workload=pod)
            occupancy = occupancy.with_reservation(there)
    assert len(after(REST + 1, Rested(), occupancy, {"d": Move.CPUS}, talk=talk)) == moved


def test_nobody_is_moved_by_a_step_of_its_own_while_a_whole_is_looked_for() -> None:
    """So many members on so many NUMA nodes that one window is too short for it."""
    count = len(THIRTY_TWO.numa_nodes)
    where = {f"p-{number}": str(number % count) for number in range(4 * count + 2)}
    talk = {(f"p-{number}", f"p-{number + 1}"): 1e6 for number in range(0, len(where), 2)}
    whole, offered = WholeSearch(), []
    for _ in range(2):
        situation = PlanningInput(seated(where, cpu=0.1)[0], [], {}, talk, frozenset(where))
        offered.append(steps_of(THIRTY_TWO, situation, MoveBudget(2, 12), whole=whole))
    assert offered[0] == ()
    assert offered[1]
    assert all(way.whole for step in offered[1] for way in step)


def test_a_whole_that_pays_is_gone_to_before_steps_that_would_lead_away_from_it() -> None:
    """Two to a NUMA node. The best exchange first, and the best after it, end at 13 of 31, where none gains."""
    where = {"a": "3", "b": "2", "c": "1", "d": "1", "e": "3", "f": "0", "g": "0", "h": "2"}
    weights = {"bc": 5, "ad": 5, "ae": 5, "be": 2, "de": 3, "af": 1, "cf": 5, "fg": 2, "gh": 3}
    talk = {(pair[0], pair[1]): 1e6 * weight for pair, weight in weights.items()}
    moves, whole = 0, WholeSearch()
    for _ in range(4):
        situation = PlanningInput(seated(where, cpu=16)[0], [], {}, talk, frozenset(where))
        for step in steps_of(KUNPENG_920, situation, MoveBudget(2, 6), whole=whole):
            where |= {way.reservation: str(way.target) for way in step}
            moves += len(step)
    assert sum(weight for pair, weight in weights.items() if where[pair[0]] == where[pair[1]]) == 15
    assert moves == 4


def test_where_nothing_else_pays_one_comes_to_its_kin_and_two_leave_for_it() -> None:
    """Its kin hold together, and no two that change places have room."""
    occupancy = seated({"d": "0", "g": "0", "e": "0", "f": "0"}, cpu=8)[0].on(KUNPENG_920)
    occupancy = occupancy.with_reservation(seated({"c": "1"}, cpu=16)[0].reservations["c"])
    weights = {"dg": 9, "cd": 5, "cg": 5, "de": 1, "eg": 1, "df": 1, "fg": 1}
    talk = {(pair[0], pair[1]): 1e6 * weight for pair, weight in weights.items()}
    situation = PlanningInput(occupancy, [], {}, talk, frozenset("cdefg"))
    (step,) = steps_of(KUNPENG_920, situation, MoveBudget(1, 3))
    assert (step[0].reservation, str(step[0].target)) == ("c", "0")
    assert {way.reservation for way in step[1:]} == {"e", "f"}
    assert steps_of(KUNPENG_920, situation, MoveBudget(1, 2)) == ()


def test_a_budget_of_none_moves_nobody() -> None:
    assert after(REST + 1, Rested(), at(c="0", d="1"), budget=0) == []


def test_moves_tell_what_they_were_looked_for_in() -> None:
    occupancy = at(c="0", d="1")
    situation = PlanningInput(occupancy, [], {}, {**TALK, ("c", "gone"): 5e3}, frozenset("d"))
    result = offer_of(steps_of(SMALL, situation, MoveBudget(2, 2)), situation)
    assert (result.generation, result.traffic) == (occupancy.generation, 1e4)


def test_who_has_moved_since_the_plan_was_begun_stays() -> None:
    planned = PlanningInput(at(c="0", d="1", x="1"), [], {}, TALK, frozenset("cdx"))
    now = at(c="0", d="0", x="1")
    assert planned.at(now) == replace(planned, occupancy=now, movable=frozenset("cx"))
    assert planned.at(at(c="0")).movable == frozenset("c")


def test_a_pod_allows_no_more_than_the_strictest_of_its_containers() -> None:
    containers = [
        local.LocalContainer(pod="a", opted_in=True, move="cpus-and-memory"),
        local.LocalContainer(pod="a", opted_in=True, move="cpus"),
        local.LocalContainer(pod="b", opted_in=True, move="cpus"),
        local.LocalContainer(pod="b", opted_in=True, move="never"),
        local.LocalContainer(pod="c", opted_in=True),
        local.LocalContainer(pod="plain"),
    ]
    assert move_options(containers) == {"a": Move.CPUS, "b": Move.NEVER, "c": Move.NEVER}


class TestAllowance:
    def test_so_many_a_window_and_what_was_not_used_for_a_while(self):
        allowance = Allowance(2)
        assert [allowance.now() for _ in range(SAVED + 2)] == [
            MoveBudget(2, saved) for saved in (2, 4, 6, 8, 10, 12, 12, 12)
        ]

    @pytest.mark.parametrize(("members", "a_window"), [(0, 2), (99, 2), (100, 2), (150, 3), (519, 10)])
    def test_where_more_members_run_there_are_as_many_more(self, members, a_window):
        allowance = Allowance(2)
        assert [allowance.now(members) for _ in range(SAVED + 1)][-1] == MoveBudget(a_window, SAVED * a_window)

    def test_what_was_made_is_used(self):
        allowance = Allowance(2)
        assert [allowance.now(), allowance.now()] == [MoveBudget(2, 2), MoveBudget(2, 4)]
        allowance.used(3)
        assert allowance.now() == MoveBudget(2, 3)

    def test_what_was_made_beyond_it_as_its_report_came_late_is_made_up_for(self):
        allowance = Allowance(2)
        allowance.now()
        allowance.used(5)
        assert [allowance.now(), allowance.now()] == [MoveBudget(0, 0), MoveBudget(1, 1)]

    def test_without_a_budget_nobody_moves(self):
        assert [Allowance(0).now() for _ in range(3)] == [MoveBudget(0, 0)] * 3
