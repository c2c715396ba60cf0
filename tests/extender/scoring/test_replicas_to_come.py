"""What controllers are about to create counts for where the first pods of a group go: each replica once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.cluster import Cluster
from extender.scoring.replicas_to_come import FORMER_S, MOST_FORMER, ReplicasToCome
from extender.state.pods import Changes, OwnerRow, PodRow
from extender.state.told_groups import DEPLOYMENTS, JOBS, ToldReplicas, ToldRow
from numakin.placement.model.demand import Demand
from tests.clock import Clock
from tests.extender.machines import pod
from tests.extender.running import reservation
from tests.extender.told import tell

WEB, DB = "default/Deployment/web", "default/Deployment/db"


def kept(name: str, count: int, *, milli: int = 1000, group: str = "shop", anywhere: bool = True) -> ToldRow:
    """A Deployment that keeps so many pods of the group."""
    workload = f"default/Deployment/{name}"
    return ToldRow(
        f"default/{name}", replicas=ToldReplicas(workload, f"default/{group}", count, Demand(milli), anywhere)
    )


def of(name: str, count: int, *, first: int = 0, kind: str = "Deployment", **more) -> list[PodRow]:
    fields = {key: more.pop(key) for key in ("leaving", "phase") if key in more}
    rows = [pod(f"{name}-{at}", cpu="1", memory="1Mi", **more) for at in range(first, first + count)]
    return [replace(row, owner=OwnerRow(kind, name), **fields) for row in rows]


def to_come(cluster: Cluster, group: str = "default/shop") -> dict[str, int]:
    return {each.workload: each.count for each in cluster._nodes.to_come.of(group)}


def room(cluster: Cluster, row: PodRow) -> int:
    """What is thought to come after the pod, in millicores."""
    asked = cluster.wanted(row)
    assert asked is not None
    return cluster.prepared(asked, ["a"]).offer.kins.no_kin.room_milli


def says(cluster: Cluster, *rows: ToldRow, kind: str = DEPLOYMENTS, whole: bool = True) -> None:
    cluster.told(kind, Changes(rows=rows, whole=whole))


def planned(cluster: Cluster) -> dict[str, int]:
    """By place, millicores that are held."""
    return {
        f"{place.node}/{place.numa_node}": demand.cpu_milli
        for places in cluster.held().values()
        for place, demand in places.items()
    }


@pytest.fixture
def nodes(cluster: Cluster) -> Cluster:
    """NUMA node 1 of a has 4 CPUs free; all others have 8, and are used by another group."""
    for node in ("a", "b"):
        others = [reservation(f"{node}{home}", f"{home}", group="default/other", milli=100) for home in (0, 1)]
        busy = [reservation("full", "1", group="", milli=3900)] if node == "a" else []
        tell(cluster, node, *others, *busy)
    return cluster


def test_the_first_pod_of_a_group_goes_where_all_its_replicas_have_room(nodes: Cluster):
    says(nodes, kept("web", 6))
    nodes.apply_pods(Changes(rows=tuple(of("web", 1))))
    nodes.reserve()
    assert planned(nodes) in ({"a/0": 1000}, {"b/0": 1000}, {"b/1": 1000}), "and not where three more have room"


def test_so_it_does_where_those_of_another_workload_of_its_group_are_to_come(nodes: Cluster):
    says(nodes, kept("web", 1), kept("db", 6))
    nodes.apply_pods(Changes(rows=tuple(of("web", 1))))
    nodes.reserve()
    assert planned(nodes) in ({"a/0": 1000}, {"b/0": 1000}, {"b/1": 1000})


def test_room_is_held_for_those_alone_that_wait(nodes: Cluster):
    says(nodes, kept("web", 6))
    nodes.apply_pods(Changes(rows=tuple(of("web", 2))))
    nodes.reserve()
    assert list(planned(nodes).values()) == [2000]


def test_no_group_that_is_planned_with_it_gets_the_room_of_those_to_come(nodes: Cluster):
    """Two groups of six come at once, two pods of each at first: on no NUMA node is room for both."""
    says(nodes, kept("web", 6), kept("db", 6, group="store"))
    nodes.apply_pods(Changes(rows=(*of("web", 2), *of("db", 2, group="store"))))
    nodes.reserve()
    assert len(planned(nodes)) == 2


def test_a_pod_that_was_to_come_has_its_place_from_the_moment_that_it_is_created(nodes: Cluster):
    says(nodes, kept("web", 6))
    nodes.apply_pods(Changes(rows=tuple(of("web", 1))))
    nodes.reserve()
    (place,) = planned(nodes)
    nodes.apply_pods(Changes(rows=tuple(of("web", 5, first=1))))
    assert planned(nodes) == {place: 6000}
    nodes.apply_pods(Changes(rows=tuple(of("web", 1, first=6))))
    assert planned(nodes) == {place: 6000}, "beyond what its controller says"


def test_between_two_of_its_pods_the_room_of_the_others_is_in_the_plan_still(nodes: Cluster, clock: Clock):
    """One is bound, and none waits, when another group comes."""
    says(nodes, kept("web", 7), kept("db", 4, group="store"))
    (first,) = of("web", 1)
    nodes.apply_pods(Changes(rows=(first,)))
    nodes.reserve()
    (place,) = planned(nodes)
    node, _, _numa = place.partition("/")
    asked = nodes.wanted(first)
    assert asked is not None
    nodes.score(asked, ["a", "b"])
    nodes.apply_pods(Changes(rows=(replace(first, node=node),)))
    nodes.reserve()
    nodes.apply_pods(Changes(rows=tuple(of("db", 1, group="store"))))
    nodes.reserve()
    assert place not in planned(nodes)
    nodes.apply_pods(Changes(rows=tuple(of("web", 6, first=1))))
    assert planned(nodes)[place] == 6000


def test_a_draft_has_the_places_of_those_to_come_too(nodes: Cluster):
    says(nodes, kept("web", 3))
    nodes.apply_pods(Changes(rows=tuple(of("web", 1))))
    nodes.reserve()
    draft = nodes.draft()
    draft.apply_pods(Changes(rows=tuple(of("web", 2, first=1))))
    assert (list(planned(draft).values()), list(planned(nodes).values())) == ([3000], [1000])


def test_what_comes_after_a_pod_is_what_waits_and_what_is_not_created_yet(nodes: Cluster):
    says(nodes, kept("web", 6), kept("db", 2, milli=3000, anywhere=False))
    rows = of("web", 3)
    nodes.apply_pods(Changes(rows=tuple(rows), whole=True))
    assert room(nodes, rows[0]) == 2000 + 3000 + 6000


def test_a_pod_that_the_watch_has_not_shown_is_not_to_come_beside_itself(nodes: Cluster):
    nodes.apply_pods(Changes(whole=True))
    says(nodes, kept("web", 6))
    assert room(nodes, of("web", 1)[0]) == 5000


class TestARollingUpdate:
    """Of six replicas, with a surge of two: the new ones are in place of the old ones, and counted once."""

    @pytest.fixture
    def before(self, nodes: Cluster) -> Cluster:
        says(nodes, kept("web", 6))
        nodes.apply_pods(Changes(rows=tuple(of("web", 6, node="a")), whole=True))
        return nodes

    def test_those_beyond_are_not_to_come(self, before: Cluster):
        before.apply_pods(Changes(rows=tuple(of("web", 2, first=6))))
        assert to_come(before) == {}

    def test_those_that_are_being_deleted_are_to_come_again(self, before: Cluster):
        before.apply_pods(Changes(rows=tuple(of("web", 2, node="a", leaving=True))))
        assert to_come(before) == {WEB: 2}
        before.apply_pods(Changes(rows=tuple(of("web", 2, first=6))))
        assert to_come(before) == {}

    def test_also_once_the_last_old_one_is_gone_nothing_is(self, before: Cluster):
        for at in range(6):
            before.apply_pods(Changes(rows=tuple(of("web", 1, first=6 + at, node="a")), gone=(f"web-{at}",)))
        assert to_come(before) == {}


def test_scaled_up_and_down_it_is_what_its_controller_says_last(nodes: Cluster):
    nodes.apply_pods(Changes(rows=tuple(of("web", 2)), whole=True))
    for count, left in ((5, {WEB: 3}), (9, {WEB: 7}), (1, {})):
        says(nodes, kept("web", count), whole=False)
        assert to_come(nodes) == left


@pytest.mark.parametrize(
    "after",
    [
        Changes(gone=("default/web",)),
        Changes(rows=(ToldRow("default/web"),)),
        Changes(rows=(kept("db", 1),), whole=True),
        Changes(rows=(kept("web", 6, group="elsewhere"),)),
    ],
    ids=["deleted", "scaled to none", "not listed", "of another group"],
)
def test_a_controller_that_keeps_none_of_the_group_any_more_has_none_to_come(nodes: Cluster, after: Changes[ToldRow]):
    says(nodes, kept("web", 6), kept("db", 1))
    nodes.told(DEPLOYMENTS, after)
    assert WEB not in to_come(nodes)
    assert to_come(nodes)[DB] == 1


def test_what_one_kind_lists_says_nothing_of_another(nodes: Cluster):
    says(nodes, kept("web", 6))
    says(nodes, kind=JOBS)
    assert to_come(nodes) == {WEB: 6}


class TestItsFormerLife:
    """Of a group whose controllers say nothing that is watched: six members, of which four are deleted."""

    @pytest.fixture
    def left(self, nodes: Cluster) -> Cluster:
        nodes.apply_pods(Changes(rows=tuple(of("set", 6, kind="CloneSet", node="a")), whole=True))
        nodes.apply_pods(Changes(gone=tuple(f"set-{at}" for at in range(4))))
        return nodes

    WORKLOAD = "default/CloneSet/set"

    def test_they_are_expected_to_come_again(self, left: Cluster):
        assert to_come(left) == {self.WORKLOAD: 4}

    def test_each_that_comes_is_in_the_place_of_one(self, left: Cluster):
        left.apply_pods(Changes(rows=tuple(of("set", 3, kind="CloneSet", first=6))))
        assert to_come(left) == {self.WORKLOAD: 1}

    def test_after_a_while_they_are_not_any_more(self, left: Cluster, clock: Clock):
        clock.now += FORMER_S
        left.reserve()
        assert to_come(left) == {}

    def test_nor_once_none_of_the_workload_is_there(self, left: Cluster):
        left.apply_pods(Changes(gone=("set-4", "set-5")))
        assert to_come(left) == {}

    def test_what_a_controller_says_goes_before_it(self, left: Cluster):
        row = replace(kept("set", 3), replicas=ToldReplicas(self.WORKLOAD, "default/shop", 3, Demand(1000)))
        says(left, row)
        assert to_come(left) == {self.WORKLOAD: 1}


@pytest.mark.parametrize("kind", ["Job", "DaemonSet", "Node"])
def test_pods_that_end_or_are_bound_to_their_node_do_not_come_again(nodes: Cluster, kind: str):
    nodes.apply_pods(Changes(rows=tuple(of("some", 3, kind=kind, node="a")), whole=True))
    nodes.apply_pods(Changes(gone=("some-0",)))
    assert to_come(nodes) == {}


def test_of_those_that_were_deleted_so_many_are_remembered():
    come = ReplicasToCome()
    rows = of("set", MOST_FORMER + 5, kind="CloneSet", node="a")
    for row in [*rows, *of("other", 1, kind="CloneSet", node="a")]:
        come.pod_changed(None, row, 0)
    for row in rows:
        come.pod_changed(row, None, 0)
    assert len(come._former) == MOST_FORMER


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from(["web", "db"]), st.integers(0, 4)),
        st.tuples(
            st.sampled_from(["create", "bind", "leave", "delete"]), st.sampled_from(["web", "db"]), st.integers(0, 5)
        ),
        st.tuples(st.just("wait"), st.just(""), st.integers(0, 90)),
    ),
    max_size=40,
)


@given(STEPS)
def test_in_any_order_it_is_what_is_said_less_what_is_there_and_a_copy_says_the_same(steps):
    come, rows, said, now = ReplicasToCome(), {}, Counter(), 0
    for what, name, number in steps:
        uid, workload = f"{name}-{number}", f"default/Deployment/{name}"
        before = rows.get(uid)
        if what == "say":
            said[workload] = number
            row = kept(name, number) if number else ToldRow(f"default/{name}")
            come.told(DEPLOYMENTS, [row], [], now, whole=False)
        elif what == "wait":
            now += number
        else:
            made = {"create": before or of(name, 1, first=number)[0], "delete": None}
            if what in ("bind", "leave"):
                made[what] = (
                    replace(before, **{"bind": {"node": "a"}, "leave": {"leaving": True}}[what]) if before else None
                )
            after = made[what]
            come.pod_changed(before, after, now)
            rows = {other: row for other, row in rows.items() if other != uid} | ({uid: after} if after else {})
        there = Counter(row.workload for row in rows.values() if not row.leaving)
        for each in (come, come.copy()):
            found = {row.workload: row.count for row in each.of("default/shop")}
            for workload, count in said.items():
                if count:
                    assert found.get(workload, 0) == max(0, count - there[workload])
