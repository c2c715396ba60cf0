"""What of the cluster counts when groups that are cut are planned together again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.cluster import Cluster
from extender.planning.regrouping import NOT_SEARCHED, WhyApart
from extender.state.group_spec import GroupSpec
from extender.state.pods import Allocatable, Changes, ContainerRow, NodeRow, OwnerRow, PodRow
from extender.traffic.known import ClusterTraffic
from extender.traffic.memberships import Membership, Partition
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.node_terms import NodeTerms
from numakin.placement.state.occupancy import Reservation
from tests.clock import Clock
from tests.extender.machines import TAINTED, pod
from tests.extender.told import tell

MIB = 1 << 20

DEPLOYMENT = OwnerRow("Deployment", "web")


def row(uid: str, node: str, *, owner: OwnerRow | None = DEPLOYMENT, cpu: str = "1", **more) -> PodRow:
    fields = {key: more.pop(key) for key in ("own_terms", "leaving", "containers", "phase") if key in more}
    made = pod(uid, cpu=cpu, memory="1Mi", node=node, **more)
    return replace(made, owner=owner, **{"phase": "Running", **fields})


def there(uid: str, numa_node: int, *, group: str = "default/shop", milli: int = 1000) -> Reservation:
    return Reservation(uid, uid, group, NumaSet.of((numa_node,)), Demand(milli, MIB))


def searched(cluster: Cluster, *rows: PodRow):
    cluster.apply_pods(Changes(rows=rows))
    cluster.regroup()
    return cluster.regroupings


ROWS = [row("w1", "a"), row("w2", "a"), row("w3", "a"), row("w4", "b")]


@pytest.fixture
def apart(cluster: Cluster) -> Cluster:
    """shop: three on NUMA node 0 of a, which has 5 CPUs left there, one on b."""
    tell(cluster, "a", there("w1", 0), there("w2", 0), there("w3", 0))
    tell(cluster, "b", there("w4", 1))
    return cluster


def test_a_group_that_could_be_whole_is_found(apart: Cluster, clock: Clock):
    assert apart.regroupings is NOT_SEARCHED
    found = searched(apart, *ROWS)
    plan = found.plans["default/shop"]
    assert [(step.name, step.origin.node, step.to.node, step.to.numa_node) for step in plan.steps] == [
        ("w4", "b", "a", 0)
    ]
    assert (plan.whole, found.apart, found.at) == (True, {}, clock.now)


def test_a_group_with_a_member_that_is_reported_on_no_numa_node_is_left_and_no_other_with_it(apart: Cluster):
    nowhere = replace(there("x1", 0, group="default/x"), numa_nodes=NumaSet())
    tell(apart, "a", *(there(uid, 0) for uid in ("w1", "w2", "w3")), nowhere, generation=2)
    tell(apart, "b", there("w4", 1), there("x2", 1, group="default/x"), generation=2)
    found = searched(apart, *ROWS, row("x1", "a", group="x"), row("x2", "b", group="x"))
    assert [*found.plans] == ["default/shop"]
    assert found.apart["default/x"].why is WhyApart.SETTLING


def test_a_group_that_is_whole_is_none_of_them(apart: Cluster):
    tell(apart, "b", generation=2)
    tell(apart, "a", there("w1", 0), there("w2", 0), there("w3", 0), there("w4", 0), generation=2)
    found = searched(apart, *ROWS[:3], row("w4", "a"))
    assert (found.plans, found.apart) == ({}, {})


@pytest.mark.parametrize(
    ("stray", "why"),
    [
        (row("w4", "b", owner=None), WhyApart.NO_PLACE),
        (row("w4", "b", owner=OwnerRow("DaemonSet", "web")), WhyApart.NO_PLACE),
        (row("w4", "b", owner=OwnerRow("Job", "web")), WhyApart.NO_PLACE),
        (row("w4", "b", own_terms=True), WhyApart.NO_PLACE),
        (row("w4", "b", leaving=True), WhyApart.SETTLING),
    ],
    ids=["no controller", "DaemonSet", "Job", "terms of its own", "leaving"],
)
def test_a_pod_stays_that_would_not_come_anew_elsewhere(apart: Cluster, stray: PodRow, why: WhyApart):
    """The others could come to it, but that is three restarts for what one should bring."""
    tell(apart, "b", there("w4", 1), Reservation("x", "other", "", NumaSet.of((1,)), Demand(6500)), generation=2)
    found = searched(apart, *ROWS[:3], stray)
    assert {group: each.why for group, each in found.apart.items()} == {"default/shop": why}


def test_a_group_of_which_no_pod_may_move_says_so(apart: Cluster):
    found = searched(apart, *(replace(each, own_terms=True) for each in ROWS))
    assert found.apart["default/shop"].why is WhyApart.FIXED


def test_a_group_with_pods_that_wait_for_a_node_is_left_alone(apart: Cluster):
    found = searched(apart, *ROWS, row("w5", ""))
    assert found.apart["default/shop"].why is WhyApart.SETTLING


def test_no_others_are_sent_to_a_pod_that_is_about_to_run(apart: Cluster):
    """It is the one to move, once it does."""
    found = searched(apart, *ROWS[:3], row("w4", "b", phase="Pending"))
    assert (found.plans, found.apart["default/shop"].why) == ({}, WhyApart.SETTLING)
    assert [step.name for step in searched(apart, ROWS[3]).plans["default/shop"].steps] == ["w4"]


def test_a_pod_that_its_node_has_not_reported_yet_is_not_judged(apart: Cluster):
    tell(apart, "b", generation=2)
    apart.apply_pods(Changes(rows=(*ROWS[:3], row("w4", ""))))
    want = apart.wanted(row("w4", ""))
    assert want is not None
    apart.score(want, ["b"])
    apart.apply_pods(Changes(rows=(row("w4", "b"),)))
    found = searched(apart)
    assert [each.why for each in found.apart.values()] in ([], [WhyApart.SETTLING])
    assert found.plans == {}


def test_nobody_is_sent_to_a_node_that_takes_no_pods(apart: Cluster):
    apart.apply_nodes(Changes(rows=(NodeRow("a", taints=TAINTED), NodeRow("b")), whole=True))
    plan = searched(apart, *ROWS).plans["default/shop"]
    assert {step.to.node for step in plan.steps} == {"b"}


def test_nobody_is_sent_to_a_node_that_takes_no_pods_more(apart: Cluster):
    limited = NodeRow("a", allocatable=Allocatable(pods=5))
    apart.apply_nodes(Changes(rows=(limited, NodeRow("b")), whole=True))
    one, two = (pod(name, group="", node="a") for name in ("plain", "another"))
    assert searched(apart, *ROWS, one).plans["default/shop"].restarts == 1
    plan = searched(apart, two).plans["default/shop"]
    assert {step.to.node for step in plan.steps} == {"b"}


@pytest.mark.parametrize(("left", "to"), [(1_025, "a"), (1_024, "b")])
def test_nobody_is_sent_where_too_little_is_left_for_what_pods_take_beside_their_containers(
    apart: Cluster, left: int, to: str
):
    limited = NodeRow("a", allocatable=Allocatable(3 * 1_025 + left))
    apart.apply_nodes(Changes(rows=(limited, NodeRow("b")), whole=True))
    plan = searched(apart, *(replace(each, overhead=Demand(25)) for each in ROWS)).plans["default/shop"]
    assert {step.to.node for step in plan.steps} == {to}


@pytest.mark.parametrize(("pool", "to"), [({"a", "b"}, "a"), ({"b"}, "b")], ids=["of both", "of b"])
def test_pods_are_gathered_where_their_terms_of_nodes_let_them(apart: Cluster, pool: set[str], to: str):
    labels = {node: {"pool": "fast"} if node in pool else {} for node in ("a", "b")}
    apart.apply_nodes(Changes(rows=tuple(NodeRow(node, labels=labels[node]) for node in labels), whole=True))
    terms = NodeTerms.of({"pool": "fast"}, None, None)
    plan = searched(apart, *(replace(each, terms=terms) for each in ROWS)).plans["default/shop"]
    assert {step.to.node for step in plan.steps} == {to}


def test_room_that_is_held_for_a_group_that_waits_is_not_taken(apart: Cluster, clock: Clock):
    """cart's five take what is left on NUMA node 0 of a, and NUMA node 1; b's are full."""
    full = [
        Reservation(f"x{at}", "other", "", NumaSet.of((at,)), Demand(milli)) for at, milli in ((0, 8000), (1, 7000))
    ]
    tell(apart, "b", there("w4", 1), *full, generation=2)
    found = searched(apart, *ROWS)
    assert found.plans["default/shop"].restarts == 1
    waiting = [replace(pod(f"c{at}", group="cart", cpu="1", memory="1Mi")) for at in range(13)]
    apart.apply_pods(Changes(rows=tuple(waiting)))
    apart.reserve()
    clock.now += 3
    apart.received("a"), apart.received("b")
    apart.reserve()
    assert searched(apart).plans == {}


def test_exclusive_cpus_have_to_be_free_where_a_pod_is_to_come(apart: Cluster):
    """Four of a's first NUMA node are others' own, and the shared pool needs the rest."""
    own = [row(f"w{at}", "a" if at < 4 else "b", cpus="exclusive", cpu="2") for at in (1, 2, 3, 4)]
    alone = (ContainerRow("main", {"cpu": "2", "memory": "1Mi"}, {"cpu": "2", "memory": "1Mi"}),)
    found = searched(apart, *(replace(each, containers=alone) for each in own))
    assert found.plans["default/shop"].restarts == 1
    quota = Reservation("x", "other", "", NumaSet.of((0,)), Demand(3500))
    tell(apart, "a", there("w1", 0), there("w2", 0), there("w3", 0), quota, generation=2)
    after = searched(apart)
    steps = after.plans["default/shop"].steps if after.plans else ()
    assert all((step.to.node, step.to.numa_node) != ("a", 0) for step in steps)


def test_traffic_tells_who_is_worth_a_restart(apart: Cluster):
    rows = [*ROWS[:3], row("w4", "b", owner=OwnerRow("Deployment", "log"))]
    names = {"default/Deployment/web": "default/shop", "default/Deployment/log": "default/shop"}

    def known(weight: float) -> ClusterTraffic:
        web, log = names
        peers = {web: {web: 10.0, log: weight}, log: {web: weight}}
        return ClusterTraffic(peers=peers, declared=names)

    apart.learned(known(0.01))
    assert searched(apart, *rows).plans == {}
    apart.learned(known(10.0))
    assert searched(apart).plans["default/shop"].restarts == 1
    apart.set_group_specs({"default/shop": GroupSpec(priorities={"default/Deployment/log": 0})})
    assert searched(apart).plans == {}


def test_a_group_that_was_found_by_traffic_is_planned_too(cluster: Cluster):
    tell(cluster, "a", *(there(f"w{at}", 0, group="") for at in (1, 2, 3)))
    tell(cluster, "b", there("w4", 1, group=""))
    web = "default/Deployment/web"
    found = Partition(members={web: Membership("default/auto-web", 1.0)})
    cluster.learned(ClusterTraffic(peers={web: {web: 5.0}}, found=found))
    assert searched(
        cluster, *(replace(each, annotations={"group.numakin.io": "auto"}) for each in ROWS)
    ).plans.keys() == {"default/auto-web"}


def test_what_is_tried_out_finds_nothing_and_changes_nothing(apart: Cluster):
    before = searched(apart, *ROWS)
    draft = apart.draft()
    draft.regroup()
    assert draft.regroupings.plans == before.plans
    assert apart.regroupings is before
