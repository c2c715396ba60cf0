"""Room is held for groups whose pods wait, from the moment that they are there until they have come, and harms nobody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import inf

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from extender.cluster import Cluster
from extender.scoring.predict import taken_demand
from extender.scoring.waiting_groups import AGAIN_S, PlannedGroups, WaitingGroups
from extender.settings import Settings
from extender.state.columns.free_room import NumaPlace
from extender.state.node_view import NodeView
from extender.state.pod_terms import HOST, DomainTerm, PodSelector, PodTerms
from extender.state.pods import Allocatable, Changes, NodeRow, OwnerRow, PodRow
from extender.state.told_groups import DEPLOYMENTS, ToldReplicas, ToldRow
from extender.traffic.known import ClusterTraffic
from extender.views.plan import plan
from numakin.placement.decide.memory import RESERVE
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.live_usage import Live
from numakin.placement.model.node_terms import NO_TERMS, NodeTerms, Taint
from numakin.placement.model.topology import Machine
from numakin.placement.plan.problem import free_room
from numakin.placement.state.occupancy import Occupancy, Reservation
from tests import examples
from tests.clock import Clock
from tests.extender.machines import GIB, TAINTED, pod
from tests.extender.running import machine, reservation
from tests.extender.told import SETTLED_S, asked, other, reservations_of, tell

HOLD_S = 60.0


def of_group(group: str, count: int, *, cpu: str = "1", first: int = 0, **more) -> list[PodRow]:
    fields = {key: more.pop(key) for key in ("priority", "gated", "own_terms") if key in more}
    rows = [pod(f"{group}-{at}", group=group, cpu=cpu, memory="1Mi", **more) for at in range(first, first + count)]
    return [replace(row, **fields) for row in rows]


def created(cluster: Cluster, clock: Clock, *rows: PodRow) -> None:
    """All are there, and have been for a while."""
    cluster.apply_pods(Changes(rows=rows))
    cluster.reserve()
    clock.now += SETTLED_S
    for node in ("a", "b", "c"):
        cluster.received(node)
    cluster.reserve()


def held(cluster: Cluster, node: str) -> dict[str, str]:
    """By group, the NUMA nodes where something is held, with its millicores."""
    view = cluster.view(node)
    assert view is not None
    return {
        group: ", ".join(f"{entry.numa_nodes}: {entry.demand.cpu_milli}" for entry in there)
        for group, there in view.held.items()
        if there
    }


@pytest.fixture
def nodes(cluster: Cluster) -> Cluster:
    """a: 8 and 6 CPUs free. b: 8 and 3."""
    tell(cluster, "a", other(1, 2000))
    tell(cluster, "b", other(1, 5000))
    return cluster


def test_groups_that_come_mixed_are_whole_each(nodes: Cluster, clock: Clock):
    groups = {"big": of_group("big", 8), "middle": of_group("middle", 6), "small": of_group("small", 6, cpu="500m")}
    rows = [row for six in zip(*(group[:6] for group in groups.values()), strict=True) for row in six]
    rows += groups["big"][6:]
    created(nodes, clock, *rows)
    for row in rows:
        asked(nodes, row)
    there = {node: Counter(reservations_of(nodes, node).items()) for node in ("a", "b")}
    for group in groups:
        homes = {(node, home) for node, pods in there.items() for key, home in pods if key.startswith(f"{group}-")}
        assert len(homes) == 1, group


def test_another_groups_pod_does_not_take_what_is_held(nodes: Cluster, clock: Clock):
    created(nodes, clock, *of_group("shop", 6))
    assert held(nodes, "a") == {"default/shop": "1: 6000"}
    stranger = pod("stranger", group="other", cpu="5", memory="1Mi")
    created(nodes, clock, stranger)
    asked(nodes, stranger, "a")
    assert reservations_of(nodes, "a")["stranger"] == "0"


def test_what_is_left_of_a_hold_counts_for_the_very_next_question(nodes: Cluster, clock: Clock):
    rows, stranger = of_group("shop", 6), pod("stranger", group="other", cpu="2", memory="1Mi")
    created(nodes, clock, *rows, stranger)
    for row, before in zip(rows, (None, *rows), strict=False):
        if before is not None:
            nodes.apply_pods(Changes(rows=(replace(before, node="a"),)))
        assert asked(nodes, row, "a") == "a"
        asked(nodes, stranger, "a")
        assert reservations_of(nodes, "a")["stranger"] == "0"


def test_each_member_that_comes_takes_its_part_of_what_is_held(nodes: Cluster, clock: Clock):
    rows = of_group("shop", 6)
    created(nodes, clock, *rows)
    assert asked(nodes, rows[3]) == "a"
    assert held(nodes, "a") == {"default/shop": "1: 5000"}
    (nomination,) = nodes.apply_pods(Changes(rows=(replace(rows[3], node="a"),)))
    assert (nomination.numa_nodes, held(nodes, "a")) == (NumaSet.of((1,)), {"default/shop": "1: 5000"})
    for row in rows:
        asked(nodes, row)
        nodes.apply_pods(Changes(rows=(replace(row, node="a"),)))
    assert held(nodes, "a") == {}


def test_a_plan_stands_while_members_are_bound_where_they_were_planned(nodes: Cluster, clock: Clock):
    rows = of_group("shop", 6)
    created(nodes, clock, *rows)
    assert set(held(nodes, "a")) == {"default/shop"}
    there, astray = replace(rows[0], node="a"), replace(rows[1], node="b")
    assert not nodes.replans(Changes(rows=(there, pod("plain", group=""))))
    nodes.apply_pods(Changes(rows=(there,)))
    assert not nodes.replans(Changes(rows=(replace(there, phase="Running"),)))
    for row in (astray, replace(there, leaving=True), *of_group("other", 1)):
        assert nodes.replans(Changes(rows=(there, row)))
    assert nodes.replans(Changes(rows=(there,), whole=True))


def test_a_member_that_is_bound_before_it_was_planned_makes_a_plan_anew(nodes: Cluster):
    rows = of_group("shop", 2)
    nodes.apply_pods(Changes(rows=tuple(rows)))
    assert nodes.replans(Changes(rows=(replace(rows[0], node="a"),)))


def test_a_plan_is_not_followed_that_a_member_on_its_node_has_not_known_of(nodes: Cluster, clock: Clock):
    """kube-scheduler has one node to choose from, so that it asks for no scores: one member is there before it could be
    planned with the others.
    """
    rows = of_group("shop", 5)
    created(nodes, clock, *rows)
    assert held(nodes, "a") == {"default/shop": "1: 5000"}
    (unplanned,) = of_group("shop", 1, first=5, node="a")
    (first, *others) = (
        nodes.apply_pods(Changes(rows=(row,)))[0].numa_nodes
        for row in (unplanned, *(replace(row, node="a") for row in rows))
    )
    assert others == [first] * 5
    nodes.reserve()


def test_what_nobody_comes_for_is_given_back(nodes: Cluster, clock: Clock):
    created(nodes, clock, *of_group("shop", 6))
    clock.now += HOLD_S
    nodes.received("a")
    nodes.reserve()
    assert held(nodes, "a") == held(nodes, "b") == {}
    nodes.apply_pods(Changes(rows=tuple(of_group("shop", 1, first=6))))
    nodes.reserve()
    assert held(nodes, "a") or held(nodes, "b"), "it moves again"


def test_the_room_of_members_that_are_deleted_is_free(nodes: Cluster, clock: Clock):
    created(nodes, clock, *of_group("shop", 6))
    nodes.apply_pods(Changes(gone=("shop-0", "shop-1")))
    assert held(nodes, "a") == {"default/shop": "1: 4000"}


def test_a_member_that_was_scored_and_never_bound_finds_its_place_again(nodes: Cluster, clock: Clock):
    rows = of_group("shop", 6)
    created(nodes, clock, *rows)
    asked(nodes, rows[0])
    clock.now += 31
    nodes.received("a"), nodes.received("b")
    assert asked(nodes, rows[1]) == "a"
    assert held(nodes, "a") == {"default/shop": "1: 5000"}, "the first holds nothing of its own any more"


def test_a_pod_of_higher_priority_finds_the_room_as_if_nothing_were_held(nodes: Cluster, clock: Clock):
    created(nodes, clock, *of_group("shop", 8))
    assert held(nodes, "a") == {"default/shop": "0: 8000"}
    for priority, home in ((0, "1"), (1, "0")):
        high = replace(pod(f"p{priority}", group="high", cpu="6", memory="1Mi"), priority=priority)
        created(nodes, clock, high)
        asked(nodes, high, "a")
        assert reservations_of(nodes, "a")[f"p{priority}"] == home


def test_a_pod_that_fits_nowhere_else_takes_what_is_held(cluster: Cluster, clock: Clock):
    tell(cluster, "a", of=machine(1))
    created(cluster, clock, *of_group("shop", 8))
    stranger = pod("stranger", group="other", cpu="2", memory="1Mi", policy="single-numa-node")
    created(cluster, clock, stranger)
    want = cluster.wanted(stranger)
    assert want is not None
    assert cluster.refusals(want, ["a"]) == {}
    assert asked(cluster, stranger, "a") == "a"


@pytest.mark.parametrize(
    ("asked_for", "count", "milli"),
    [
        ({"cpus": "exclusive", "cpu": "1500m"}, 4, 8000),
        ({"cpus": "exclusive-cores", "cpu": "2500m"}, 2, 8000),
        ({"cpus": "exclusive", "own": "2500m"}, 2, 6000),
        ({"cpus": "exclusive", "own": "3500m"}, 2, 8000),
        ({"cpus": "exclusive", "cpu": "500m"}, 8, 4000),
    ],
)
def test_cpus_of_their_own_are_held_whole(
    nodes: Cluster, clock: Clock, asked_for: dict[str, str], count: int, milli: int
):
    """Who asks for less than one shares."""
    rows, home = of_group("shop", count, **asked_for), "0" if milli > 6000 else "1"
    created(nodes, clock, *rows)
    assert held(nodes, "a") == {"default/shop": f"{home}: {milli}"}
    for row in rows:
        assert asked(nodes, row) == "a"
    assert {reservations_of(nodes, "a")[row.uid] for row in rows} == {home}


MIB = 1 << 20


def asking(rows: list[PodRow], resource: str, amount: str) -> list[PodRow]:
    """For this too."""
    return [
        replace(
            row,
            containers=tuple(replace(each, requests={**each.requests, resource: amount}) for each in row.containers),
        )
        for row in rows
    ]


def with_pages(rows: list[PodRow], amount: str) -> list[PodRow]:
    return asking(rows, "hugepages-2Mi", amount)


def with_free_pages(*mib: int) -> Machine:
    """By NUMA node."""
    nodes = (
        replace(node, hugepages={2 * MIB: free * MIB}) for node, free in zip(machine().numa_nodes, mib, strict=True)
    )
    return replace(machine(), numa_nodes=tuple(nodes))


class TestHugepages:
    """a: 6 CPUs free beside 1 GiB in hugepages, and 8 without any. b: 7 beside 4 GiB, and 8 without any."""

    @pytest.fixture
    def paged(self, cluster: Cluster) -> Cluster:
        for node, there, pages in (("a", other(1, 2000), (0, 1024)), ("b", other(0, 1000), (4096, 0))):
            tell(cluster, node, there, of=with_free_pages(*pages))
        return cluster

    @pytest.mark.parametrize(("amount", "node", "home"), [("100Mi", "a", "1"), ("512Mi", "b", "0")])
    def test_a_group_goes_where_there_are_enough_for_all_of_it(
        self, paged: Cluster, clock: Clock, amount: str, node: str, home: str
    ):
        rows = with_pages(of_group("shop", 6), amount)
        created(paged, clock, *rows)
        assert held(paged, node) == {"default/shop": f"{home}: 6000"}
        assert {asked(paged, row) for row in rows} == {node}
        assert {reservations_of(paged, node)[row.uid] for row in rows} == {home}

    def test_what_is_held_for_one_is_held_against_others(self, paged: Cluster, clock: Clock):
        created(paged, clock, *with_pages(of_group("shop", 3), "300Mi"), *with_pages(of_group("cart", 2), "200Mi"))
        assert held(paged, "a") == {"default/shop": "1: 3000"}
        assert held(paged, "b") == {"default/cart": "0: 2000"}
        paged.reserve()
        assert held(paged, "a") == {"default/shop": "1: 3000"}, "what is held is its own"

    def test_those_that_are_to_come_ask_for_some_too(self, paged: Cluster):
        (first, *_) = rows = owned(with_pages(of_group("shop", 6), "512Mi"))
        kept = ToldReplicas("default/ReplicaSet/shop", "default/shop", 6, first.demand)
        paged.told(DEPLOYMENTS, Changes(rows=(ToldRow("default/shop", replicas=kept),)))
        paged.apply_pods(Changes(rows=(first,)))
        paged.reserve()
        assert held(paged, "b") == {"default/shop": "0: 1000"}
        assert {asked(paged, row) for row in rows} == {"b"}


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """What is done once a plan is made, and before it is held."""
    actions: list[Callable[[], object]] = []
    planned = WaitingGroups.planned

    def late(groups: WaitingGroups) -> PlannedGroups:
        found = planned(groups)
        for action in actions:
            action()
        return found

    monkeypatch.setattr(WaitingGroups, "planned", late)
    return actions


GPU = "example.com/gpu"


def gpus(count: int, rows: list[PodRow]) -> list[PodRow]:
    return asking(rows, GPU, str(count))


def tell_devices(cluster: Cluster, node: str, free: dict[int, int], *there: Reservation, generation: int = 1) -> None:
    """A whole report. free: GPUs by the mask of the NUMA nodes that they are near to."""
    live = Live(devices={(GPU, mask): count for mask, count in free.items()})
    tell(cluster, node, *there, generation=generation, live=live)


class TestDevices:
    """a: 6 CPUs free beside no GPU, and 7 beside 2. b: 8 beside 2, and 3 beside none. c says nothing of GPUs."""

    @pytest.fixture
    def devices(self, cluster: Cluster) -> Cluster:
        tell_devices(cluster, "a", {1: 0, 2: 2}, other(0, 2000), other(1, 1000))
        tell_devices(cluster, "b", {1: 2, 2: 0}, other(1, 5000))
        tell(cluster, "c")
        return cluster

    def left(self, cluster: Cluster, node: str) -> int:
        """GPUs that are neither taken nor held."""
        return sum(cluster.view(node).occupancy.live.devices.values())

    def shop(self, trainers: int, feeders: int, group: str = "shop", **more) -> list[PodRow]:
        """Those without a device come first."""
        return [*of_group(group, feeders), *gpus(1, of_group(group, trainers, first=feeders, **more))]

    def test_a_group_goes_where_its_devices_are_and_its_other_pods_with_them(self, devices: Cluster, clock: Clock):
        rows = self.shop(2, 4)
        created(devices, clock, *rows)
        assert held(devices, "a") == {"default/shop": "1: 6000"}
        assert self.left(devices, "a") == 0
        assert {asked(devices, row, *"abc") for row in rows} == {"a"}
        assert {reservations_of(devices, "a")[row.uid] for row in rows} == {"1"}
        assert (held(devices, "a"), self.left(devices, "a")) == ({}, 0)

    def test_a_group_that_is_cut_has_its_pods_where_their_devices_are(self, devices: Cluster, clock: Clock):
        """The first pods are not drawn to the devices of others."""
        tell_devices(devices, "a", {1: 1, 2: 1}, generation=2)
        rows = self.shop(2, 10)
        created(devices, clock, *rows)
        planned = {row.uid: devices._nodes.group_holds.place(row.uid) for row in rows}
        assert {planned[row.uid] for row in rows[-2:]} == {NumaPlace("a", 0), NumaPlace("a", 1)}
        for row in rows:
            assert asked(devices, row, *"abc") == "a"
        homes = reservations_of(devices, "a")
        assert {row.uid: int(homes[row.uid]) for row in rows} == {uid: at.numa_node for uid, at in planned.items()}

    def test_several_groups_have_devices_of_their_own(self, devices: Cluster, clock: Clock):
        groups = [self.shop(2, 3, name) for name in ("cart", "shop", "late")]
        created(devices, clock, *(row for group in groups for row in group))
        assert [{*held(devices, node)} for node in "abc"] == [{"default/cart"}, {"default/late"}, set()]
        devices.reserve()
        assert [{*held(devices, node)} for node in "abc"] == [{"default/cart"}, {"default/late"}, set()]

    def test_what_is_held_counts_against_other_groups_pods(self, devices: Cluster, clock: Clock):
        """Though there is room beside its kin."""
        tell_devices(devices, "a", {2: 2}, reservation("kin", "1", group="default/other"), generation=2)
        created(devices, clock, *self.shop(2, 4))
        assert held(devices, "a") == {"default/shop": "1: 6000"}
        (stranger,) = gpus(1, of_group("other", 1))
        devices.apply_pods(Changes(rows=(stranger,)))
        assert asked(devices, stranger, "a", "b") == "b"

    def test_but_not_against_those_of_higher_priority(self, devices: Cluster, clock: Clock):
        created(devices, clock, *self.shop(2, 4))
        tell_devices(devices, "b", {1: 0}, other(0, 7000), other(1, 7000), generation=2)
        for priority, home in ((0, "0"), (1, "1")):
            (row,) = gpus(1, of_group(f"p{priority}", 1, priority=priority))
            created(devices, clock, row)
            asked(devices, row, "a")
            assert reservations_of(devices, "a")[row.uid] == home

    def test_who_finds_none_elsewhere_is_not_refused_what_is_held(self, devices: Cluster, clock: Clock):
        created(devices, clock, *self.shop(2, 4))
        (row,) = gpus(1, of_group("other", 1, policy="single-numa-node"))
        created(devices, clock, row)
        assert devices.refusals(devices.wanted(row), ["a"]) == {}
        assert asked(devices, row, "a") == "a"

    def test_replicas_to_come_have_devices_kept_and_find_them(self, devices: Cluster):
        (first, *rest) = owned(gpus(1, of_group("shop", 2)))
        kept = ToldReplicas("default/ReplicaSet/shop", "default/shop", 2, first.demand, devices=((GPU, 1),))
        devices.told(DEPLOYMENTS, Changes(rows=(ToldRow("default/shop", replicas=kept),)))
        tell_devices(devices, "a", {2: 1}, other(0, 2000), other(1, 1000), generation=2)
        devices.apply_pods(Changes(rows=(first,)))
        devices.reserve()
        assert (held(devices, "b"), self.left(devices, "b")) == ({"default/shop": "0: 1000"}, 1)
        devices.apply_pods(Changes(rows=tuple(rest)))
        devices.reserve()
        assert (held(devices, "b"), self.left(devices, "b")) == ({"default/shop": "0: 2000"}, 0)

    def test_a_replica_that_was_planned_has_its_device_held_at_once(self, devices: Cluster, meanwhile):
        (first, *rest) = owned(gpus(1, of_group("shop", 2)))
        kept = ToldReplicas("default/ReplicaSet/shop", "default/shop", 2, first.demand, devices=((GPU, 1),))
        devices.told(DEPLOYMENTS, Changes(rows=(ToldRow("default/shop", replicas=kept),)))
        devices.apply_pods(Changes(rows=(first,)))
        meanwhile.append(lambda: devices.apply_pods(Changes(rows=tuple(rest))))
        devices.reserve()
        assert sorted(self.left(devices, node) for node in "ab") == [0, 2]

    def test_what_comes_again_after_a_drain_asks_for_its_devices_again(self, devices: Cluster, clock: Clock):
        """On a one is left, and on b there are two."""
        rows = owned(gpus(1, of_group("shop", 2, node="c")))
        tell_devices(devices, "a", {2: 1}, other(0, 2000), other(1, 1000), generation=2)
        tell(devices, "c", reservation(rows[0].uid, "1"), generation=2)
        devices.apply_pods(Changes(rows=(rows[0],), whole=True))
        devices.apply_nodes(Changes(rows=(NodeRow("a"), NodeRow("b"), NodeRow("c", cordoned=True))))
        created(devices, clock, replace(rows[1], node=""))
        assert (held(devices, "a"), held(devices, "b")) == ({}, {"default/shop": "0: 1000"})

    @pytest.mark.parametrize("more", [{"gated": True}, {"own_terms": True}])
    def test_pods_that_are_not_planned_lead_the_others_to_their_devices(
        self, devices: Cluster, clock: Clock, more: dict[str, bool]
    ):
        created(devices, clock, *self.shop(2, 3, **more))
        assert [held(devices, node) for node in "abc"] == [{"default/shop": "1: 3000"}, {}, {}]
        assert self.left(devices, "a") == 2

    def test_where_no_device_can_be_had_nothing_is_planned(self, devices: Cluster, clock: Clock):
        created(devices, clock, *of_group("shop", 2), *gpus(3, of_group("shop", 1, first=2)))
        assert [held(devices, node) for node in "abc"] == [{}, {}, {}]

    def test_the_others_follow_one_that_is_on_several_numa_nodes(self, devices: Cluster, clock: Clock):
        """Where the group's first pod has devices near both, and no other has one: there is more room elsewhere."""
        (wide, *rest) = [*gpus(2, of_group("shop", 1, node="a")), *of_group("shop", 3, first=1)]
        tell_devices(devices, "a", {1: 0}, reservation(wide.uid, "0-1", milli=8000), generation=2)
        created(devices, clock, wide, *rest)
        assert [held(devices, node) for node in "bc"] == [{}, {}]
        assert {asked(devices, row, *"abc") for row in rest} == {"a"}


