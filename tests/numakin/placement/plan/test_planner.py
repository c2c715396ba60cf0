"""How slots are kept ahead of arrivals: whole groups together, room for who is expected, no change without a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import counted
from numakin.placement.plan.plan import Plan, PlannedSlots
from numakin.placement.plan.planner import AT_ONCE, make_plan
from numakin.placement.plan.problem import Workload
from numakin.placement.state.occupancy import Occupancy, Reservation
from tests import examples, machines
from tests.numakin.placement.asking import demand, nodes

SMALL, KUNPENG = machines.SMALL, machines.KUNPENG_920
EMPTY = Occupancy()

SHOP = {("cart", "db"): 10.0, ("cart", "web"): 1.0, ("ads", "web"): 6.0}
"""Two pairs that talk much, and a thin edge between them."""


def workloads(cpu: float = 2, replicas: int = 1, names: str = "ads cart db web") -> list[Workload]:
    return [Workload(name, demand(cpu), replicas) for name in names.split()]


def home(plan: Plan, name: str) -> NumaSet:
    (only,) = plan.slots[name]
    return only.numa_nodes


def sit(occupancy: Occupancy, pod: str, numa_nodes: str, cpu: float = 2) -> Occupancy:
    return occupancy.with_reservation(Reservation(pod, pod, "", nodes(numa_nodes), demand(cpu)))


class TestMaking:
    def test_those_who_talk_most_share_a_numa_node(self):
        plan = make_plan(SMALL, EMPTY, {}, workloads(), SHOP)
        assert home(plan, "cart") == home(plan, "db") != home(plan, "web") == home(plan, "ads")
        assert plan.locality == pytest.approx(16 / 17)

    def test_slots_have_room_for_what_workloads_use(self):
        """Of 100m each, all four would fit on one NUMA node of four CPUs."""
        alike = dict.fromkeys((("ads", "cart"), ("cart", "db"), ("db", "web")), 1.0)
        small = [replace(workload, demand=counted(workload.demand, 2000)) for workload in workloads(cpu=0.1)]
        homes = [home(make_plan(SMALL, EMPTY, {}, small, alike), name) for name in ("ads", "cart", "db", "web")]
        assert homes[0] == homes[1] != homes[2] == homes[3]

    def test_there_is_a_slot_for_each_expected_replica(self):
        plan = make_plan(KUNPENG, EMPTY, {}, workloads(replicas=3), SHOP)
        assert {name: sum(slot.count for slot in slots) for name, slots in plan.slots.items()} == dict.fromkeys(
            ("ads", "cart", "db", "web"), 3
        )

    def test_the_best_slots_come_first(self):
        everyone = [*workloads(names="db"), Workload("web", demand(1), 4)]
        plan = make_plan(SMALL, EMPTY, {}, everyone, {("db", "web"): 1.0})
        first, *_ = plan.slots["web"]
        assert first == PlannedSlots(home(plan, "db"), 2), "two of four fit beside the database"

    def test_members_that_run_stay_and_the_plan_is_made_around_them(self):
        before = sit(EMPTY, "db-0", "1")
        plan = make_plan(SMALL, before, {"db-0": "db"}, workloads(), SHOP)
        assert home(plan, "db") == home(plan, "cart") == nodes("1")

    def test_room_that_others_have_is_not_planned_with(self):
        before = sit(EMPTY, "stranger", "0", cpu=3)
        plan = make_plan(SMALL, before, {}, workloads(names="cart db"), SHOP)
        assert home(plan, "cart") == home(plan, "db") == nodes("1")

    def test_reserved_cpus_are_not_planned_with(self):
        before = replace(EMPTY, reserved=CpuSet.parse("0-2"))
        plan = make_plan(SMALL, before, {}, workloads(names="cart db"), SHOP)
        assert home(plan, "cart") == home(plan, "db") == nodes("1")

    @pytest.mark.parametrize(("cpu", "slots"), [(4, 1), (4.002, 0), (5, 0)])
    def test_what_fits_nowhere_is_given_no_slot(self, cpu, slots):
        """A NUMA node has four CPUs."""
        plan = make_plan(SMALL, EMPTY, {}, workloads(cpu=cpu, names="db"), {})
        assert len(plan.slots["db"]) == slots

    def test_parts_of_a_split_group_are_neighbours(self):
        everyone = [Workload("kafka", demand(20), 2)]
        plan = make_plan(KUNPENG, EMPTY, {}, everyone, {("kafka", "kafka"): 1.0})
        first, other = (slots.numa_nodes.lowest for slots in plan.slots["kafka"])
        assert KUNPENG.distance(first, other) == min(
            KUNPENG.distance(first, far) for far in KUNPENG.cpu_nodes - nodes(str(first))
        )

    def test_the_order_in_which_workloads_are_told_does_not_matter(self):
        assert make_plan(SMALL, EMPTY, {}, workloads(), SHOP) == make_plan(SMALL, EMPTY, {}, workloads()[::-1], SHOP)


class TestStability:
    def test_a_change_that_does_not_pay_leaves_all_slots_as_they_are(self):
        before = make_plan(SMALL, EMPTY, {}, workloads(cpu=1, replicas=2), SHOP)
        drifted = {pair: weight * 1.01 for pair, weight in SHOP.items()}
        after = make_plan(SMALL, EMPTY, {}, workloads(cpu=1, replicas=2), drifted, previous=before)
        assert after.slots == before.slots

    def test_a_change_that_pays_is_made(self):
        before = make_plan(SMALL, EMPTY, {}, workloads(), SHOP)
        turned = {("cart", "db"): 1.0, ("cart", "web"): 10.0, ("ads", "db"): 10.0}
        after = make_plan(SMALL, EMPTY, {}, workloads(), turned, previous=before)
        assert home(after, "cart") == home(after, "web") != home(after, "db") == home(after, "ads")

    def test_a_few_thousandths_of_all_traffic_pay(self):
        """Members that come meanwhile stay where an old plan has them, so that losses add up."""
        pairs, crossed = (("ads", "web"), ("cart", "db")), (("ads", "cart"), ("db", "web"))
        before = make_plan(SMALL, EMPTY, {}, workloads(), dict.fromkeys(pairs, 1.008) | dict.fromkeys(crossed, 1.0))
        turned = dict.fromkeys(pairs, 1.0) | dict.fromkeys(crossed, 1.008)
        after = make_plan(SMALL, EMPTY, {}, workloads(), turned, previous=before)
        assert home(before, "ads") == home(before, "web") != home(before, "cart")
        assert home(after, "ads") == home(after, "cart") != home(after, "web")

    def test_how_much_a_change_must_pay_is_the_caller_s_to_say(self):
        before = make_plan(SMALL, EMPTY, {}, workloads(), SHOP)
        turned = {("cart", "db"): 1.0, ("cart", "web"): 10.0, ("ads", "db"): 10.0}
        after = make_plan(SMALL, EMPTY, {}, workloads(), turned, previous=before, pays=1.0)
        assert after.slots == before.slots

    @pytest.mark.parametrize("effort", [AT_ONCE, 1], ids=["at once", "thorough"])
    def test_one_replica_more_leaves_the_others_their_slots(self, effort):
        before = make_plan(KUNPENG, EMPTY, {}, workloads(), SHOP)
        more = [*workloads(names="ads cart db"), Workload("web", demand(2), 2)]
        after = make_plan(KUNPENG, EMPTY, {}, more, SHOP, previous=before, effort=effort)
        assert {name: after.slots[name] for name in ("ads", "cart", "db")} == {
            name: before.slots[name] for name in ("ads", "cart", "db")
        }
        assert sum(slot.count for slot in after.slots["web"]) == 2

    def test_for_other_numbers_of_replicas_a_quick_plan_is_searched_anew(self):
        """Two that talk are apart on full NUMA nodes: for one to come, two of half its size have to leave."""
        everybody = [*workloads(names="cart db"), *workloads(cpu=1, replicas=2, names="ads web")]
        first, second = nodes("0"), nodes("1")

        def quick(webs: int) -> float:
            """From a plan that was made for so many of web."""
            there = {"cart": (first, 1), "ads": (first, 2), "db": (second, 1), "web": (second, webs)}
            before = Plan({name: (PlannedSlots(*slots),) for name, slots in there.items()})
            return make_plan(
                SMALL, EMPTY, {}, everybody, {("cart", "db"): 1.0}, previous=before, effort=AT_ONCE
            ).locality

        assert quick(webs=1) == pytest.approx(1.0)
        assert quick(webs=2) < 0.5

    @settings(max_examples=examples.of(15), deadline=None)
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


def test_without_workloads_there_is_no_plan():
    assert not make_plan(SMALL, EMPTY, {}, [], {}).slots
