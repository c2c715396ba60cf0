"""A group that no NUMA node holds is cut where its traffic is thinnest, and its newcomers follow the plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from extender.cluster import Cluster
from extender.planning.group_plan import GroupPlan, Vacancy, make_plan, roomiest
from extender.planning.group_planner import AGAIN_S, GroupPlanner
from extender.state.admission import EVERY_NODE
from extender.state.columns.free_room import NumaPlace
from extender.state.group_spec import GroupSpec
from extender.state.label_domains import node_facts
from extender.state.node_domains import NodeDomains, label_keys
from extender.state.node_view import NodeView
from extender.state.pods import NOT_SAID, Allocatable, Changes, NodeRow
from extender.traffic.known import ClusterTraffic
from extender.traffic.memberships import Membership, Partition
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.live_usage import Live
from numakin.placement.model.node_terms import NodeTerms
from numakin.placement.plan.expected import PEAK_S
from numakin.placement.plan.problem import Workload
from numakin.placement.state.occupancy import Occupancy, Reservation
from tests.extender.machines import pod
from tests.extender.running import GIB, machine, reservation
from tests.extender.scoring.replicas import replica
from tests.extender.told import other, tell

A, B, C, D = (f"default/Deployment/{name}" for name in "abcd")
E = "default/Deployment/e"
PAIRS = {(A, B): 10.0, (C, D): 10.0, (B, C): 1.0}
"""a talks with b and c with d; the two halves hardly talk."""

HALF = Demand(cpu_milli=4000)
"""Half of a NUMA node: two fit."""

FOUR = [Workload(name, HALF, 1) for name in (A, B, C, D)]


def view(name: str, *slots: Reservation) -> NodeView:
    return NodeView(name, "s", "1", machine(), Occupancy(reservations={slot.key: slot for slot in slots}))


def at(plan: GroupPlan) -> dict[str, list[NumaPlace]]:
    return {name: [place for place, count in slots for _ in range(count)] for name, slots in plan.slots.items()}


def test_who_talks_most_shares_a_numa_node():
    result = at(make_plan([view("n1"), view("n2")], FOUR, PAIRS, {}, {}))
    assert result[A] == result[B]
    assert result[C] == result[D]
    assert result[A] != result[C]


def test_the_cut_between_machines_is_the_thinnest_too():
    """A NUMA node of each machine is full: the halves can't be neighbours."""
    views = [view("n1", other(0, 8000)), view("n2", other(1, 8000))]
    result = at(make_plan(views, FOUR, PAIRS, {}, {}))
    assert result[A] == result[B]
    assert result[C] == result[D]
    assert {result[A][0].node, result[C][0].node} == {"n1", "n2"}


def test_who_runs_stays_and_draws_the_others():
    there = reservation("c-0", "1", milli=4000)
    result = at(make_plan([view("n1"), view("n2", there)], FOUR, PAIRS, {"c-0": C}, {}))
    assert result[C] == result[D] == [NumaPlace("n2", 1)]


def test_room_that_other_plans_count_on_is_not_planned_again():
    taken = {NumaPlace("n1", 0): (8000, 0, 0), NumaPlace("n1", 1): (4001, 0, 0)}
    result = at(make_plan([view("n1"), view("n2")], FOUR, PAIRS, {}, taken))
    assert {place.node for places in result.values() for place in places} == {"n2"}


@pytest.mark.parametrize(
    "left", [Allocatable(cpu=15_000), Allocatable(memory=3 * GIB), Allocatable(pods=3)], ids=["CPU", "memory", "pods"]
)
def test_a_node_is_planned_for_no_more_than_kube_scheduler_gives_there(left):
    """Its NUMA nodes have room for all four; the kubelet keeps some of it for the system."""
    four = [Workload(name, Demand(cpu_milli=4000, memory=GIB), 1) for name in (A, B, C, D)]
    assert {place.node for places in at(make_plan([view("n1")], four, PAIRS, {}, {})).values() for place in places} == {
        "n1"
    }
    result = at(make_plan([view("n1"), view("n2")], four, PAIRS, {}, {}, left={"n1": left, "n2": NOT_SAID}))
    assert result[A] == result[B] != result[C] == result[D], "the plan has a place for each"
    on_n1 = sum(place.node == "n1" for places in result.values() for place in places)
    assert on_n1 * 4000 <= left.cpu
    assert on_n1 * GIB <= left.memory
    assert on_n1 <= left.pods