def test_gated_pods_count_for_the_size_and_hold_nothing(nodes: Cluster, clock: Clock):
    created(nodes, clock, *of_group("shop", 3), *of_group("shop", 4, first=3, gated=True))
    assert held(nodes, "a") == {"default/shop": "0: 3000"}, "7 do not fit NUMA node 1"


def test_a_group_of_which_nothing_can_be_planned_yet_does_not_keep_others_from_it(nodes: Cluster, clock: Clock):
    """Two pods are gated, and what its controller is to create says itself where it may go."""
    kept = ToldReplicas("default/Job/idle", "default/idle", 4, Demand(1000), anywhere=False)
    nodes.told(DEPLOYMENTS, Changes(rows=(ToldRow("default/idle", replicas=kept),)))
    created(nodes, clock, *of_group("idle", 2, gated=True), *of_group("shop", 6))
    assert held(nodes, "a") == {"default/shop": "1: 6000"}


def test_no_other_group_is_planned_where_a_gang_is_being_tried(nodes: Cluster, clock: Clock):
    """None of it is bound, so that what it holds itself does not count for others."""
    rows = [replace(row, scheduling_group="gang") for row in of_group("gang", 6)]
    created(nodes, clock, *rows)
    assert {asked(nodes, row) for row in rows} == {"a"}
    created(nodes, clock, *of_group("late", 6))
    assert held(nodes, "a").get("default/gang") == "1: 6000"
    assert {**held(nodes, "a"), **held(nodes, "b")}["default/late"] == "0: 6000"


