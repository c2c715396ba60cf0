"""Room for who comes in the place of an evicted pod: it is there before, the newcomer is scored to it, and it is given
back.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.cluster import Cluster
from extender.planning.regroup_steps import Fate, fate
from extender.planning.regrouping import WhyApart
from extender.state.pods import Allocatable, Changes, NodeRow, OwnerRow, PodRow
from extender.state.regroup_record import EvictionStep
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.node_terms import NodeTerms
from numakin.placement.state.occupancy import Reservation
from tests.clock import Clock
from tests.extender.machines import TAINTED, pod
from tests.extender.running import GIB, reservation
from tests.extender.told import reservations_of, tell

MIB = 1 << 20
GROUP, WEB = "default/shop", OwnerRow("Deployment", "web")
SAYS_EVICT = {"regroup": "evict"}


def member(uid: str, node: str = "", *, cpu: str = "1", owner: OwnerRow | None = WEB, group="shop", **more) -> PodRow:
    """Ready once it runs."""
    fields = {key: more.pop(key) for key in ("own_terms", "leaving", "priority") if key in more}
    row = pod(uid, node=node, group=group, cpu=cpu, memory="1Mi", **{**SAYS_EVICT, **more})
    return replace(row, owner=owner, ready=bool(node), phase="Running" if node else "Pending", **fields)


def there(uid: str, numa_node: int, group: str = GROUP) -> Reservation:
    return reservation(uid, str(numa_node), group=group)


def applied(cluster: Cluster, *rows: PodRow) -> None:
    cluster.apply_pods(Changes(rows=rows))


@pytest.fixture
def cut(cluster: Cluster) -> Cluster:
    """shop: four pods on a's NUMA node 0, one on b's NUMA node 1. b has all CPUs but one taken on its NUMA node 0."""
    tell(cluster, "a", *(there(f"web-{at}", 0) for at in range(4)))
    tell(cluster, "b", there("web-4", 1), Reservation("x", "x", "", NumaSet.of((0,)), Demand(7000)))
    cluster.apply_nodes(Changes(rows=(NodeRow("a"), NodeRow("b")), whole=True))
    rows = [member(f"web-{at}", "a") for at in range(4)]
    cluster.apply_pods(Changes(rows=(*rows, member("web-4", "b")), whole=True))
    return cluster


def step(uid: str = "web-4", node: str = "a", numa_node: int = 0, there: int = 4, bound: int = 5) -> EvictionStep:
    return EvictionStep(uid, uid, "default/Deployment/web", node, numa_node, there, bound, "me")


def held(cluster: Cluster, node: str) -> dict[int, int]:
    """Millicores that are held for the group, by NUMA node."""
    view = cluster.view(node)
    assert view is not None
    entries = view.held.get(GROUP, ())
    return {entry.numa_nodes.lowest: entry.demand.cpu_milli for entry in entries}


def leads(cluster: Cluster, row: PodRow, *names: str) -> str:
    want = cluster.wanted(row)
    assert want is not None
    result = {scored.node: scored.score for scored in cluster.score(want, names or ("a", "b")).rows}
    return max(result, key=result.__getitem__) if any(result.values()) else ""


def evicted(cluster: Cluster, uid: str = "web-4", node: str = "b", newcomer: str = "web-5") -> PodRow:
    """It is being deleted, and its controller has made another one."""
    applied(cluster, replace(member(uid, node), leaving=True))
    applied(cluster, row := member(newcomer))
    return row


STALE = {
    "one of it is elsewhere now": lambda cut: applied(cut, replace(member("web-3"), node="b")),
    "one more has come": lambda cut: tell(cut, "b", there("web-4", 1), there("web-5", 1)),
    "one is being deleted": lambda cut: applied(cut, member("web-3", "a", leaving=True)),
    "one is gone": lambda cut: cut.apply_pods(Changes(gone=("web-3",))),
    "a node of it takes no pods any more": lambda cut: cut.apply_nodes(Changes(rows=(NodeRow("b", taints=TAINTED),))),
}


@pytest.mark.parametrize("happens", STALE.values(), ids=STALE)
def test_a_plan_is_carried_out_only_while_members_and_nodes_are_as_it_was_made_for(cut: Cluster, happens):
    cut.regroup()
    assert [step.uid for step in cut.regroupings.plans[GROUP].steps] == ["web-4"]
    happens(cut)
    assert cut.regroupings.plans == {}
    assert cut.regroupings.apart[GROUP].why is WhyApart.SETTLING


def test_a_plan_that_was_made_while_a_node_was_closed_is_none_once_it_is_open(cut: Cluster):
    """It gathers on the other one, with more restarts."""
    tell(cut, "b", there("web-4", 1), there("web-5", 1))
    applied(cut, member("web-5", "b"))
    cut.apply_nodes(Changes(rows=(NodeRow("a", taints=TAINTED),)))
    cut.regroup()
    assert {step.to.node for step in cut.regroupings.plans[GROUP].steps} == {"b"}
    cut.apply_nodes(Changes(rows=(NodeRow("a"),)))
    assert cut.regroupings.plans == {}


def test_room_is_held_before_the_pod_is_evicted_and_another_group_does_not_take_it(cut: Cluster):
    assert cut.promises.keep(GROUP, step()) == ""
    assert held(cut, "a") == {0: 1000}
    applied(cut, stranger := member("stranger", group="other", cpu="4"))
    leads(cut, stranger, "a")
    assert reservations_of(cut, "a")["stranger"] == "1"


def test_a_node_that_takes_no_more_pods_has_no_room(cut: Cluster):
    cut.apply_nodes(Changes(rows=(NodeRow("a", allocatable=Allocatable(pods=5)),)))
    assert [cut.promises.keep(GROUP, step()) for _ in range(2)] == ["", ""], "its own place does not count"
    applied(cut, pod("plain", group="", node="a"))
    assert cut.promises.keep(GROUP, step()) == "node a takes no more pods"


@pytest.mark.parametrize("most", [Allocatable(cpu=5000), Allocatable(memory=4 * GIB + MIB)], ids=["CPU", "memory"])
def test_a_node_that_has_less_left_to_give_than_its_numa_nodes_have_room_for_has_no_room(cut: Cluster, most):
    """Kubelets keep some of it for the system. Four members are there, and the fifth is what it has left."""
    cut.apply_nodes(Changes(rows=(NodeRow("a", allocatable=most),)))
    assert [cut.promises.keep(GROUP, step()) for _ in range(2)] == ["", ""], "its own room does not count"
    less = Allocatable(*(each - 1 for each in most))
    cut.apply_nodes(Changes(rows=(NodeRow("a", allocatable=less),)))
    assert cut.promises.keep(GROUP, step()) == "node a has too little CPU or memory left to give"


def test_a_node_that_has_too_little_left_for_what_the_pod_takes_beside_its_containers_has_no_room(cut: Cluster):
    """As its RuntimeClass says: it counts against the node alone."""
    cut.apply_nodes(Changes(rows=(NodeRow("a", allocatable=Allocatable(5_100)),)))
    for overhead, why in ((100, ""), (101, "node a has too little CPU or memory left to give")):
        applied(cut, replace(member("web-4", "b"), overhead=Demand(overhead)))
        assert cut.promises.keep(GROUP, step()) == why


def test_the_newcomer_is_scored_to_the_room_and_takes_it(cut: Cluster):
    cut.promises.keep(GROUP, step())
    row = evicted(cut)
    assert leads(cut, row) == "a"
    assert held(cut, "a") == {}, "it is counted once: as the newcomer's"
    (nomination,) = cut.apply_pods(Changes(rows=(replace(row, node="a"),)))
    assert nomination.numa_nodes == NumaSet.of((0,))
    assert held(cut, "a") == {}
    assert fate(step(), cut.promises.seen(step()), 0, 0) is Fate.CAME


def test_the_newcomer_is_scored_to_the_room_though_more_of_its_kin_are_elsewhere(cut: Cluster):
    """As where the whole group goes to a third node: the first of it has no kin there."""
    tell(cut, "c")
    cut.apply_nodes(Changes(rows=(NodeRow("c"),)))
    first = step("web-0", "c", 1, there=0)
    assert cut.promises.keep(GROUP, first) == ""
    row = evicted(cut, "web-0", "a")
    assert leads(cut, row, "a", "b", "c") == "c"
    assert reservations_of(cut, "c")["web-5"] == "1"


def test_planning_for_pods_that_wait_leaves_the_promise_alone(cut: Cluster, clock: Clock):
    cut.promises.keep(GROUP, step())
    cut.reserve()
    assert held(cut, "a") == {0: 1000}
    row = evicted(cut)
    for _ in range(5):
        cut.reserve()
        clock.now += 1
    assert held(cut, "a") == {0: 1000}
    assert held(cut, "b") == {}
    assert leads(cut, row) == "a"


def test_the_room_is_given_back_when_the_step_is_over(cut: Cluster):
    cut.promises.keep(GROUP, step())
    cut.promises.withdraw(GROUP)
    assert held(cut, "a") == {}
    cut.reserve()
    assert held(cut, "a") == {}


def test_the_room_outlives_a_newcomer_that_is_deleted_before_it_is_bound(cut: Cluster):
    cut.promises.keep(GROUP, step())
    evicted(cut)
    cut.apply_pods(Changes(gone=("web-5",)))
    cut.promises.keep(GROUP, step())
    assert held(cut, "a") == {0: 1000}
    applied(cut, row := member("web-6"))
    assert leads(cut, row) == "a"


def test_an_extender_that_starts_in_the_middle_holds_the_room_for_the_newcomer(cut: Cluster):
    cut.apply_pods(Changes(gone=("web-4",)))
    tell(cut, "b", generation=2)
    assert cut.promises.keep(GROUP, step()) == ""
    assert held(cut, "a") == {0: 1000}
    applied(cut, row := member("web-5"))
    assert leads(cut, row) == "a"


def test_a_pod_of_higher_priority_takes_the_room(cut: Cluster):
    cut.promises.keep(GROUP, step())
    applied(cut, urgent := member("urgent", group="other", cpu="4", priority=1000))
    leads(cut, urgent, "a")
    tell(cut, "c", Reservation("x", "x", "", NumaSet.of((1,)), Demand(8000)))
    assert reservations_of(cut, "a")["urgent"] in "01"
    urgent_alone = member("urgent-2", group="other", cpu="4", priority=1000)
    applied(cut, urgent_alone)
    assert leads(cut, urgent_alone, "a") == "a"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"node": "b", "numa_node": 0}, "NUMA node 0 of b has no room for it now"),
        ({"node": "gone"}, "node gone takes no new pods now"),
        ({"node": "a", "numa_node": 7}, "NUMA node 7 of a has no room for it now"),
    ],
)
def test_what_is_not_free_is_not_promised(cut: Cluster, change, why):
    applied(cut, member("web-4", "b", cpu="2"))
    assert cut.promises.keep(GROUP, step(**change)) == why
    assert held(cut, "a") == held(cut, "b") == {}


def test_a_cordoned_node_is_not_promised(cut: Cluster):
    cut.apply_nodes(Changes(rows=(NodeRow("a", taints=TAINTED),)))
    assert cut.promises.keep(GROUP, step()) == "node a takes no new pods now"


def test_a_node_is_promised_to_whose_terms_admit_it(cut: Cluster):
    pool = NodeTerms.of({"pool": "fast"}, None, [{"key": "dedicated", "operator": "Exists"}])
    applied(cut, replace(member("web-4", "b"), terms=pool))
    assert cut.promises.keep(GROUP, step()) == "node a takes no new pods now"
    cut.apply_nodes(Changes(rows=(NodeRow("a", labels={"pool": "fast"}, taints=TAINTED),)))
    assert cut.promises.keep(GROUP, step()) == ""


LOST = {
    "its node is closed": (
        lambda cut: cut.apply_nodes(Changes(rows=(NodeRow("c", taints=TAINTED),))),
        "node c takes no new pods now",
    ),
    "its node is gone": (lambda cut: cut.apply_nodes(Changes(gone=("c",))), "node c takes no new pods now"),
    "another pod is there": (
        lambda cut: tell(cut, "c", Reservation("x", "x", "", NumaSet.of((1,)), Demand(8000))),
        "NUMA node 1 of c has no room for it now",
    ),
}


@pytest.mark.parametrize("case", LOST)
def test_room_that_is_held_is_looked_at_again_until_the_pod_is_evicted(cut: Cluster, case):
    """A budget may refuse the eviction for a minute."""
    happens, why = LOST[case]
    tell(cut, "c", Reservation("x", "x", "", NumaSet.of((0,)), Demand(8000)))
    cut.apply_nodes(Changes(rows=(NodeRow("c"),)))
    first = step("web-0", "c", 1, there=0)
    assert cut.promises.keep(GROUP, first) == cut.promises.keep(GROUP, first) == ""
    assert held(cut, "c") == {1: 1000}
    happens(cut)
    assert cut.promises.keep(GROUP, first) == why
    evicted(cut, "web-0", "a")
    assert cut.promises.keep(GROUP, first) == "", "who comes needs a place all the more"


OBSTACLES = {
    "all is well": ({}, ""),
    "no consent": ({"regroup": "never"}, "its annotation regroup.numakin.io does not say evict"),
    "no controller": ({"owner": None}, "no controller makes another one in its place"),
    "a job": ({"owner": OwnerRow("Job", "web")}, "no controller makes another one in its place"),
    "its own terms": ({"own_terms": True}, "it says by itself where it may go"),
    "alone": ({"owner": OwnerRow("Deployment", "db")}, "no other pod of its workload is ready"),
    "alone, and it may": ({"owner": OwnerRow("Deployment", "db"), "regroup": "evict-alone"}, ""),
    "leaving": ({"leaving": True}, "it is not there any more"),
    "another group": ({"group": "other"}, "it does not name the group"),
}


@pytest.mark.parametrize("case", OBSTACLES)
def test_a_pod_is_evicted_only_where_that_costs_a_restart_and_no_more(cut: Cluster, case):
    more, why = OBSTACLES[case]
    applied(cut, member("web-4", "b", **more))
    assert cut.promises.obstacle(GROUP, "web-4", "b").startswith(why)
    assert bool(cut.promises.obstacle(GROUP, "web-4", "b")) == bool(why)


def test_no_pod_is_evicted_while_another_of_its_group_comes_or_goes(cut: Cluster):
    applied(cut, member("web-9"))
    assert cut.promises.obstacle(GROUP, "web-4") == "pods of its group wait for a node"
    cut.apply_pods(Changes(gone=("web-9",)))
    assert cut.promises.obstacle(GROUP, "web-4") == ""
    applied(cut, replace(member("web-1", "a"), leaving=True))
    assert cut.promises.obstacle(GROUP, "web-4") == "a pod of its group is being deleted"


def test_no_pod_is_evicted_before_who_came_in_the_place_of_another_is_ready(cut: Cluster):
    """Else all but one of the replicas would be starting at a time, where that takes a while."""
    applied(cut, starting := replace(member("web-1", "a"), ready=False))
    assert cut.promises.obstacle(GROUP, "web-4") == "another pod of its group is not ready"
    applied(cut, replace(starting, ready=True))
    assert cut.promises.obstacle(GROUP, "web-4") == ""
    applied(cut, replace(member("web-4", "b"), ready=False))
    assert cut.promises.obstacle(GROUP, "web-4") == "", "itself is no obstacle"


def test_a_pod_that_has_gone_elsewhere_meanwhile_is_left_alone(cut: Cluster):
    assert cut.promises.obstacle(GROUP, "web-4", "a") == "it is not there any more"


def test_no_pod_is_evicted_beside_one_that_is_not_ready(cut: Cluster):
    applied(cut, *(replace(member(f"web-{at}", "a"), ready=False) for at in range(4)))
    assert cut.promises.obstacle(GROUP, "web-4") == "no other pod of its workload is ready"


def test_who_comes_elsewhere_is_seen_by_how_many_are_where(cut: Cluster):
    evicted(cut)
    assert fate(step(), cut.promises.seen(step()), 0, 0) is Fate.AWAITED
    applied(cut, member("web-5", "b"))
    assert fate(step(), cut.promises.seen(step()), 0, 0) is Fate.ELSEWHERE
