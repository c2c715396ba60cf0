"""What a plan tells a newcomer, by who sits where at that moment."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numakin.placement.decide.decide import Kin, decide
from numakin.placement.decide.request import Request
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.plan.plan import Plan, PlannedSlots
from numakin.placement.plan.planner import make_plan
from numakin.placement.plan.problem import Workload, free_room
from numakin.placement.state.occupancy import Occupancy, Reservation
from tests import examples, machines
from tests.numakin.placement.asking import asks, demand, nodes, settle

SMALL, KUNPENG = machines.SMALL, machines.KUNPENG_920
EMPTY = Occupancy()

SHOP = {("cart", "db"): 10.0, ("cart", "web"): 1.0, ("ads", "web"): 6.0}
"""Two pairs that talk much, and a thin edge between them."""

NAMES = ("ads", "cart", "db", "web")


def planned(
    machine: Machine, cpu: float = 2, replicas: int = 1, names: tuple[str, ...] = NAMES, effort: int = 1
) -> Plan:
    workloads = [Workload(name, demand(cpu), replicas) for name in names]
    return make_plan(machine, EMPTY, {}, workloads, SHOP, effort=effort)


def home(plan: Plan, name: str) -> NumaSet:
    (only,) = plan.slots[name]
    return only.numa_nodes


def newcomer(workload: str, cpu: float = 2, pod: str = "new", group: str = "", memory: float = 1) -> Request:
    return asks(pod, cpu, memory, group=group, workload=workload)


def sit(occupancy: Occupancy, pod: str, numa_nodes: str, cpu: float = 2, group: str = "") -> Occupancy:
    """WORKLOAD-NUMBER."""
    workload = pod.rpartition("-")[0]
    return occupancy.with_reservation(Reservation(pod, pod, group, nodes(numa_nodes), demand(cpu), workload=workload))


def slot(
    plan: Plan,
    machine: Machine,
    occupancy: Occupancy,
    workload: str,
    cpu: float = 2,
    kin: Kin | None = None,
    memory: float = 1,
) -> NumaSet:
    return plan.slot(machine, occupancy, newcomer(workload, cpu, memory=memory), kin or Kin())


class TestSeat:
    def test_whoever_comes_first_leaves_its_kin_their_slots(self):
        """Greedily, web and cart would sit together, and the database, which talks most with cart, elsewhere."""
        plan, occupancy = planned(SMALL), EMPTY
        for name in ("web", "cart", "ads", "db"):
            request = newcomer(name, pod=f"{name}-0")
            kin = Kin(planned=plan.slot(SMALL, occupancy, request, Kin()))
            decision, occupancy = settle(SMALL, occupancy, request, kin)
            assert decision.numa_nodes == home(plan, name)
        assert occupancy.reservations["cart-0"].numa_nodes == occupancy.reservations["db-0"].numa_nodes

    def test_a_slot_that_is_taken_is_not_given_again(self):
        plan = Plan({"web": (PlannedSlots(nodes("0"), 1), PlannedSlots(nodes("1"), 1))}, {"web": {0: 2.0, 1: 1.0}})
        assert slot(plan, SMALL, sit(EMPTY, "web-0", "0"), "web") == nodes("1")

    def test_one_who_left_leaves_its_slot_to_its_successor(self):
        plan = planned(SMALL)
        before = sit(EMPTY, "db-0", str(home(plan, "db"))).without_pod("db-0")
        assert slot(plan, SMALL, before, "db") == home(plan, "db")

    def test_a_replica_more_than_expected_goes_where_it_is_drawn_beside_the_kept_slots(self):
        plan = planned(KUNPENG)
        before = sit(EMPTY, "cart-0", str(home(plan, "cart")))
        assert slot(plan, KUNPENG, before, "cart") == home(plan, "db")

    def test_one_more_of_those_who_talk_much_takes_the_kept_slot_of_one_who_talks_little(self):
        plan = Plan(
            {"web": (PlannedSlots(nodes("0"), 1),), "idle": (PlannedSlots(nodes("0"), 1),)},
            {"web": {0: 9.0, 1: 1.0}, "idle": {0: 2.0, 1: 0.0}},
            {"web": demand(2), "idle": demand(2)},
        )
        before = sit(EMPTY, "web-0", "0")
        assert slot(plan, SMALL, before, "web") == nodes("0")
        dear = Plan(plan.slots, {**plan.pulls, "idle": {0: 9.5, 1: 0.0}}, plan.demands)
        assert slot(dear, SMALL, before, "web") == nodes("1")

    @pytest.mark.parametrize(
        ("others", "own", "expected"),
        [
            ("", "", "1"),
            ("1", "", "2"),
            ("1", "1", "1"),
            ("12", "", "3"),
            ("123", "", "1"),
        ],
        ids=["nobody near by", "others near by", "shared with others", "others at two", "others everywhere"],
    )
    def test_one_more_whose_numa_node_is_full_goes_to_no_other_groups(self, others, own, expected):
        """It is drawn to NUMA node 0, which has no room, and to the others by how near they are to that."""
        plan = Plan({"web": (PlannedSlots(nodes("0"), 1),)}, {"web": {0: 9.0, 1: 0.8, 2: 0.3, 3: 0.2}})
        before = sit(EMPTY, "web-0", "0", cpu=32, group="ns/shop")
        for home in others:
            before = sit(before, f"other-{home}", home, group="ns/other")
        for home in own:
            before = sit(before, f"ads-{home}", home, group="ns/shop")
        request = newcomer("web", group="ns/shop")
        assert plan.slot(KUNPENG, before, request, Kin({"ads-1": 1.0})) == nodes(expected)

    def test_a_stranger_leaves_kept_slots_free(self):
        plan = planned(SMALL, cpu=4, names=("db",))
        assert slot(plan, SMALL, EMPTY, "batch") not in (NumaSet(), home(plan, "db"))

    def test_a_stranger_leaves_the_memory_of_kept_slots_free(self):
        """It would have more CPUs there."""
        slots = {"db": (PlannedSlots(nodes("0"), 2),)}
        plan = Plan(slots, {"db": {0: 1.0, 1: 0.0}}, {"db": demand(0.1, memory=3)})
        before = sit(EMPTY, "other-0", "1", cpu=1, group="ns/other")
        assert slot(plan, SMALL, before, "batch") == nodes("0")
        assert slot(plan, SMALL, before, "batch", memory=3) == nodes("1")

    def test_a_stranger_with_known_kin_goes_to_them(self):
        before = sit(EMPTY, "peer-0", "3")
        assert slot(planned(KUNPENG), KUNPENG, before, "batch", kin=Kin({"peer-0": 1.0})) == nodes("3")

    @pytest.mark.parametrize(("weight", "expected"), [(9.0, "0"), (4.0, "1")])
    def test_a_stranger_takes_a_kept_slot_at_its_kin_where_it_loses_more_elsewhere(self, weight, expected):
        """As one does that comes back when the plan has forgotten it: whose slot it takes loses 5 elsewhere."""
        plan = Plan({"db": (PlannedSlots(nodes("0"), 1),)}, {"db": {0: 6.0, 1: 1.0}}, {"db": demand(2)})
        before = sit(EMPTY, "peer-0", "0", cpu=1)
        assert slot(plan, SMALL, before, "batch", kin=Kin({"peer-0": weight})) == nodes(expected)

    def test_a_stranger_whose_group_sits_here_is_its_groups_affair(self):
        before = sit(EMPTY, "batch-0", "3", group="ns/night")
        request = newcomer("other", group="ns/night")
        assert planned(KUNPENG).slot(KUNPENG, before, request, Kin()) == NumaSet()

    def test_a_stranger_takes_a_kept_slot_when_there_is_nothing_else(self):
        advice = slot(planned(SMALL), SMALL, EMPTY, "batch")
        assert advice == NumaSet(), "all room is kept: no advice"
        assert decide(SMALL, EMPTY, asks("batch-0", 2), Kin(planned=advice)).fits

    def test_a_planned_slot_that_someone_took_is_not_insisted_on(self):
        plan = Plan({"db": (PlannedSlots(nodes("0"), 1),)}, {"db": {0: 5.0, 1: 1.0}}, {"db": demand(2)})
        assert slot(plan, SMALL, sit(EMPTY, "thief-0", "0", cpu=3), "db") == nodes("1")

    def test_no_knowledge_no_plan_no_harm(self):
        assert slot(Plan(), SMALL, EMPTY, "web") == NumaSet()

    @settings(max_examples=examples.of(15), deadline=None)
    @given(st.permutations(["ads", "ads", "cart", "cart", "db", "db", "web", "web"]))
    def test_in_whatever_order_they_come_all_end_as_planned(self, arrivals):
        plan, occupancy, ended = planned(KUNPENG, cpu=10, replicas=2), EMPTY, {}
        for number, name in enumerate(arrivals):
            request = newcomer(name, 10, pod=f"{number}")
            kin = Kin(planned=plan.slot(KUNPENG, occupancy, request, Kin()))
            _, occupancy = settle(KUNPENG, occupancy, request, kin)
            key = name, occupancy.reservations[f"{number}"].numa_nodes
            ended[key] = ended.get(key, 0) + 1
        assert ended == {(name, entry.numa_nodes): entry.count for name, slots in plan.slots.items() for entry in slots}


COMINGS = st.lists(
    st.tuples(st.sampled_from([*NAMES, ""]), st.sampled_from(["0", "1", "2", "3", "0-1"]), st.booleans()), max_size=20
)
"""(workload, where, whether it leaves again)."""


class TestSums:
    """The slot is settled from sums that are carried along: they must be those of a count from scratch."""

    @settings(deadline=None)
    @given(COMINGS, st.sampled_from([*NAMES, "batch"]), st.integers(1, 3), st.sampled_from([1, 8, 24]))
    def test_the_slot_is_the_one_that_counting_everybody_gives(self, comings, workload, replicas, cpu):
        plan, occupancy = planned(KUNPENG, cpu=8, replicas=replicas, effort=0), EMPTY
        occupancy.load(KUNPENG)
        for number, (name, where, leaves) in enumerate(comings):
            occupancy = sit(occupancy, f"{name}-{number}", where)
            occupancy = occupancy.without_pod(f"{name}-{number}") if leaves else occupancy
        assert slot(plan, KUNPENG, occupancy, workload, cpu) == counted(plan, occupancy, workload, cpu)


def counted(plan: Plan, occupancy: Occupancy, workload: str, cpu: float) -> NumaSet:
    """The rule of `Plan.slot`, by looking at every slot; memory is plenty."""
    anew = Occupancy(occupancy.reservations)
    vacant = {name: _vacant(plan, anew, name) for name in NAMES}
    room = {entry: cpus // 1000 for entry, (cpus, _) in free_room(KUNPENG, anew).items()}
    for numa_node in vacant.get(workload, []):
        if room[numa_node] >= cpu:
            return nodes(str(numa_node))
    worth = {}
    for numa_node in [entry for entry in room if room[entry] >= cpu]:
        kept = sorted(
            _loss(plan, name, numa_node)
            for name in NAMES
            if name != workload
            for slot in vacant[name]
            if slot == numa_node
        )
        left = room[numa_node] - cpu - 8 * len(kept)
        go = [loss for at, loss in enumerate(kept) if left + 8 * at < 0]
        if workload in NAMES or not go:
            worth[numa_node] = plan.pulls.get(workload, {}).get(numa_node, 0.0) - sum(go), left
    return NumaSet.of(sorted(worth, key=lambda entry: (-worth[entry][0], -worth[entry][1], entry))[:1])


def _loss(plan: Plan, name: str, numa_node: int) -> float:
    pulls = plan.pulls[name]
    return max(0.0, pulls[numa_node] - max(pull for entry, pull in pulls.items() if entry != numa_node))


def _vacant(plan: Plan, occupancy: Occupancy, name: str):
    """One NUMA node for each slot that is free; those who sit over several take the last ones."""
    sitters = [
        reservation.numa_nodes for reservation in occupancy.reservations.values() if reservation.workload == name
    ]
    coming = sum(entry.count for entry in plan.slots[name]) - len(sitters)
    free = [
        entry.numa_nodes.lowest
        for entry in plan.slots[name]
        for _ in range(entry.count - sum(1 for home in sitters if home == entry.numa_nodes))
    ]
    return free[: max(0, coming)]