def test_the_size_that_a_group_gives_counts_for_where_it_goes(nodes: Cluster, clock: Clock):
    created(nodes, clock, *of_group("shop", 3, size="8"))
    assert held(nodes, "a") == {"default/shop": "0: 3000"}


def test_pods_that_say_themselves_where_they_may_go_are_not_planned(nodes: Cluster, clock: Clock):
    created(nodes, clock, *of_group("shop", 4, own_terms=True))
    assert held(nodes, "a") == held(nodes, "b") == {}


def away(label: tuple[str, str], key: str = HOST) -> PodTerms:
    return PodTerms(away=(DomainTerm(key, PodSelector(frozenset([label]))),))


def apart(workload: str, count: int) -> list[PodRow]:
    """Replicas that share no node with each other, as they say."""
    label = "app", workload
    rows = [pod(f"{workload}-{at}", group="shop", cpu="2", memory="1Mi") for at in range(count)]
    return [replace(row, own_terms=True, labels=dict([label]), said=away(label)) for row in rows]


class TestPodsThatShareNoNode:
    def test_those_that_may_be_together_are_planned_together(self, nodes: Cluster, clock: Clock):
        rows = [*apart("web", 2), *apart("db", 2)]
        created(nodes, clock, *rows)
        assert held(nodes, "a") == {"default/shop": "1: 4000"}
        assert held(nodes, "b") == {"default/shop": "0: 4000"}
        assert [asked(nodes, row) for row in rows] == ["a", "b", "a", "b"]

    def test_each_is_planned_beside_a_member_that_it_may_be_beside(self, nodes: Cluster, clock: Clock):
        rows = [*apart("web", 2), *apart("db", 2)]
        asked(nodes, rows[0], "b")
        created(nodes, clock, replace(rows[0], node="b"), *rows[1:])
        assert held(nodes, "b") == {"default/shop": f"{reservations_of(nodes, 'b')['web-0']}: 2000"}
        assert held(nodes, "a") == {"default/shop": "1: 4000"}

    def test_who_finds_no_other_node_is_not_planned(self, nodes: Cluster, clock: Clock):
        created(nodes, clock, *apart("web", 3))
        assert [held(nodes, node) for node in ("a", "b")] == [{"default/shop": "1: 2000"}, {"default/shop": "1: 2000"}]


