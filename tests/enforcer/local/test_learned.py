"""What the hook makes of the tables that it is handed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enforcer.local.control import LARGEST_MESSAGE, framed
from enforcer.local.learned import Learned, kin_table, plan_from, plan_to
from numakin.placement.decide.decide import Kin, decide
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.plan.plan import Plan, PlannedSlots
from numakin.placement.plan.planner import AT_ONCE, make_plan
from numakin.placement.plan.problem import Workload
from numakin.placement.state.occupancy import Occupancy, Reservation
from numakin.placement.traffic.affinity import neighbours
from numakin.placement.traffic.graph import Flow, Graph, TrafficTally
from numakin.wire import local_pb2 as local
from tests import machines
from tests.numakin.placement.asking import asks, demand, nodes

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
    learned: Learned, workload: str = "web", nominated: Kin | None = None, occupancy: Occupancy | None = None
) -> Kin:
    return learned.kin(KUNPENG, occupancy or Occupancy(), asks("new", 2, group="", workload=workload), nominated)


def rows(graph: Graph) -> dict[str, dict[str, float]]:
    return neighbours(graph.weights())


class TestWeights:
    def test_a_table_of_all_with_all_is_one_that_the_hook_takes_with_the_heaviest_weights(self) -> None:
        """350 pods on a node, each of which talks with each."""
        pods = [f"0f0b6d7e-8a7b-4e3b-9a53-0c6d9a7d{number:04}" for number in range(350)]
        table = kin_table({pod: {peer: float(at) for at, peer in enumerate(pods)} for pod in pods})
        assert len(framed(local.ToHook(kin=table))) < LARGEST_MESSAGE
        assert all({kin.pod for kin in row.kin} >= {*pods[-100:]} for row in table.rows)

    def test_a_pods_own_row_goes_before_its_workloads(self) -> None:
        assert kin(told({"new": {"a": 1.0}, "web": {"b": 2.0}})).weights == {"a": 1.0}
        assert kin(told({"web": {"b": 2.0}})).weights == {"b": 2.0}
        assert kin(told({"db": {"b": 2.0}})) == Kin()

    @pytest.mark.parametrize("ends", [(8,), (8, 9), (4, 20)], ids=["once", "twice in a row", "twice"])
    def test_what_an_observer_knew_that_was_started_anew_is_known_as_if_it_had_gone_on(
        self, ends: tuple[int, ...]
    ) -> None:
        """And not what the new one has seen in its first window alone. Of 24 windows, six a half-life."""
        learned, whole, since, own = Learned(), TrafficTally(6.0), 0, TrafficTally(6.0)
        for window in range(1, 25):
            seen = [Flow("cart", "db", "tcp", 1_000, 10)] if window % 3 else []
            seen += [Flow("cart", "web", "tcp", 700 * window, window)] if window < 9 else []
            for tally in (whole, own):
                tally.add(seen, window)
            learned.weighed(kin_table(rows(own.graph(window)), str(since), (window - since) / 6.0))
            assert learned.traffic_of("cart") == pytest.approx(rows(whole.graph(window)).get("cart", {}))
            if window in ends:
                since, own = window, TrafficTally(6.0)

    def test_what_an_earlier_observer_knew_is_forgotten_in_time_and_with_the_pod(self) -> None:
        learned = Learned()
        learned.weighed(kin_table({"cart": {"db": 8.0, "web": 8.0}, "db": {"cart": 8.0}}, "first", 5.0))
        learned.weighed(kin_table({"cart": {"web": 1.0}}, "second", 1.0))
        assert learned.traffic_of("cart") == {"db": 4.0, "web": 5.0}
        learned.forget("db")
        learned.weighed(kin_table({"cart": {"web": 1.0}}, "second", 3.0))
        assert learned.traffic_of("cart") == {"web": 2.0}
        assert learned.traffic_of("db") == {}
        learned.weighed(kin_table({"cart": {"web": 1.0}}, "second", 11.0))
        assert learned.traffic_of("cart") == {"web": 1.0}

    def test_a_nominations_kin_goes_before_what_was_learned(self) -> None:
        learned = told({"new": {"a": 1.0}})
        nominated = Kin({"c": 3.0}, expected=nodes("1"))
        assert kin(learned, nominated=nominated) == nominated
        assert kin(learned, nominated=Kin(expected=nodes("1"))) == Kin({"a": 1.0}, expected=nodes("1"))

    def test_a_new_table_takes_the_place_of_the_old_one(self) -> None:
        learned = told({"new": {"a": 1.0}})
        learned.weighed(kin_table({}))
        assert kin(learned) == Kin()

    def test_replicas_of_a_workload_share_one_copy_of_its_kin_until_a_new_table_comes(self) -> None:
        learned = told({"web": {"b": 2.0}})
        before = kin(learned)
        assert kin(learned).weights is before.weights
        learned.weighed(kin_table({"web": {"b": 3.0}}))
        assert (before.weights, kin(learned).weights) == ({"b": 2.0}, {"b": 3.0})

    def test_of_a_pod_that_is_gone_nothing_is_kept(self) -> None:
        learned = told({"new": {"a": 1.0}})
        learned.forget("new")
        assert kin(learned) == Kin()


COUNTS = st.integers(0, 1 << 20)
PLANS = st.dictionaries(
    st.text("abc/", min_size=1),
    st.tuples(
        st.lists(
            st.builds(PlannedSlots, st.integers(0, 63).map(lambda entry: NumaSet(1 << entry)), COUNTS), max_size=3
        ),
        st.dictionaries(st.integers(0, 63), st.floats(0, 1e12)),
        st.builds(Demand, COUNTS, COUNTS),
    ),
).map(
    lambda rows: Plan(
        {name: tuple(slots) for name, (slots, _, _) in rows.items()},
        {name: pulls for name, (_, pulls, _) in rows.items()},
        {name: asked for name, (_, _, asked) in rows.items()},
        generation=len(rows),
    )
)


class TestPlan:
    @given(PLANS)
    def test_a_plan_survives_its_way_to_the_hook(self, plan: Plan) -> None:
        assert plan_from(local.Plan.FromString(plan_to(plan).SerializeToString())) == plan

    @pytest.mark.parametrize(("mover", "workload"), [("a", "ns/Deployment/db"), ("web-0", "ns/Deployment/web")])
    def test_where_its_kin_or_its_like_have_moved_since_an_older_plan_has_no_slot_for_a_newcomer(
        self, mover: str, workload: str
    ) -> None:
        plan = Plan(
            {"ns/Deployment/web": (PlannedSlots(nodes("1"), 2),)}, {}, {"ns/Deployment/web": demand(1)}, generation=7
        )
        learned = told({"ns/Deployment/web": {"a": 1.0}}, plan)
        request = asks("new", group="", workload="ns/Deployment/web")
        for generation, planned in ((7, "1"), (8, "")):
            learned.moved([Reservation(mover, mover, "", nodes("0"), demand(1), workload=workload)], generation)
            learned.planned(plan_to(plan))
            assert learned.kin(KUNPENG, Occupancy(), request, None).planned == nodes(planned)
        learned.planned(plan_to(replace(plan, generation=8)))
        assert learned.kin(KUNPENG, Occupancy(), request, None).planned == nodes("1")

    def test_a_burst_of_newcomers_ends_as_planned_though_nothing_is_renewed(self) -> None:
        everyone = [Workload(name, demand(6), 4) for name in ("ads", "cart", "db", "web")]
        plan = make_plan(KUNPENG, Occupancy(), {}, everyone, SHOP, effort=AT_ONCE)
        learned, occupancy = told({}, plan), Occupancy()
        for number in range(4):
            for name in ("web", "cart", "ads", "db"):
                request = asks(f"{name}-{number}", 6, group="", workload=name)
                decision = decide(KUNPENG, occupancy, request, learned.kin(KUNPENG, occupancy, request, None))
                occupancy = decision.applied(occupancy, request)
        ended = Counter(
            (reservation.workload, reservation.numa_nodes) for reservation in occupancy.reservations.values()
        )
        assert ended == {(name, slot.numa_nodes): slot.count for name, slots in plan.slots.items() for slot in slots}