def test_who_runs_on_a_node_that_takes_no_more_pods_stays_and_the_others_are_beside_each_other():
    there = reservation("c-0", "1", milli=4000)
    full = {"n2": Allocatable(pods=0)}
    result = at(make_plan([view("n1"), view("n2", there)], FOUR, PAIRS, {"c-0": C}, {}, left=full))
    assert result[C] == [NumaPlace("n2", 1)]
    assert {result[name][0].node for name in (A, B, D)} == {"n1"}


def test_machines_are_considered_by_what_kube_scheduler_gives_there():
    left = {"n1": Allocatable(cpu=1000), "n2": Allocatable(pods=0), "n3": Allocatable(cpu=9000)}
    views = [view("n1"), view("n2"), view("n3", other(0, 1000))]
    assert [each.name for each in roomiest(views, {}, {}, 4000, left=left)] == ["n3"]


def test_a_group_begins_where_most_room_is():
    pair = [Workload(name, HALF, 1) for name in (A, B)]
    result = at(make_plan([view("n1", other(0, 1000))], pair, {(A, B): 1.0}, {}, {}))
    assert result == {A: [NumaPlace("n1", 1)], B: [NumaPlace("n1", 1)]}


@pytest.mark.parametrize(("unseen", "home"), [("", 1), ("default/shop", 2)])
def test_a_group_whose_traffic_was_not_seen_leaves_its_neighbour_to_who_lives_there(unseen, home):
    """NUMA node 1 is near to 0, where the group's first member is; 2 and 3 are far."""
    distances = [[10, 12, 32, 32], [12, 10, 32, 32], [32, 32, 10, 12], [32, 32, 12, 10]]
    numa_nodes = tuple(replace(machine(4).node(at), distances=dict(enumerate(row))) for at, row in enumerate(distances))
    slots = [reservation("a-0", "0", milli=8000), reservation("x-0", "1", group="default/other", milli=1000)]
    occupancy = Occupancy(reservations={slot.key: slot for slot in slots})
    node = NodeView("n1", "s", "1", replace(machine(4), numa_nodes=numa_nodes), occupancy)
    workloads = [Workload(A, Demand(cpu_milli=8000), 1), Workload(B, HALF, 1)]
    result = at(make_plan([node], workloads, {(A, B): 1.0}, {"a-0": A}, {}, unseen=unseen))
    assert result[B] == [NumaPlace("n1", home)]


def test_a_plan_changes_only_when_that_pays():
    views = [view("n1"), view("n2")]
    before = GroupPlan({name: (Vacancy(NumaPlace("n2", name in {C, D}), 1),) for name in (A, B, C, D)})
    assert at(make_plan(views, FOUR, PAIRS, {}, {}, previous=before)) == at(before)


def test_what_fits_nowhere_has_no_place():
    assert at(make_plan([view("n1", other(0, 8000), other(1, 8000))], FOUR, PAIRS, {}, {})) == {
        A: [], B: [], C: [], D: []
    }  # fmt: skip


def test_machines_with_members_are_looked_at_first_and_then_the_roomiest_until_there_is_room():
    views = [view("full", other(0, 7000), other(1, 7000)), view("half", other(0, 4000)), view("free"), view("more")]
    assert [entry.name for entry in roomiest(views, {"full": 1}, {}, 8000)] == ["full", "free"]
    assert [entry.name for entry in roomiest(views, {}, {}, 16_000)] == ["free", "half"]
    kept = {NumaPlace("free", numa_node): (6000, 0) for numa_node in (0, 1)}
    assert [entry.name for entry in roomiest(views, {}, kept, 8000)] == ["half"]


def test_machines_near_those_with_members_are_looked_at_next_and_without_members_a_zone_that_holds_all():
    near = NodeDomains(label_keys([])).after({"a": ("x", ""), "b": ("y", ""), "c": ("y", ""), "d": ("x", "")}, ())
    views = [view("a"), view("b", other(0, 2000)), view("c", other(0, 2000)), view("d", other(0, 8000), other(1, 8000))]
    assert [entry.name for entry in roomiest(views, {"d": 1}, {}, 12_000, domains=near)] == ["d", "a", "b"]
    assert [entry.name for entry in roomiest(views, {}, {}, 25_000, domains=near)][:2] == ["b", "c"]
    assert next(entry.name for entry in roomiest(views, {}, {}, 12_000, domains=near)) == "a", (
        "which holds it by itself"
    )


