"""What the hook makes of the tables that it is handed."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from enforcer.learned import Learned, kin_table, plan_from, plan_to
from placement.cpuset import NumaSet
from placement.decide import Kin, decide
from placement.demand import Demand
from placement.known import Workload
from placement.occupancy import Occupancy
from placement.plan import Plan, PlannedSeats
from placement.planning import AT_ONCE, make_plan
from proto import local_pb2 as local
from tests import machines
from tests.placement.asking import asks, demand, nodes

KUNPENG = machines.KUNPENG_920
SHOP = {("cart", "db"): 10.0, ("cart", "web"): 1.0, ("ads", "web"): 6.0}


def told(weights: dict[str, dict[str, float]], plan: Plan | None = None) -> Learned:
    """Over the wire."""
    learned = Learned()
    learned.weighed(local.KinTable.FromString(kin_table(weights).SerializeToString()))
    if plan is not None:
        learned.planned(local.Plan.FromString(plan_to(plan).SerializeToString()))
    return learned


def kin(
    learned: Learned, workload: str = "web", promised: Kin | None = None, occupancy: Occupancy | None = None
) -> Kin:
    return learned.kin(KUNPENG, occupancy or Occupancy(), asks("new", 2, group="", workload=workload), promised)


class TestWeights:
    def test_a_pods_own_row_goes_before_its_workloads(self) -> None:
        assert kin(told({"new": {"a": 1.0}, "web": {"b": 2.0}})).weights == {"a": 1.0}
        assert kin(told({"web": {"b": 2.0}})).weights == {"b": 2.0}
        assert kin(told({"db": {"b": 2.0}})) == Kin()

    def test_a_promises_kin_goes_before_what_was_learned(self) -> None:
        learned = told({"new": {"a": 1.0}})
        promised = Kin({"c": 3.0}, expected=nodes("1"))
        assert kin(learned, promised=promised) == promised
        assert kin(learned, promised=Kin(expected=nodes("1"))) == Kin({"a": 1.0}, expected=nodes("1"))

    def test_a_new_table_takes_the_place_of_the_old_one(self) -> None:
        learned = told({"new": {"a": 1.0}})
        learned.weighed(kin_table({}))
        assert kin(learned) == Kin()

    def test_of_a_pod_that_is_gone_nothing_is_kept(self) -> None:
        learned = told({"new": {"a": 1.0}})
        learned.forget("new")
        assert kin(learned) == Kin()


COUNTS = st.integers(0, 1 << 20)
PLANS = st.dictionaries(
    st.text("abc/", min_size=1),
    st.tuples(
        st.lists(st.builds(PlannedSeats, st.integers(0, 63).map(lambda one: NumaSet(1 << one)), COUNTS), max_size=3),
        st.dictionaries(st.integers(0, 63), st.floats(0, 1e12)),
        st.builds(Demand, COUNTS, COUNTS),
    ),
).map(
    lambda rows: Plan(
        {name: tuple(seats) for name, (seats, _, _) in rows.items()},
        {name: pulls for name, (_, pulls, _) in rows.items()},
        {name: asked for name, (_, _, asked) in rows.items()},
    )
)


class TestPlan:
    @given(PLANS)
    def test_a_plan_survives_its_way_to_the_hook(self, plan: Plan) -> None:
        assert plan_from(local.Plan.FromString(plan_to(plan).SerializeToString())) == plan

    def test_a_burst_of_newcomers_ends_as_planned_though_nothing_is_renewed(self) -> None:
        everyone = [Workload(name, demand(6), 4) for name in ("ads", "cart", "db", "web")]
        plan = make_plan(KUNPENG, Occupancy(), {}, everyone, SHOP, effort=AT_ONCE)
        learned, occupancy = told({}, plan), Occupancy()
        for number in range(4):
            for name in ("web", "cart", "ads", "db"):
                request = asks(f"{name}-{number}", 6, group="", workload=name)
                decision = decide(KUNPENG, occupancy, request, learned.kin(KUNPENG, occupancy, request, None))
                occupancy = decision.applied(occupancy, request)
        ended = Counter((one.workload, one.numa_nodes) for one in occupancy.seats.values())
        assert ended == {(name, one.numa_nodes): one.count for name, seats in plan.seats.items() for one in seats}
