"""Seats kept ahead of arrivals: whole groups together, room for who is expected, no change without a reason."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.cpuset import CpuSet, NumaSet
from placement.decide import Kin, decide
from placement.known import Workload
from placement.occupancy import Occupancy, Seat
from placement.plan import AT_ONCE, Plan, PlannedSeats, make_plan
from tests import machines
from tests.placement.asking import asks, demand, nodes, settle

SMALL, KUNPENG = machines.SMALL, machines.KUNPENG_920
EMPTY = Occupancy()

SHOP = {("cart", "db"): 10.0, ("cart", "web"): 1.0, ("ads", "web"): 6.0}
"""Two pairs that talk much, and a thin edge between them."""


def workloads(cpu: float = 2, replicas: int = 1, names: str = "ads cart db web") -> list[Workload]:
    return [Workload(name, demand(cpu), replicas) for name in names.split()]


def home(plan: Plan, name: str) -> NumaSet:
    (only,) = plan.seats[name]
    return only.numa_nodes


def sit(occupancy: Occupancy, pod: str, numa_nodes: str, cpu: float = 2) -> Occupancy:
    return occupancy.seated(Seat(pod, pod, "", nodes(numa_nodes), demand(cpu)))


class TestMaking:
    def test_those_who_talk_most_share_a_numa_node(self):
        plan = make_plan(SMALL, EMPTY, {}, workloads(), SHOP)
        assert home(plan, "cart") == home(plan, "db") != home(plan, "web") == home(plan, "ads")
        assert plan.locality == pytest.approx(16 / 17)

    def test_there_is_a_seat_for_each_expected_replica(self):
        plan = make_plan(KUNPENG, EMPTY, {}, workloads(replicas=3), SHOP)
        assert {name: sum(one.count for one in seats) for name, seats in plan.seats.items()} == dict.fromkeys(
            ("ads", "cart", "db", "web"), 3
        )

    def test_the_best_seats_come_first(self):
        everyone = [*workloads(names="db"), Workload("web", demand(1), 4)]
        plan = make_plan(SMALL, EMPTY, {}, everyone, {("db", "web"): 1.0})
        first, *_ = plan.seats["web"]
        assert first == PlannedSeats(home(plan, "db"), 2), "two of four fit beside the database"

    def test_members_that_run_stay_and_the_plan_is_made_around_them(self):
        before = sit(EMPTY, "db-0", "1")
        plan = make_plan(SMALL, before, {"db-0": "db"}, workloads(), SHOP)
        assert home(plan, "db") == home(plan, "cart") == nodes("1")

    def test_room_that_others_have_is_not_planned_with(self):
        before = sit(EMPTY, "stranger", "0", cpu=3)
        plan = make_plan(SMALL, before, {}, workloads(names="cart db"), SHOP)
        assert home(plan, "cart") == home(plan, "db") == nodes("1")

    def test_reserved_cpus_are_not_planned_with(self):
        before = EMPTY.with_reserved(CpuSet.parse("0-2"))
        plan = make_plan(SMALL, before, {}, workloads(names="cart db"), SHOP)
        assert home(plan, "cart") == home(plan, "db") == nodes("1")

    def test_what_fits_nowhere_is_given_no_seat(self):
        plan = make_plan(SMALL, EMPTY, {}, workloads(cpu=5, names="db"), {})
        assert plan.seats["db"] == ()

    def test_parts_of_a_split_group_are_neighbours(self):
        everyone = [Workload("kafka", demand(20), 2)]
        plan = make_plan(KUNPENG, EMPTY, {}, everyone, {("kafka", "kafka"): 1.0})
        one, other = (seats.numa_nodes.lowest for seats in plan.seats["kafka"])
        assert KUNPENG.distance(one, other) == min(
            KUNPENG.distance(one, far) for far in KUNPENG.cpu_nodes - nodes(str(one))
        )

    def test_the_order_in_which_workloads_are_told_does_not_matter(self):
        assert make_plan(SMALL, EMPTY, {}, workloads(), SHOP) == make_plan(SMALL, EMPTY, {}, workloads()[::-1], SHOP)


class TestStability:
    def test_a_change_that_does_not_pay_leaves_all_seats_as_they_are(self):
        before = make_plan(SMALL, EMPTY, {}, workloads(cpu=1, replicas=2), SHOP)
        drifted = {pair: weight * 1.01 for pair, weight in SHOP.items()}
        after = make_plan(SMALL, EMPTY, {}, workloads(cpu=1, replicas=2), drifted, previous=before)
        assert after.seats == before.seats

    def test_a_change_that_pays_is_made(self):
        before = make_plan(SMALL, EMPTY, {}, workloads(), SHOP)
        turned = {("cart", "db"): 1.0, ("cart", "web"): 10.0, ("ads", "db"): 10.0}
        after = make_plan(SMALL, EMPTY, {}, workloads(), turned, previous=before)
        assert home(after, "cart") == home(after, "web") != home(after, "db") == home(after, "ads")

    def test_how_much_a_change_must_pay_is_the_caller_s_to_say(self):
        before = make_plan(SMALL, EMPTY, {}, workloads(), SHOP)
        turned = {("cart", "db"): 1.0, ("cart", "web"): 10.0, ("ads", "db"): 10.0}
        after = make_plan(SMALL, EMPTY, {}, workloads(), turned, previous=before, pays=1.0)
        assert after.seats == before.seats

    @pytest.mark.parametrize("effort", [AT_ONCE, 1], ids=["at once", "thorough"])
    def test_one_replica_more_leaves_the_others_their_seats(self, effort):
        before = make_plan(KUNPENG, EMPTY, {}, workloads(), SHOP)
        more = [*workloads(names="ads cart db"), Workload("web", demand(2), 2)]
        after = make_plan(KUNPENG, EMPTY, {}, more, SHOP, previous=before, effort=effort)
        assert {name: after.seats[name] for name in ("ads", "cart", "db")} == {
            name: before.seats[name] for name in ("ads", "cart", "db")
        }
        assert sum(one.count for one in after.seats["web"]) == 2

    @settings(max_examples=15, deadline=None)
    @given(st.lists(st.sampled_from(["ads", "cart", "db", "web"]), max_size=6), st.integers(0, 5))
    def test_same_arguments_same_plan(self, running, effort):
        before, members = EMPTY, {}
        for number, name in enumerate(running):
            pod = f"{name}-{number}"
            before = sit(before, pod, str(number % 4))
            members[pod] = name
        first, second = (
            make_plan(KUNPENG, before, members, workloads(replicas=3), SHOP, effort=effort) for _ in range(2)
        )
        assert first == second


class TestSeat:
    def test_whoever_comes_first_leaves_its_kin_their_seats(self):
        """Greedily, web and cart would sit together, and the database, which talks most with cart, elsewhere."""
        plan = make_plan(SMALL, EMPTY, {}, workloads(), SHOP)
        occupancy, members = EMPTY, {}
        for name in ("web", "cart", "ads", "db"):
            seat = plan.seat(SMALL, occupancy, members, workload=name, demand=demand(2))
            decision, occupancy = settle(SMALL, occupancy, asks(f"{name}-0", 2, group=""), Kin(planned=seat))
            assert decision.numa_nodes == home(plan, name)
            members[f"{name}-0"] = name
        assert occupancy.seats["cart-0"].numa_nodes == occupancy.seats["db-0"].numa_nodes

    def test_a_seat_that_is_taken_is_not_given_again(self):
        plan = Plan({"web": (PlannedSeats(nodes("0"), 1), PlannedSeats(nodes("1"), 1))}, {"web": {0: 2.0, 1: 1.0}})
        before = sit(EMPTY, "web-0", "0")
        assert plan.seat(SMALL, before, {"web-0": "web"}, workload="web", demand=demand(2)) == nodes("1")

    def test_one_who_left_leaves_its_seat_to_its_successor(self):
        plan = make_plan(SMALL, EMPTY, {}, workloads(), SHOP)
        before = sit(EMPTY, "db-0", str(home(plan, "db"))).without_pod("db-0")
        assert plan.seat(SMALL, before, {}, workload="db", demand=demand(2)) == home(plan, "db")

    def test_a_replica_more_than_expected_goes_where_it_is_drawn_beside_the_kept_seats(self):
        plan = make_plan(KUNPENG, EMPTY, {}, workloads(), SHOP)
        before = sit(EMPTY, "cart-0", str(home(plan, "cart")))
        seat = plan.seat(KUNPENG, before, {"cart-0": "cart"}, workload="cart", demand=demand(2))
        assert seat == home(plan, "db")

    def test_a_stranger_leaves_kept_seats_free(self):
        plan = make_plan(SMALL, EMPTY, {}, workloads(cpu=4, names="db"), {})
        stranger = plan.seat(SMALL, EMPTY, {}, workload="batch", demand=demand(2))
        assert stranger not in (NumaSet(), home(plan, "db"))

    def test_a_stranger_with_known_kin_goes_to_them(self):
        plan = make_plan(KUNPENG, EMPTY, {}, workloads(), SHOP)
        before = sit(EMPTY, "peer", "3")
        seat = plan.seat(KUNPENG, before, {}, workload="batch", demand=demand(2), weights={"peer": 1.0})
        assert seat == nodes("3")

    def test_a_stranger_takes_a_kept_seat_when_there_is_nothing_else(self):
        plan = make_plan(SMALL, EMPTY, {}, workloads(), SHOP)
        advice = plan.seat(SMALL, EMPTY, {}, workload="batch", demand=demand(2))
        assert advice == NumaSet(), "all room is kept: no advice"
        assert decide(SMALL, EMPTY, asks("batch-0", 2), Kin(planned=advice)).fits

    def test_a_planned_seat_that_someone_took_is_not_insisted_on(self):
        plan = Plan({"db": (PlannedSeats(nodes("0"), 1),)}, {"db": {0: 5.0, 1: 1.0}}, {"db": demand(2)})
        before = sit(EMPTY, "thief", "0", cpu=3)
        assert plan.seat(SMALL, before, {}, workload="db", demand=demand(2)) == nodes("1")

    def test_no_knowledge_no_plan_no_harm(self):
        assert Plan().seat(SMALL, EMPTY, {}, workload="web", demand=demand(2)) == NumaSet()
        assert not make_plan(SMALL, EMPTY, {}, [], {}).seats

    @settings(max_examples=15, deadline=None)
    @given(st.permutations(["ads", "ads", "cart", "cart", "db", "db", "web", "web"]))
    def test_in_whatever_order_they_come_all_end_as_planned(self, arrivals):
        plan = make_plan(KUNPENG, EMPTY, {}, workloads(cpu=10, replicas=2), SHOP, effort=1)
        occupancy, members, ended = EMPTY, {}, {}
        for number, name in enumerate(arrivals):
            seat = plan.seat(KUNPENG, occupancy, members, workload=name, demand=demand(10))
            _, occupancy = settle(KUNPENG, occupancy, asks(f"{number}", 10, group=""), Kin(planned=seat))
            members[f"{number}"] = name
            key = name, occupancy.seats[f"{number}"].numa_nodes
            ended[key] = ended.get(key, 0) + 1
        assert ended == {(name, one.numa_nodes): one.count for name, seats in plan.seats.items() for one in seats}