def test_a_plan_over_machines_cuts_between_those_that_are_near():
    """Each machine takes one: b goes beside a, not where there is as much room elsewhere."""
    near = NodeDomains(label_keys([])).after({"n1": ("x", ""), "n2": ("y", ""), "n3": ("x", "")}, ())
    views = [view(name, other(0, 8000), other(1, 4000)) for name in ("n1", "n2", "n3")]
    pair = [Workload(name, HALF, 1) for name in (A, B)]
    result = at(make_plan(views, pair, {(A, B): 1.0}, {}, {}, domains=near))
    assert {result[A][0].node, result[B][0].node} == {"n1", "n3"}


class World:
    """What a planner is asked with, step by step: its clock, who runs and who is expected."""

    def __init__(self) -> None:
        self.planner, self.now = GroupPlanner(), 0.0
        self.slots: dict[str, str] = {}
        self.declared = dict.fromkeys((A, B, C, D), "default/shop")
        self.peers = {A: {B: 10.0}, B: {A: 10.0, C: 1.0}, C: {D: 10.0, B: 1.0}, D: {C: 10.0}}
        self.demands: dict[str, Demand] = {}
        self.uses: dict[str, int] = {}
        self.nodes: tuple[NodeRow, ...] = ()
        self.terms: dict[str, NodeTerms] = {}

    def plans(self, specs=None, **replicas: int) -> dict[str, int]:
        """Planned replicas by workload's letter. replicas: that the API server tells of."""
        slots = [reservation(uid, home, milli=4000) for uid, home in self.slots.items()]
        workloads = {uid: f"default/Deployment/{uid[0]}" for uid in self.slots}
        known = ClusterTraffic(
            peers=self.peers,
            demands=self.demands,
            uses=self.uses,
            declared=self.declared,
            replicas={f"default/Deployment/{name}": n for name, n in replicas.items()},
        )
        admission = EVERY_NODE.after(node_facts(self.nodes), ())
        self.known = self.planner.plans(
            known,
            [view("n1", *slots), view("n2")],
            workloads,
            specs or {},
            self.now,
            admission=admission,
            terms=self.terms,
        )
        return {name[-1]: sum(count for _, count in slots) for name, slots in self.known.items()}


@pytest.fixture
def world() -> World:
    world = World()
    world.slots = {"a-0": "0", "b-0": "1", "c-0": "0", "d-0": "1"}
    assert world.plans(a=1, b=1, c=1, d=1) == {}
    return world


def test_where_nobody_is_expected_nothing_is_planned(world):
    assert world.plans(a=1, b=1, c=1, d=1) == {}


def test_what_was_scaled_to_nothing_is_expected_as_it_was(world):
    world.slots, world.declared, world.now = {}, {}, 10 * PEAK_S
    assert world.plans() == {"a": 1, "b": 1, "c": 1, "d": 1}
    assert world.known[A][0].place == world.known[B][0].place != world.known[C][0].place


def test_a_workload_that_was_not_seen_to_talk_has_a_slot_beside_those_of_its_group_that_talk_most():
    world = World()
    world.slots, world.declared = {"a-0": "1"}, dict.fromkeys((A, C, E), "default/shop")
    world.demands, world.peers = {E: Demand(cpu_milli=100)}, {A: {C: 10.0}, C: {A: 10.0}}
    world.plans(a=1, e=1)
    assert [place for place, _ in world.known[E]] == [NumaPlace("n1", 1)]
    world.declared[E] = "default/other"
    world.plans(a=1, e=1)
    assert E not in world.known, "of its own group nobody talks"


def test_a_slot_has_room_for_what_another_node_has_seen_its_workload_to_use():
    """It asks for 100m; of the CPUs beside its kin half are free."""
    world = World()
    world.slots, world.declared = {"a-0": "1"}, dict.fromkeys((A, C, E), "default/shop")
    world.demands, world.peers = {E: Demand(cpu_milli=100)}, {A: {C: 10.0}, C: {A: 10.0}}
    world.uses = {E: 6000}
    world.plans(a=1, e=1)
    assert NumaPlace("n1", 1) not in [place for place, _ in world.known[E]]