def test_nothing_is_planned_on_a_node_that_takes_no_pods(nodes: Cluster, clock: Clock):
    nodes.apply_nodes(Changes(rows=(NodeRow("a", taints=TAINTED), NodeRow("b")), whole=True))
    created(nodes, clock, *of_group("shop", 6))
    assert held(nodes, "b") == {"default/shop": "0: 6000"}
    nodes.apply_nodes(Changes(rows=(NodeRow("a"),)))
    nodes.reserve()
    assert held(nodes, "a") == {"default/shop": "1: 6000"}


@pytest.mark.parametrize(("kept", "home"), [(0, "a"), (1000, "b")])
def test_a_group_goes_where_kube_scheduler_has_room_for_all_of_it(nodes: Cluster, clock: Clock, kept: int, home: str):
    """With 8 CPUs held, 6 are free on a's NUMA node 1, of which its kubelet keeps some for itself."""
    nodes.apply_nodes(Changes(rows=(NodeRow("a", allocatable=Allocatable(16_000 - kept)), NodeRow("b"))))
    created(nodes, clock, *of_group("shop", 8))
    created(nodes, clock, *of_group("other", 6))
    assert held(nodes, "a")["default/shop"] == "0: 8000"
    assert "default/other" in held(nodes, home)


def test_a_pod_that_is_annotated_anew_while_it_waits_counts_for_the_group_that_it_names_by_then(
    nodes: Cluster, clock: Clock
):
    rows = of_group("shop", 6)
    created(nodes, clock, *rows)
    assert held(nodes, "a") == {"default/shop": "1: 6000"}
    mended = [replace(row, annotations=pod(group="other").annotations) for row in rows[:2]]
    nodes.apply_pods(Changes(rows=tuple(mended)))
    nodes.reserve()
    there = {**held(nodes, "a"), **held(nodes, "b")}
    assert {group: text.rpartition(" ")[2] for group, text in there.items()} == {
        "default/shop": "4000",
        "default/other": "2000",
    }


class TestWhatPodsTakeBesideTheirContainers:
    """A RuntimeClass's overhead, which kube-scheduler counts against the node. With 8 CPUs held for shop, 6 are left."""

    @pytest.fixture(autouse=True)
    def limited(self, nodes: Cluster) -> None:
        nodes.apply_nodes(Changes(rows=(NodeRow("a", allocatable=Allocatable(16_000)), NodeRow("b"))))

    def planned(self, cluster: Cluster, clock: Clock, overhead: Demand) -> str:
        """Where the other group is, of six CPUs."""
        created(cluster, clock, *(replace(row, overhead=overhead) for row in of_group("shop", 8)))
        created(cluster, clock, *of_group("other", 6))
        assert held(cluster, "a")["default/shop"] == "0: 8000", "no NUMA node has less room by it"
        return next(node for node in ("a", "b") if "default/other" in held(cluster, node))

    @pytest.mark.parametrize(("overhead", "home"), [(Demand(), "a"), (Demand(250), "b")])
    def test_is_none_of_what_is_left_where_they_run(
        self, nodes: Cluster, clock: Clock, overhead: Demand, home: str
    ) -> None:
        there = replace(pod("vm", group="", node="a"), overhead=overhead, phase="Running")
        nodes.apply_pods(Changes(rows=(there,)))
        assert self.planned(nodes, clock, Demand()) == home
        nodes.apply_pods(Changes(gone=("vm",)))
        nodes.reserve()
        assert "default/other" in held(nodes, "a"), "it is left again"

    @pytest.mark.parametrize(("overhead", "home"), [(Demand(), "a"), (Demand(1), "b")])
    def test_is_counted_where_they_are_planned(self, nodes: Cluster, clock: Clock, overhead: Demand, home: str) -> None:
        assert self.planned(nodes, clock, overhead) == home

    @pytest.mark.parametrize("overhead", [Demand(2_001), Demand(memory=1 << 50)], ids=["CPU", "memory"])
    def test_keeps_a_group_from_where_its_containers_alone_have_room(
        self, nodes: Cluster, clock: Clock, overhead: Demand
    ) -> None:
        nodes.apply_nodes(
            Changes(rows=(NodeRow("a"), NodeRow("b", allocatable=Allocatable(5_000 + 3_000 + 2_000, 1 << 40))))
        )
        created(nodes, clock, *of_group("small", 3))
        assert held(nodes, "b") == {"default/small": "1: 3000"}, "the tightest"
        nodes.apply_pods(
            Changes(
                rows=tuple(replace(row, overhead=overhead) for row in of_group("vms", 3)),
                gone=[f"small-{at}" for at in range(3)],
            )
        )
        created(nodes, clock)
        assert "default/vms" in held(nodes, "a")

    @pytest.mark.parametrize(("overhead", "home"), [(Demand(), "a"), (Demand(250), "b")])
    def test_is_counted_for_those_too_that_are_not_created_yet(
        self, nodes: Cluster, clock: Clock, overhead: Demand, home: str
    ) -> None:
        """As for the one that is: a Deployment's template says nothing of it."""
        nodes.apply_nodes(Changes(rows=(NodeRow("a", allocatable=Allocatable(2_000 + 9_000)),)))
        kept = ToldReplicas("default/Deployment/shop", "default/shop", 8, Demand(1_000))
        nodes.told(DEPLOYMENTS, Changes(rows=(ToldRow("default/shop", replicas=kept),)))
        (first,) = of_group("shop", 1)
        created(nodes, clock, replace(first, owner=OwnerRow("Deployment", "shop"), overhead=overhead))
        assert next(node for node in ("a", "b") if "default/shop" in held(nodes, node)) == home


