"""Few moves, each worth it, none beyond the budget or of what must not move."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.model.cpuset import CpuSet
from numakin.placement.plan.problem import Workload
from numakin.placement.plan.rebalance import Board
from tests import machines
from tests.numakin.placement.asking import demand, nodes
from tests.numakin.placement.plan.seated import seated

SMALL, KUNPENG = machines.SMALL, machines.KUNPENG_920
SHOP = {("cart", "db"): 10.0, ("cart", "web"): 1.0, ("ads", "web"): 6.0}
NAMES = ("ads", "cart", "db", "web")


def moves(machine, where, cpu=2, movable=None, budget=10, weights=SHOP, **more):
    occupancy, members = seated(where, cpu)
    known = [Workload(name, demand(cpu), 1) for name in NAMES]
    allowed = where if movable is None else movable
    return Board.of(machine, occupancy, members, known, weights, movable=allowed).steps(budget, **more)


def test_a_member_goes_where_its_kin_are():
    ((only,),) = moves(SMALL, {"cart-0": "0", "db-0": "1"})
    assert (only.source, only.target) in ((nodes("0"), nodes("1")), (nodes("1"), nodes("0")))
    assert only.gain == pytest.approx(1.0, abs=0.1)


def test_on_a_full_machine_two_change_places():
    (result,) = moves(SMALL, {"cart-0": "0", "ads-0": "0", "db-0": "1", "web-0": "1"})
    assert len(result) == 2
    assert {(entry.source, entry.target) for entry in result} == {(nodes("0"), nodes("1")), (nodes("1"), nodes("0"))}


def test_nobody_moves_from_a_good_place():
    assert moves(SMALL, {"cart-0": "0", "db-0": "0", "ads-0": "1", "web-0": "1"}) == ()


def test_the_budget_is_kept_and_half_an_exchange_is_none():
    assert moves(SMALL, {"cart-0": "0", "ads-0": "0", "db-0": "1", "web-0": "1"}, budget=1) == ()
    assert moves(SMALL, {"cart-0": "0", "db-0": "1"}, budget=0) == ()


@pytest.mark.parametrize(
    "where",
    [{"cart-0": "0", "db-0": "1"}, {"cart-0": "0", "ads-0": "0", "db-0": "1", "web-0": "1"}],
    ids=["into free room", "an exchange"],
)
def test_a_declined_step_makes_way_for_the_next_best(where):
    """Until there is none left."""
    declined: list[frozenset] = []
    while result := moves(SMALL, where, budget=2, declined=declined):
        ways = frozenset((entry.reservation, entry.target, CpuSet()) for entry in result[0])
        assert ways not in declined
        declined.append(ways)
    assert len(declined) > 1


@pytest.mark.parametrize("was_declined", [False, True], ids=["first of all", "after that was declined"])
def test_nobody_is_moved_along_for_next_to_nothing(was_declined):
    """The ads would come a thousandth of the traffic nearer to the web by changing places with the cart."""
    little = {("cart", "db"): 10.0, ("ads", "web"): 0.01}
    where = {"cart-0": "1", "web-0": "1", "db-0": "0", "ads-0": "0"}
    alone = frozenset({("cart-0", nodes("0"), CpuSet())})
    declined = [alone] if was_declined else []
    result = moves(SMALL, where, 1, {"cart-0", "ads-0"}, weights=little, declined=declined)
    assert [[entry.reservation for entry in step] for step in result] == ([] if was_declined else [["cart-0"]])


def test_who_may_not_move_stays():
    ((only,),) = moves(SMALL, {"cart-0": "0", "db-0": "1"}, movable={"db-0"})
    assert only.reservation == "db-0"


def test_a_move_that_does_not_pay_is_not_made():
    assert moves(SMALL, {"cart-0": "0", "db-0": "1"}, pays=2.0) == ()


def test_a_member_over_several_numa_nodes_is_left_alone():
    assert moves(SMALL, {"cart-0": "0-1", "db-0": "1"}, cpu=1) == ()


def test_out_of_an_overcommitted_numa_node_members_may_go_but_not_in():
    crowd = {"cart-0": "0", "cart-1": "0", "cart-2": "0"}
    ((only,),) = moves(SMALL, {**crowd, "db-0": "1"})
    assert (only.reservation, only.target) == ("cart-2", nodes("1"))
    assert moves(SMALL, {**crowd, "db-0": "1"}, movable={"db-0"}) == ()


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(NAMES), st.integers(0, 3)).map(lambda entry: f"{entry[0]}-{entry[1]}"),
        st.sampled_from("0123"),
        max_size=12,
    ),
    st.integers(0, 6),
)
def test_moves_never_overfill_and_always_gain(where, budget):
    cpu = 6
    if max([list(where.values()).count(entry) for entry in "0123"]) * cpu > len(KUNPENG.node(0).cpus):
        return
    result = [way for step in moves(KUNPENG, where, cpu=cpu, budget=budget) for way in step]
    assert len(result) <= budget
    now = dict(where)
    for way in result:
        assert now[way.reservation] == str(way.source)
        assert way.gain > 0
        now[way.reservation] = str(way.target)
    for cpu_node in KUNPENG.cpu_nodes:
        assert list(now.values()).count(str(cpu_node)) * cpu <= len(KUNPENG.node(cpu_node).cpus)