@pytest.mark.parametrize("stranger", ["default/Deployment/0", "default/Deployment/z"])
def test_who_talks_outside_its_group_alone_is_not_taken_for_silent(stranger):
    """Whichever of the two names comes first."""
    world = World()
    world.slots, world.declared = {"a-0": "1"}, dict.fromkeys((A, E), "default/shop")
    world.demands, world.peers = {E: Demand(cpu_milli=100)}, {A: {stranger: 10.0}, stranger: {A: 10.0}}
    world.plans(a=1, e=1)
    assert [place for place, _ in world.known[E]] == [NumaPlace("n1", 1)]


def test_one_that_names_no_group_is_not_planned_for_before_it_talks(world):
    world.slots, world.declared = {"a-0": "0", "b-0": "0"}, {A: "default/shop", B: "default/shop", E: ""}
    world.demands, world.peers = {E: Demand(cpu_milli=100)}, {A: {B: 10.0}, B: {A: 10.0}}
    assert world.plans(a=1, b=1, e=1) == {}


@pytest.mark.parametrize("pool", ["n1", "n2"])
def test_slots_are_where_the_pods_may_go(world, pool: str):
    """As the last of them said, where there are none."""
    world.nodes = tuple(NodeRow(name, labels={"pool": name}) for name in ("n1", "n2"))
    world.terms = dict.fromkeys((A, B, C, D), NodeTerms.of({"pool": pool}, None, None))
    assert world.plans(a=1, b=1, c=1, d=1) == {}
    world.slots, world.declared, world.terms, world.now = {}, {}, {}, 10 * PEAK_S
    assert world.plans() == {"a": 1, "b": 1, "c": 1, "d": 1}
    assert {place.node for slots in world.known.values() for place, _ in slots} == {pool}


def test_a_node_that_lost_its_label_has_no_slots_any_more(world):
    world.nodes = (NodeRow("n1"), NodeRow("n2", labels={"pool": "x"}))
    world.terms = dict.fromkeys((A, B, C, D), NodeTerms.of({"pool": "x"}, None, None))
    world.slots, world.declared, world.now = {}, {}, 10 * PEAK_S
    world.plans()
    world.nodes = (NodeRow("n1", labels={"pool": "x"}), NodeRow("n2"))
    world.plans()
    assert {place.node for slots in world.known.values() for place, _ in slots} == {"n1"}


def test_replicas_that_are_not_there_yet_are_expected(world):
    assert world.plans(a=2, b=1, c=1, d=1)["a"] == 2


def test_fewer_are_expected_some_time_after_there_are_fewer(world):
    world.plans(a=3, b=1, c=1, d=1)
    world.now += PEAK_S
    assert world.plans(a=1, b=1, c=1, d=1)["a"] == 3
    world.now += 1
    assert world.plans(a=1, b=1, c=1, d=1) == {}


def test_a_plan_is_kept_while_what_it_was_made_of_is(world):
    world.slots = {"a-0": "0", "d-0": "1"}
    world.plans(a=1, b=1, c=1, d=1)
    before = world.known
    assert before[B][0].place == NumaPlace("n1", 0)
    world.slots["x-0"] = "0"
    world.plans(a=1, b=1, c=1, d=1)
    assert world.known == before
    world.now += AGAIN_S + 1
    world.plans(a=1, b=1, c=1, d=1)
    assert world.known != before


def test_a_plan_is_made_anew_when_as_many_members_are_elsewhere(world):
    """As after a rolling update, which leaves as many of each workload as before."""
    world.slots = {"a-0": "0", "d-0": "1"}
    world.plans(a=1, b=1, c=1, d=1)
    assert world.known[B][0].place == NumaPlace("n1", 0)
    world.slots = {"a-1": "1", "d-1": "0"}
    world.plans(a=1, b=1, c=1, d=1)
    assert world.known[B][0].place == NumaPlace("n1", 1)


def test_priorities_settle_who_shares_a_numa_node():
    world = World()
    world.slots = {"a-0": "0", "b-0": "0", "c-0": "1", "d-0": "1"}
    world.plans(a=1, b=1, c=1, d=1)
    world.slots = {}
    world.plans({"default/shop": GroupSpec(priorities={B: 5, C: 5, A: 0, D: 0})})
    assert world.known[B][0].place == world.known[C][0].place


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """Two nodes on which a group was seen, that is gone."""
    for node in ("n1", "n2"):
        tell(cluster, node)
    return cluster


def newcomer(name: str, index: int = 0):
    row = replica(f"{name}-{index}", name, group="shop")
    return replace(row, containers=pod("p", cpu="4").containers, phase="Pending")