class TestHowManyPodsANodeTakes:
    """20 small pods: their room is on NUMA node 1 of b, with least left over."""

    SMALL = of_group("small", 20, cpu="100m")

    @pytest.fixture(autouse=True)
    def limited(self, nodes: Cluster) -> None:
        nodes.apply_nodes(Changes(rows=(NodeRow("a"), NodeRow("b", allocatable=Allocatable(pods=24)))))

    def planned(self, cluster: Cluster, clock: Clock) -> dict[str, int]:
        """Millicores by node."""
        created(cluster, clock, *self.SMALL)
        there = {node: held(cluster, node).get("default/small", "") for node in ("a", "b")}
        return {node: int(text.rpartition(" ")[2]) for node, text in there.items() if text}

    def test_a_group_goes_where_all_of_it_is_taken(self, nodes: Cluster, clock: Clock):
        plain = [pod(f"plain-{at}", group="", node="b") for at in range(3)]
        member, ended = pod("member", group="other", node="b"), pod("ended", group="", node="b")
        nodes.apply_pods(Changes(rows=(*plain, member, ended)))
        nodes.apply_pods(Changes(rows=(replace(ended, phase="Succeeded"),)))
        assert self.planned(nodes, clock) == {"b": 2000}
        nodes.apply_pods(Changes(rows=(pod("one-more", group="", node="b"),)))
        nodes.reserve()
        assert self.planned(nodes, clock) == {"a": 2000}

    def test_pods_that_are_expected_there_count(self, nodes: Cluster, clock: Clock):
        first = of_group("other", 5, cpu="100m")
        nodes.apply_pods(Changes(rows=tuple(first)))
        assert {asked(nodes, row, "b") for row in first} == {"b"}
        assert self.planned(nodes, clock) == {"a": 2000}

    def test_each_that_comes_takes_its_own_place(self, nodes: Cluster, clock: Clock):
        nodes.apply_pods(Changes(rows=tuple(pod(f"plain-{at}", group="", node="b") for at in range(4))))
        assert self.planned(nodes, clock) == {"b": 2000}
        for row in self.SMALL:
            assert asked(nodes, row) == "b"
            nodes.reserve()
            nodes.apply_pods(Changes(rows=(replace(row, node="b"),)))
            nodes.reserve()
        assert held(nodes, "a") == held(nodes, "b") == {}

    def test_a_manifest_is_tried_out_likewise(self, nodes: Cluster):
        nodes.apply_nodes(Changes(rows=(NodeRow("a", allocatable=Allocatable(pods=19)), NodeRow("b"))))
        tried = plan(nodes, [(self.SMALL, None)])["pods"]
        assert {row["node"] for row in tried} == {"b"}


class TestWhatIsHeldIsPlannedAnewAsWhatItTook:
    """The group that comes later chooses first."""

    @staticmethod
    def taken(cluster: Cluster) -> Demand:
        """By what is held on a."""
        view = cluster.view("a")
        assert view is not None
        return sum((entry.demand for there in view.held.values() for entry in there), Demand())

    def test_of_cpus_that_kube_scheduler_gives_what_was_asked_for(self, nodes: Cluster, clock: Clock):
        """Though it is expected to use more: 3 CPUs are left to give."""
        nodes.apply_nodes(
            Changes(rows=(NodeRow("a", allocatable=Allocatable(5000)), NodeRow("b", allocatable=Allocatable(0))))
        )
        small = of_group("small", 2, cpu="100m")
        nodes.learned(ClusterTraffic(uses={row.workload: 1500 for row in small}))
        created(nodes, clock, *small)
        assert self.taken(nodes).cpu_milli == 200
        nodes.apply_pods(Changes(rows=tuple(of_group("large", 5, priority=1))))
        nodes.reserve()
        assert 0 < self.taken(nodes).cpu_milli <= 3000

    def test_of_memory_that_is_really_free_nothing(self, nodes: Cluster, clock: Clock):
        """What is held has not used any yet: 2 GiB are free, on NUMA node 0 of a alone."""
        reserve = machine().node(0).ordinary_memory // RESERVE
        tell(nodes, "a", generation=2, live=Live(free_memory={0: 2 * GIB + reserve, 1: 0}))
        tell(nodes, "b", generation=2, live=Live(free_memory={0: 0, 1: 0}))
        created(nodes, clock, *(pod(f"small-{at}", group="small", cpu="100m", memory="1Gi") for at in range(2)))
        assert self.taken(nodes).memory == 2 * GIB
        created(nodes, clock, *(pod(f"large-{at}", group="large", cpu="1", memory="1Gi") for at in range(3)))
        assert self.taken(nodes).memory == 2 * GIB