def known(**replicas: int) -> ClusterTraffic:
    peers = {A: {B: 10.0}, B: {A: 10.0, C: 1.0}, C: {D: 10.0, B: 1.0}, D: {C: 10.0}}
    result = Partition({name: Membership("default/shop", 1.0) for name in peers})
    counts = {f"default/Deployment/{name}": count for name, count in replicas.items()}
    return ClusterTraffic(peers=peers, declared=dict.fromkeys(peers, "default/shop"), found=result, replicas=counts)


def arrive(cluster: Cluster, name: str, index: int = 0) -> tuple[str, str]:
    """Where it is nominated to be, once it is bound to the node with the best score."""
    row = newcomer(name, index)
    rows = cluster.score(cluster.wanted(row), ["n1", "n2"]).rows
    best = max(rows, key=lambda entry: entry.score)
    assert sum(entry.score >= best.score - 5 for entry in rows) == 1, "kube-scheduler's own plugins could outvote it"
    (nomination,) = cluster.apply_pods(Changes(rows=(replace(row, node=best.node),)))
    return nomination.node, str(nomination.numa_nodes)


def test_newcomers_follow_the_plan_in_any_order(cluster: Cluster):
    """The first two hardly talk: without a plan the second would go beside the first."""
    tell(
        cluster, "n1", *(reservation(f"{name}-9", home, milli=4000) for name, home in zip("abcd", "0011", strict=True))
    )
    for name in "abcd":
        cluster.apply_pods(Changes(rows=(replace(newcomer(name, 9), node="n1", phase="Running"),)))
    cluster.learned(known(a=1, b=1, c=1, d=1))
    cluster.apply_pods(Changes(gone=tuple(f"{name}-9" for name in "abcd")))
    tell(cluster, "n1", generation=3)
    cluster.learned(known())
    homes = {name: arrive(cluster, name) for name in "bcad"}
    assert homes["a"] == homes["b"]
    assert homes["c"] == homes["d"]
    assert Counter(homes.values()).most_common(1)[0][1] == 2


def test_newcomers_are_planned_on_nodes_that_take_all_of_them(cluster: Cluster):
    """Both have CPU for the four that come again, but n1 takes three pods."""
    rows = tuple(replace(newcomer(name, 9), node="n1", phase="Running") for name in "abcd")
    nodes = tuple(NodeRow(name, allocatable=Allocatable(pods=most)) for name, most in (("n1", 3), ("n2", 110)))
    cluster.apply_nodes(Changes(rows=nodes, whole=True))
    tell(
        cluster, "n1", *(reservation(f"{name}-9", home, milli=4000) for name, home in zip("abcd", "0011", strict=True))
    )
    cluster.apply_pods(Changes(rows=rows))
    cluster.learned(known(a=1, b=1, c=1, d=1))
    cluster.apply_pods(Changes(gone=tuple(row.uid for row in rows)))
    tell(cluster, "n1", generation=3)
    cluster.learned(known())
    planned = Counter(
        slot.place.node for slots in cluster.plans.values() for slot in slots for _ in range(slot.replicas)
    )
    assert planned.total() == 4
    assert planned["n1"] <= 3


@pytest.mark.parametrize(("overhead", "most"), [(0, 4), (1, 3)])
def test_newcomers_are_planned_where_nodes_have_what_they_take_beside_their_containers(
    cluster: Cluster, overhead: int, most: int
):
    """As their RuntimeClass says. n1 has CPU for the containers of the four that come again, and n2 is smaller."""
    rows = [replace(newcomer(name, 9), node="n1", phase="Running", overhead=Demand(overhead)) for name in "abcd"]
    nodes = tuple(NodeRow(name, allocatable=Allocatable(cpu)) for name, cpu in (("n1", 16_000), ("n2", 8_500)))
    cluster.apply_nodes(Changes(rows=nodes, whole=True))
    tell(
        cluster, "n1", *(reservation(f"{name}-9", home, milli=4000) for name, home in zip("abcd", "0011", strict=True))
    )
    cluster.apply_pods(Changes(rows=tuple(rows)))
    cluster.learned(known(a=1, b=1, c=1, d=1))
    cluster.apply_pods(Changes(gone=tuple(row.uid for row in rows)))
    tell(cluster, "n1", generation=3)
    cluster.learned(known())
    planned = Counter(
        slot.place.node for slots in cluster.plans.values() for slot in slots for _ in range(slot.replicas)
    )
    assert planned.total() == 4
    assert planned["n1"] <= most
    assert (planned["n1"] == 4) is (most == 4)


def test_of_small_pods_that_take_much_beside_their_containers_as_many_are_planned_as_the_node_has_room_for():
    small = [Workload(A, Demand(cpu_milli=100), 10)]
    left = {"n1": Allocatable(1_000)}
    plan = make_plan([view("n1")], small, {}, {}, {}, left=left, overheads={A: (250, 0)})
    assert sum(count for _, count in plan.slots[A]) == 2


def test_a_planned_slot_without_room_is_passed_over(cluster: Cluster):
    cluster._nodes.plans = {A: (Vacancy(NumaPlace("n2", 1), 1),)}
    assert arrive(cluster, "a") == ("n2", "1")
    assert [str(row.kin.planned) for row in cluster.score(cluster.wanted(newcomer("a", 1)), ["n1", "n2"]).rows] == [
        "",
        "",
    ]
    full = reservation("x", "1", milli=5000)
    cluster._nodes.plans = {B: (Vacancy(NumaPlace("n1", 1), 1), Vacancy(NumaPlace("n1", 0), 1))}
    tell(cluster, "n1", full, generation=2)
    assert arrive(cluster, "b") == ("n1", "0")


def test_a_planned_slot_is_passed_over_for_want_of_memory_too(cluster: Cluster):
    hungry = replace(newcomer("a"), containers=pod("p", cpu="1", memory="3Gi").containers)
    tell(cluster, "n1", replace(reservation("x", "1"), demand=Demand(cpu_milli=0, memory=14 * GIB)), generation=2)
    cluster._nodes.plans = {A: (Vacancy(NumaPlace("n1", 1), 1), Vacancy(NumaPlace("n2", 0), 1))}
    rows = cluster.score(cluster.wanted(hungry), ["n1", "n2"]).rows
    assert {row.node: str(row.kin.planned) for row in rows} == {"n1": "", "n2": "0"}


def test_a_planned_slot_is_passed_over_for_want_of_a_device_too(cluster: Cluster):
    row = newcomer("a")
    asking = replace(row, containers=tuple(replace(each, limits={"example.com/card": "1"}) for each in row.containers))
    for node in ("n1", "n2"):
        tell(cluster, node, generation=2, live=Live(devices={("example.com/card", 1): 1}))
    cluster._nodes.plans = {A: (Vacancy(NumaPlace("n1", 1), 1), Vacancy(NumaPlace("n2", 0), 1))}
    rows = cluster.score(cluster.wanted(asking), ["n1", "n2"]).rows
    assert {row.node: str(row.kin.planned) for row in rows} == {"n1": "", "n2": "0"}


def test_a_slot_of_a_plan_that_its_kin_have_left_does_not_lead(cluster: Cluster):
    """One replica is expected on n2, as when there were two for a moment. All kin are on n1, with room."""
    tell(cluster, "n1", reservation("b-9", "0", milli=4000), generation=2)
    cluster.apply_pods(Changes(rows=(replace(newcomer("b", 9), node="n1", phase="Running"),)))
    cluster._nodes.known = known(b=1)
    cluster._nodes.plans = {A: (Vacancy(NumaPlace("n2", 1), 1),)}
    assert arrive(cluster, "a") == ("n1", "0")


def test_a_slot_leads_over_kin_that_are_there_already_where_more_of_them_are_planned_beside_it(cluster: Cluster):
    tell(cluster, "n1", reservation("c-9", "0", milli=4000), generation=2)
    cluster.apply_pods(Changes(rows=(replace(newcomer("c", 9), node="n1", phase="Running"),)))
    cluster._nodes.known = known(c=1)
    slot = (Vacancy(NumaPlace("n2", 1), 1),)
    cluster._nodes.plans = {A: slot, B: slot}
    assert arrive(cluster, "b") == ("n2", "1")


def test_a_nomination_on_another_node_knows_nothing_of_the_slot(cluster: Cluster):
    cluster._nodes.plans = {A: (Vacancy(NumaPlace("n2", 1), 1),)}
    (nomination,) = cluster.apply_pods(Changes(rows=(replace(newcomer("a"), node="n1"),)))
    assert (nomination.kin.planned, nomination.kin.elsewhere) == (NumaSet(), 0.0)