TOLERATED = ({"key": "dedicated", "value": "fast"},)
TOLERANT = NodeTerms.of(None, None, TOLERATED)
ONLY_THERE = NodeTerms.of({"pool": "fast"}, None, TOLERATED)
NOT_THERE = NodeTerms.of(
    None, {"nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "DoesNotExist"}]}]}, None
)


def saying(terms: NodeTerms, rows: list[PodRow]) -> list[PodRow]:
    return [replace(row, terms=terms) for row in rows]


class TestAPoolOfNodes:
    """b alone has its label, and a taint."""

    @pytest.fixture
    def pools(self, nodes: Cluster) -> Cluster:
        taint = Taint("dedicated", "fast", "NoSchedule")
        nodes.apply_nodes(Changes(rows=(NodeRow("a"), NodeRow("b", labels={"pool": "fast"}, taints=(taint,)))))
        return nodes

    def test_its_groups_are_planned_whole_on_it(self, pools: Cluster, clock: Clock):
        created(pools, clock, *saying(ONLY_THERE, of_group("shop", 6)))
        assert (held(pools, "a"), held(pools, "b")) == ({}, {"default/shop": "0: 6000"})

    def test_others_are_not_planned_there(self, pools: Cluster, clock: Clock):
        created(pools, clock, *of_group("shop", 3))
        assert (held(pools, "a"), held(pools, "b")) == ({"default/shop": "1: 3000"}, {})

    def test_who_may_go_there_or_elsewhere_goes_where_it_fits_best(self, pools: Cluster, clock: Clock):
        created(pools, clock, *saying(TOLERANT, of_group("shop", 3)))
        assert (held(pools, "a"), held(pools, "b")) == ({}, {"default/shop": "1: 3000"})

    def test_pods_of_a_group_that_may_be_together_are(self, pools: Cluster, clock: Clock):
        web, db = saying(TOLERANT, of_group("shop", 2)), saying(ONLY_THERE, of_group("shop", 2, first=2))
        created(pools, clock, *web, *db)
        assert (held(pools, "a"), held(pools, "b")) == ({}, {"default/shop": "0: 4000"})

    def test_those_of_two_pools_are_whole_in_each(self, pools: Cluster, clock: Clock):
        web, db = saying(NOT_THERE, of_group("shop", 3)), saying(ONLY_THERE, of_group("shop", 3, first=3))
        created(pools, clock, *(row for pair in zip(web, db, strict=True) for row in pair))
        assert (held(pools, "a"), held(pools, "b")) == ({"default/shop": "1: 3000"}, {"default/shop": "1: 3000"})

    def test_those_of_one_pool_are_planned_though_members_are_in_another(self, pools: Cluster, clock: Clock):
        web = saying(NOT_THERE, of_group("shop", 2))
        for row in web:
            asked(pools, row, "a")
        db = saying(ONLY_THERE, of_group("shop", 3, first=2))
        created(pools, clock, *(replace(row, node="a") for row in web), *db)
        assert held(pools, "b") == {"default/shop": "0: 3000"}, "where most could follow when they were created"

    def test_pods_that_share_no_node_are_planned_within_it(self, pools: Cluster, clock: Clock):
        created(pools, clock, *saying(ONLY_THERE, apart("web", 2)))
        assert (held(pools, "a"), held(pools, "b")) == ({}, {"default/shop": "1: 2000"})

    def test_a_plan_leaves_a_node_that_lost_its_label(self, pools: Cluster, clock: Clock):
        created(pools, clock, *saying(ONLY_THERE, of_group("shop", 6)))
        pools.apply_nodes(Changes(rows=(NodeRow("a", labels={"pool": "fast"}), NodeRow("b"))))
        pools.reserve()
        assert (held(pools, "a"), held(pools, "b")) == ({"default/shop": "1: 6000"}, {})

    @pytest.mark.parametrize(
        ("row", "anew"),
        [
            (NodeRow("a", ready=False), False),
            (NodeRow("a", labels={"pool": "fast"}), True),
            (NodeRow("a", taints=(Taint("x", "", "NoSchedule"),)), True),
            (NodeRow("a", cordoned=True), True),
            (NodeRow("c"), True),
        ],
        ids=["ready or not", "a label", "a taint", "cordoned", "another node"],
    )
    def test_what_is_held_is_planned_anew_once_pods_may_go_elsewhere(self, pools: Cluster, row: NodeRow, anew):
        assert pools.apply_nodes(Changes(rows=(row,))) is anew
        assert not pools.apply_nodes(Changes(rows=(row,))), "it is known"

    def test_what_is_to_come_has_its_places_there_for_who_may_go_there(self, pools: Cluster):
        kept = ToldReplicas("default/ReplicaSet/shop", "default/shop", 6, Demand(1000), terms=ONLY_THERE)
        pools.told(DEPLOYMENTS, Changes(rows=(ToldRow("default/shop", replicas=kept),)))
        first, second, third, *_ = saying(ONLY_THERE, owned(of_group("shop", 6)))
        pools.apply_pods(Changes(rows=(first,)))
        pools.reserve()
        found = [held(pools, "b")]
        for row in (replace(second, terms=NOT_THERE), third):
            pools.apply_pods(Changes(rows=(row,)))
            pools._nodes.created([row.uid])
            found.append(held(pools, "b"))
        assert found == [{"default/shop": text} for text in ("0: 1000", "0: 1000", "0: 2000")]

    def test_a_draft_of_the_cluster_holds_to_it_too(self, pools: Cluster, clock: Clock):
        draft = pools.draft()
        created(draft, clock, *saying(ONLY_THERE, of_group("shop", 6)), *of_group("other", 2))
        assert (held(draft, "a"), held(draft, "b")) == ({"default/other": "1: 2000"}, {"default/shop": "0: 6000"})


class TestWhatHappensWhileAPlanIsMade:
    """Between the moment that it is of and the one from which it is held."""

    def test_a_pod_follows_its_kin_that_went_elsewhere_than_planned(self, nodes: Cluster, clock: Clock, meanwhile):
        first, second = of_group("pair", 2)
        nodes.apply_pods(Changes(rows=(first, second)))
        meanwhile.append(lambda: asked(nodes, first, "b"))
        nodes.reserve()
        meanwhile.clear()
        assert not held(nodes, "a"), "it was planned there, without its kin"
        assert asked(nodes, second) == "b"

    def test_a_pod_that_is_created_has_the_place_of_one_that_was_to_come(self, nodes: Cluster, meanwhile):
        kept = ToldReplicas("default/ReplicaSet/shop", "default/shop", 6, Demand(1000))
        nodes.told(DEPLOYMENTS, Changes(rows=(ToldRow("default/shop", replicas=kept),)))
        rows = owned(of_group("shop", 6))
        nodes.apply_pods(Changes(rows=tuple(rows[:2])))
        meanwhile.append(lambda: nodes.apply_pods(Changes(rows=tuple(rows[2:]))))
        nodes.reserve()
        assert [*held(nodes, "a").values(), *held(nodes, "b").values()] == ["0: 6000"]


class TestADrain:
    """Of node a, whose NUMA node 1 has all of a group: 4 pods of 1 CPU, which come again one by one."""

    @pytest.fixture
    def drained(self, nodes: Cluster) -> Cluster:
        """On c there is room for two of them where on b there is for all."""
        tell(nodes, "c", other(0, 6000), other(1, 6000))
        rows = owned(of_group("shop", 4, node="a"))
        tell(nodes, "a", other(0, 2000), *(reservation(row.uid, "1") for row in rows), generation=2)
        nodes.apply_pods(Changes(rows=tuple(rows), whole=True))
        nodes.apply_nodes(Changes(rows=(NodeRow("a", cordoned=True), NodeRow("b"), NodeRow("c"))))
        return nodes

    def test_the_first_that_comes_again_goes_where_all_have_room(self, drained: Cluster, clock: Clock):
        (again,) = owned(of_group("shop", 1, first=9))
        drained.apply_pods(Changes(rows=(replace(owned(of_group("shop", 1, node="a"))[0], leaving=True),)))
        created(drained, clock, again)
        assert (held(drained, "b"), held(drained, "c")) == ({"default/shop": "0: 1000"}, {})
        assert asked(drained, again, "b", "c") == "b", "though no kin are there, and those on a are many"

    @pytest.mark.parametrize(
        ("asks", "pages"),
        [({"cpus": "exclusive", "cpu": "1500m"}, "0"), ({"cpu": "500m"}, "512Mi")],
        ids=["whole CPUs", "hugepages"],
    )
    def test_they_come_again_as_what_they_are(self, cluster: Cluster, clock: Clock, asks: dict[str, str], pages: str):
        """On c there is room for what three of them request, and not for what they take."""
        rows = with_pages(owned(of_group("shop", 3, node="a", **asks)), pages)
        told = [reservation(row.uid, "1", milli=row.demand.cpu_milli) for row in rows[:2]]
        tell(cluster, "a", *told)
        tell(cluster, "b", of=with_free_pages(4096, 0))
        tell(cluster, "c", other(0, 3000), other(1, 8000), of=with_free_pages(1024, 0))
        cluster.apply_pods(Changes(rows=tuple(rows[:2]), whole=True))
        cluster.apply_nodes(Changes(rows=(NodeRow("a", cordoned=True), NodeRow("b"), NodeRow("c"))))
        created(cluster, clock, replace(rows[2], node=""))
        assert ({*held(cluster, "b")}, held(cluster, "c")) == ({"default/shop"}, {})

    def test_members_that_no_controller_makes_again_do_not_count(self, drained: Cluster, clock: Clock):
        drained.apply_pods(Changes(rows=tuple(of_group("shop", 4, node="a"))))
        (again,) = owned(of_group("shop", 1, first=9))
        created(drained, clock, again)
        assert held(drained, "b") == held(drained, "c") == {}, "a first pod of which nothing follows"

    def test_once_the_node_takes_pods_again_its_members_draw_as_before(self, drained: Cluster, clock: Clock):
        drained.apply_nodes(Changes(rows=(NodeRow("a"),)))
        created(drained, clock, *owned(of_group("shop", 1, first=9)))
        assert held(drained, "a") == {"default/shop": "1: 1000"}


def owned(rows: list[PodRow]) -> list[PodRow]:
    return [replace(row, owner=OwnerRow("ReplicaSet", "shop")) for row in rows]


def test_a_node_that_is_not_offered_to_a_groups_pods_is_planned_for_no_more_of_them(nodes: Cluster, clock: Clock):
    rows = of_group("shop", 6)
    created(nodes, clock, *rows)
    for row in rows[:2]:
        assert asked(nodes, row, "b") == "b"
    nodes.reserve()
    assert held(nodes, "a") == {}
    assert held(nodes, "b") == {"default/shop": "0: 4000"}


def test_an_extender_that_starts_anew_holds_the_same(nodes: Cluster, clock: Clock):
    rows = [*of_group("shop", 6), *of_group("cart", 7)]
    created(nodes, clock, *rows)
    again = Cluster(Settings(report_timeout=60, hold=30), clock)
    again.apply_pods(Changes(rows=tuple(rows), whole=True))
    again.reserve()
    tell(again, "a", other(1, 2000))
    tell(again, "b", other(1, 5000))
    clock.now += SETTLED_S
    again.reserve()
    assert [held(again, node) for node in "ab"] == [held(nodes, node) for node in "ab"]


def test_trying_out_what_pods_would_do_changes_nothing(nodes: Cluster, clock: Clock):
    created(nodes, clock, *of_group("shop", 6))
    before = held(nodes, "a")
    draft = nodes.draft()
    draft.apply_pods(Changes(rows=tuple(of_group("more", 7))))
    draft.reserve()
    for row in of_group("shop", 6):
        asked(draft, row)
    assert held(draft, "a") != before
    assert held(nodes, "a") == before


def test_with_nothing_to_hold_for_no_room_is_held(clock: Clock):
    cluster = Cluster(Settings(report_timeout=60, group_hold=0), clock)
    tell(cluster, "a")
    created(cluster, clock, *of_group("shop", 6))
    assert held(cluster, "a") == {}


POOLS = ("east", "west")
TEMPLATES = ("1111111111", "2222222222")
DEPLOYMENTS_OF = ("shop", "store")
DEVICES = {"a": {1: 2, 2: 1}, "b": {0: 1, 3: 1}, "c": {}}
TERMS = {"": NO_TERMS} | {pool: NodeTerms.of({"pool": pool}, None, None) for pool in POOLS}


def made_of(template: str, rows: list[PodRow], name: str = "shop") -> list[PodRow]:
    owner, labels = OwnerRow("Deployment", name), {"pod-template-hash": template}
    return [replace(row, owner=owner, labels=labels) for row in rows]


def near(free: dict[int, int], homes: int) -> int:
    """Devices near any of these NUMA nodes, of those by mask."""
    return sum(count for mask, count in free.items() if not mask or mask & homes)


class Holds(RuleBasedStateMachine):
    """Groups come, are asked about, are bound and go, in any order, while time passes and nodes report, and go from one
    pool to another. Some pods are of one pool, some ask for devices, some come in the place of others of an older
    template, and of some their controller says before that they will come, or that those that are there will be
    replaced.
    """

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.cluster = Cluster(Settings(report_timeout=1e9, hold=30), self.clock)
        self.rows: dict[str, PodRow] = {}
        self.made = 0
        self.pools: dict[str, str] = {}
        self.given = dict.fromkeys("abc", Allocatable())
        for node, pool in zip("abc", ("", *POOLS), strict=True):
            self.report(node)
            self.change_pool(node, pool)

    @rule(group=st.sampled_from("xyz"), count=st.integers(1, 5), cpu=st.sampled_from(["500m", "1", "3", "9"]),
          gated=st.booleans(), priority=st.sampled_from([0, 0, 5]), pool=st.sampled_from(["", *POOLS]),
          devices=st.sampled_from([0, 0, 1, 2]), template=st.sampled_from(TEMPLATES),
          name=st.sampled_from(DEPLOYMENTS_OF), overhead=st.sampled_from([0, 0, 1500]))  # fmt: skip
    def create(self, group, count, cpu, gated, priority, pool, devices, template, name, overhead):
        rows = gpus(devices, of_group(group, count, cpu=cpu, first=self.made, gated=gated, priority=priority))
        rows = [replace(row, overhead=Demand(overhead)) for row in rows]
        self.come(saying(TERMS[pool], made_of(template, rows, name)))

    def come(self, rows):
        self.made += len(rows)
        self.rows |= {row.uid: row for row in rows}
        self.cluster.apply_pods(Changes(rows=tuple(rows)))
        self.each_may_go_where_it_is_planned(row.uid for row in rows)

    @rule(group=st.sampled_from("xyz"), count=st.integers(0, 20), pool=st.sampled_from(["", *POOLS]),
          ahead=st.integers(0, 4), template=st.sampled_from(["", *TEMPLATES]),
          name=st.sampled_from(DEPLOYMENTS_OF))  # fmt: skip
    def tell_replicas(self, group, count, pool, ahead, template, name):
        """Of all that is kept, those created included."""
        said = Demand(1000), True, TERMS[pool]
        more = {"ahead": ahead, "template": template}
        kept = ToldReplicas(f"default/Deployment/{name}", f"default/{group}", count, *said, **more)
        self.cluster.told(DEPLOYMENTS, Changes(rows=(ToldRow(f"default/{name}", replicas=kept),)))

    @rule(group=st.sampled_from("xyz"), pool=st.sampled_from(["", *POOLS]), template=st.sampled_from(TEMPLATES),
          name=st.sampled_from(DEPLOYMENTS_OF))  # fmt: skip
    def create_as_planned(self, group, pool, template, name):
        """A replica, just after `reserve`."""
        self.reserve()
        self.come(saying(TERMS[pool], made_of(template, of_group(group, 1, first=self.made), name)))

    @rule(node=st.sampled_from("abc"), pool=st.sampled_from(["", *POOLS]))
    def change_pool(self, node, pool):
        self.pools[node] = pool
        self.tell_node(node)

    @rule(node=st.sampled_from("abc"), milli=st.sampled_from([inf, 0, 4000, 9500, 15500]),
          pods=st.sampled_from([inf, 0, 2, 5, 9]))  # fmt: skip
    def change_what_the_node_gives(self, node, milli, pods):
        self.given[node] = Allocatable(milli, 1 << 40, pods)
        self.tell_node(node)

    def tell_node(self, node):
        labels = {"pool": pool} if (pool := self.pools[node]) else {}
        self.cluster.apply_nodes(Changes(rows=(NodeRow(node, labels=labels, allocatable=self.given[node]),)))

    def each_may_go_where_it_is_planned(self, uids):
        holds = self.cluster._nodes.group_holds
        for uid in uids:
            if (place := holds.place(uid)) is not None:
                said = dict(self.rows[uid].terms.selector).get("pool", "")
                assert said in ("", self.pools[place.node]), f"{uid} of pool {said} is planned on {place.node}"

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), names=st.sampled_from(["abc", "ab", "c"]))
    def ask(self, data, names):
        asked(self.cluster, self.rows[data.draw(st.sampled_from(sorted(self.rows)))], *names)

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), node=st.sampled_from("abc"))
    def bind(self, data, node):
        row = self.rows[data.draw(st.sampled_from(sorted(self.rows)))]
        self.rows[row.uid] = row if row.node else replace(row, node=node, gated=False)
        self.cluster.apply_pods(Changes(rows=(self.rows[row.uid],)))

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), group=st.sampled_from("xyz"))
    def annotate_anew(self, data, group):
        row = self.rows[data.draw(st.sampled_from(sorted(self.rows)))]
        named = replace(row, annotations={**row.annotations, "group.numakin.io": group})
        self.rows[row.uid] = row if row.node else named
        self.cluster.apply_pods(Changes(rows=(self.rows[row.uid],)))

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def run(self, data):
        row = self.rows[data.draw(st.sampled_from(sorted(self.rows)))]
        self.rows[row.uid] = replace(row, phase="Running") if row.node else row
        self.cluster.apply_pods(Changes(rows=(self.rows[row.uid],)))

    @rule()
    def list_all(self):
        """As a watch that begins anew."""
        self.cluster.apply_pods(Changes(rows=tuple(self.rows.values()), whole=True))

    @invariant()
    def each_node_has_its_pods_to_start(self):
        there = {row.uid: row.node for row in self.rows.values() if row.node and row.phase == "Pending"}
        found = self.cluster._ledger._starting
        assert {uid: node for node, uids in found.items() for uid in uids} == there

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def delete(self, data):
        uid = data.draw(st.sampled_from(sorted(self.rows)))
        del self.rows[uid]
        self.cluster.apply_pods(Changes(gone=(uid,)))

    @rule(seconds=st.sampled_from([0.1, 3, 31, 61]))
    def wait(self, seconds):
        self.clock.now += seconds

    @rule()
    def reserve(self):
        again_s = self.cluster.reserve()
        waits = any(not row.node for row in self.rows.values())
        assert (again_s is not None and 0 < again_s <= AGAIN_S) if waits else again_s is None
        self.each_may_go_where_it_is_planned(self.rows)
        self.each_has_its_devices_where_it_is_planned()
        self.all_have_room_where_they_are_planned()
        self.no_node_is_planned_to_give_more_than_it_has()

    def no_node_is_planned_to_give_more_than_it_has(self):
        table, asked, planned = self.cluster._nodes, Counter[str](), Counter[str]()
        there, beside = Counter[str](), Counter[str]()
        for uid, row in self.rows.items():
            held = table.held(uid)
            if row.node or held is not None:
                there[row.node or held.node] += 1
                beside[row.node] += row.overhead.cpu_milli
            elif (place := table.group_holds.place(uid)) is not None:
                asked[place.node] += row.demand.cpu_milli + row.overhead.cpu_milli
                planned[place.node] += 1
        for node, milli in asked.items():
            given = self.given[node]
            left = given.cpu - table.view(node).bare.requested[0] - beside[node]
            assert milli <= left, f"{milli} on {node}, which has {left} of {given} left to give"
            assert there[node] + planned[node] <= given.pods, f"{planned[node]} pods on {node}, which takes {given}"

    def all_have_room_where_they_are_planned(self):
        """Beside all that is there: a pod that waits takes no room of one that is still to be replaced."""
        table, asked = self.cluster._nodes, Counter[NumaPlace]()
        for uid, row in self.rows.items():
            if not table.assumed(uid) and (place := table.group_holds.place(uid)) is not None:
                asked[place] += taken_demand(row).cpu_milli
        for place, milli in asked.items():
            bare = table.view(place.node).bare
            assert milli <= free_room(bare.machine, bare.occupancy)[place.numa_node][0], f"{milli} on {place}"

    def each_has_its_devices_where_it_is_planned(self):
        """As they are free before any is held; near, where any NUMA node has as many."""
        table, asked = self.cluster._nodes, dict[NumaPlace, list[int]]()
        for uid, row in self.rows.items():
            if not table.assumed(uid) and (place := table.group_holds.place(uid)) is not None:
                asked.setdefault(place, []).append(dict(row.devices).get(GPU, 0))
        free = {node: table.view(node).bare.free_devices(GPU) for node in "abc"}
        most = max(near(there, 1 << home) for there in free.values() for home in (0, 1))
        for node, there in free.items():
            both = [count for home in (0, 1) for count in asked.get(NumaPlace(node, home), [])]
            assert sum(both) <= sum(there.values())
            for home in (0, 1):
                narrow = [count for count in asked.get(NumaPlace(node, home), []) if count <= most]
                assert sum(narrow) <= near(there, 1 << home), f"{narrow} are planned on {home} of {node}: {there}"

    @rule(node=st.sampled_from("abc"))
    def report(self, node):
        """What it has by then: nothing of ours was started."""
        tell_devices(self.cluster, node, DEVICES[node], other(0, 1000), generation=int(self.clock.now * 10))

    @invariant()
    def what_is_held_is_for_pods_that_wait_and_hold_no_room_of_their_own(self):
        waiting = {uid: row for uid, row in self.rows.items() if not row.node and not row.gated}
        table = self.cluster._nodes
        for node in "abc":
            view = self.cluster.view(node)
            for group, there in view.held.items():
                planned = [
                    row
                    for uid, row in waiting.items()
                    if table.group_holds.place(uid) is not None and table.group_holds.place(uid).node == node
                    if f"default/{row.annotations['group.numakin.io']}" == group and table.held(uid) is None
                ]
                assert sum(entry.demand.cpu_milli for entry in there) == sum(row.demand.cpu_milli for row in planned)

    @invariant()
    def a_view_shows_what_is_reported_assumed_and_held_and_nothing_else(self):
        for node in "abc":
            view = self.cluster.view(node)
            anew = NodeView(
                node, "s", "1", view.machine, view.reported, assumed=view.assumed, held=view.held, ended=view.ended
            )
            assert view.occupancy.fingerprint == anew.occupancy.fingerprint
            assert view.occupancy.live == anew.occupancy.live
            bare = replace(anew, held={}, occupancy=Occupancy())
            assert view.bare.held == {}
            assert view.bare.occupancy.fingerprint == bare._expected().fingerprint
            assert view.bare.occupancy.live == bare._expected().live

    def teardown(self):
        self.cluster.apply_pods(Changes(whole=True))
        self.cluster.reserve()
        assert all(not held(self.cluster, node) for node in "abc")


TestHolds = Holds.TestCase
TestHolds.settings = settings(max_examples=examples.of(25), stateful_step_count=25, deadline=None)
