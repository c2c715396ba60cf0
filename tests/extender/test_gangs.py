"""Pods that kube-scheduler tries and does not bind: whose room is held, for whom, and for how long."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.cluster import Cluster
from extender.kube.rows import PodObject, PodRows
from extender.scheduler.wire import arguments
from extender.scoring.group_holds import GROWS_S
from extender.settings import Settings
from extender.state.pods import Changes, OwnerRow, PodRow
from extender.state.told_groups import (
    COSCHEDULED,
    COSCHEDULING,
    POD_GROUPS,
    SIZES,
    STATEFUL_SETS,
    ToldReplicas,
    ToldRow,
    size,
)
from extender.views.explain import explain
from lab.standins.scheduler.cache import MOST_PODS, Room
from lab.standins.scheduler.gang import GangPod, try_gang
from lab.standins.scheduler.scheduler import Scheduler
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.state.occupancy import Reservation
from tests import examples
from tests.clock import Clock
from tests.extender.machines import pod, want
from tests.extender.running import machine
from tests.extender.told import reservations_of, scores, tell

GIB = 1 << 30
NODES = ["a", "b", "c"]


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """Three nodes of two NUMA nodes with eight CPUs each."""
    for node in NODES:
        tell(cluster, node)
    return cluster


def gang(count: int, cpu: str = "4", name: str = "train", **keys: str) -> list[PodRow]:
    """Pods of one PodGroup, as the API server has them."""
    return [replace(pod(f"{name}-{at}", group=name, cpu=cpu, **keys), scheduling_group=name) for at in range(count)]


class KubeScheduler:
    """Its side of the extender, by calls in this process. rows: of the pods that it may ask about, by uid."""

    def __init__(self, cluster: Cluster, rows: Sequence[PodRow]) -> None:
        self._cluster, self._rows = cluster, {row.uid: row for row in rows}
        rooms = {node: Room(16_000, 32 * GIB, MOST_PODS) for node in NODES}
        self.scheduler = Scheduler(rooms, self, random=Random(1))

    def prioritize(self, asked: Mapping[str, Any], nodes: Sequence[str]) -> dict[str, int]:
        asked_for = self._cluster.wanted(self._rows[asked["uid"]])
        assert asked_for is not None
        return scores(self._cluster, asked_for, *nodes)

    def try_once(self, placements: Sequence[Sequence[str]] = ()) -> Mapping[str, str]:
        """By uid the nodes that were chosen; empty where they do not fit."""
        pods = [GangPod({"uid": uid}, "w", _room(row)) for uid, row in self._rows.items()]
        choices = try_gang(self.scheduler, pods, placements)
        return {uid: choice.node for uid, choice in zip(self._rows, choices or (), strict=False)}


def _room(row: PodRow) -> Room:
    return Room(row.demand.cpu_milli, row.demand.memory)


def occupied(cluster: Cluster) -> dict[str, list[str]]:
    """By node who holds room there, as others find it."""
    _ = cluster.figures()
    return {node: held for node in NODES if (held := sorted(reservations_of(cluster, node)))}


def others(numa_node: int, cpus: int) -> Reservation:
    """CPUs of who has not opted in."""
    return Reservation(f"id-{numa_node}", "other", "", NumaSet.of((numa_node,)), Demand(1000 * cpus))


def bind(cluster: Cluster, row: PodRow, node: str) -> None:
    cluster.apply_pods(Changes(rows=(replace(row, node=node),)))


def test_a_try_takes_nothing_from_its_pods_that_are_asked_about_first_though_the_last_one_had_no_place_for_them(
    cluster: Cluster,
):
    """NUMA node 0 has become free in between."""
    tell(cluster, "a", others(0, 5), others(1, 5), generation=2)
    rows = [*gang(1, cpu="7"), *gang(3, cpu="2")[1:]]
    cluster.apply_pods(Changes(rows=tuple(rows), whole=True))
    for _ in range(2):
        for row in rows:
            scores(cluster, cluster.wanted(row), "a")
        tell(cluster, "a", others(1, 5), generation=3)
    for row in rows:
        bind(cluster, row, "a")
    assert reservations_of(cluster, "a")["train-0"] == "0", "it was given seven of its eight CPUs"


def test_a_gang_that_fits_nowhere_holds_no_room_against_others_however_often_it_is_tried(cluster: Cluster):
    rows = gang(150)
    cluster.apply_pods(Changes(rows=tuple(rows)))
    before = scores(cluster, want("probe", group="next"), *NODES)
    cluster.apply_pods(Changes(gone=("probe",)))
    scheduler = KubeScheduler(cluster, rows)
    for _ in range(3):
        assert scheduler.try_once() == {}
        assert occupied(cluster) == {}
        assert scores(cluster, want("probe2", group="next"), *NODES) == before
        cluster.apply_pods(Changes(gone=("probe2",)))


def test_nor_does_it_make_a_filter_refuse_a_strict_pod(cluster: Cluster):
    rows = gang(150)
    cluster.apply_pods(Changes(rows=tuple(rows)))
    KubeScheduler(cluster, rows).try_once()
    assert cluster.refusals(want("p", group="next", policy="single-numa-node", cpu="8"), NODES) == {}


def test_its_own_pods_see_what_it_holds_and_never_overcommit_a_numa_node(cluster: Cluster):
    rows = gang(8)
    cluster.apply_pods(Changes(rows=tuple(rows)))
    chosen = KubeScheduler(cluster, rows).try_once()
    assert len(chosen) == 8
    for row in rows:
        bind(cluster, row, chosen[row.uid])
    homes: dict[tuple[str, str], int] = {}
    for node in NODES:
        for numa_node in reservations_of(cluster, node).values():
            homes[node, numa_node] = homes.get((node, numa_node), 0) + 1
    assert set(homes.values()) == {2}


def test_once_one_of_it_is_bound_all_that_it_holds_counts_for_every_pod(cluster: Cluster):
    rows = gang(4)
    cluster.apply_pods(Changes(rows=tuple(rows)))
    chosen = KubeScheduler(cluster, rows).try_once()
    assert occupied(cluster) == {}
    bind(cluster, rows[0], chosen[rows[0].uid])
    assert sum(map(len, occupied(cluster).values())) == 4


def test_what_is_learned_meanwhile_makes_its_room_count_for_no_other_pod(cluster: Cluster, clock: Clock):
    waiting = [pod(f"shop-{at}", group="shop", cpu="7", memory="1Mi") for at in range(6)]
    rows = gang(4, cpu="500m", memory="1Mi")
    cluster.apply_pods(Changes(rows=(*waiting, *rows)))
    cluster.reserve()
    clock.now += GROWS_S + 1
    for node in NODES:
        cluster.received(node)
    cluster.reserve()
    assert all(view.held for node in NODES if (view := cluster.view(node)) is not None)
    assert len(KubeScheduler(cluster, rows).try_once()) == 4
    cluster.learned(cluster.known)
    assert {row.uid for row in rows}.isdisjoint(uid for held in occupied(cluster).values() for uid in held)


def test_what_was_offered_in_the_placements_that_were_not_chosen_does_not_stay(cluster: Cluster):
    rows = gang(4)
    cluster.apply_pods(Changes(rows=tuple(rows)))
    chosen = KubeScheduler(cluster, rows).try_once([["a", "b"], ["b", "c"]])
    assert {*chosen.values()} <= {"a", "b"}
    for row in rows:
        bind(cluster, row, chosen[row.uid])
    assert {uid for held in occupied(cluster).values() for uid in held} == {*chosen}
    assert occupied(cluster).keys() <= {"a", "b"}


def test_a_gang_of_coscheduling_is_known_by_its_label(cluster: Cluster):
    rows = [replace(pod(f"p{at}", cpu="4"), labels={COSCHEDULING: "train"}) for at in range(2)]
    cluster.apply_pods(Changes(rows=tuple(rows)))
    for row in rows:
        asked = cluster.wanted(row)
        assert asked is not None
        cluster.score(asked, NODES)
    assert occupied(cluster) == {}
    bind(cluster, rows[0], "a")
    assert sum(map(len, occupied(cluster).values())) == 2


@pytest.mark.parametrize(
    ("spec", "gang"),
    [
        ({"schedulingGroup": {"podGroupName": "g"}}, "ns/g"),
        ({"workloadRef": {"name": "w", "podGroup": "g", "podGroupReplicaKey": "0"}}, "ns/w.g.0"),
        ({"workloadRef": {"name": "w", "podGroup": "g"}}, "ns/w.g"),
        ({}, ""),
    ],
    ids=["1.36", "1.35", "1.35, without replicas", "none"],
)
def test_kube_scheduler_s_request_and_the_api_server_name_the_gang_alike(spec: dict[str, Any], gang: str):
    metadata = {"name": "p", "namespace": "ns", "uid": "u"}
    body = {"Pod": {"metadata": metadata, "spec": spec}, "Nodes": None, "NodeNames": ["a"]}
    assert arguments(json.dumps(body).encode()).pod.gang == gang
    stored = msgspec.convert({"metadata": metadata, "spec": spec}, PodObject)
    assert PodRows().row(stored).gang == gang


@pytest.mark.parametrize("key", SIZES)
def test_a_group_s_size_that_another_controller_writes_counts_as_what_is_to_come(cluster: Cluster, key: str):
    """The first of ten, before the others are created: only the larger NUMA nodes have room for all."""
    tell(cluster, "a", generation=2, of=machine(2, 4))
    row = pod("p", cpu="1")
    told = replace(row, annotations={**row.annotations, key: "6"})
    asked, plain = cluster.wanted(told), cluster.wanted(row)
    assert asked is not None
    assert plain is not None
    assert cluster.prepared(asked, ("a", "b")).offer.kins.no_kin.room_milli == 5000
    assert cluster.prepared(plain, ("a", "b")).offer.kins.no_kin.room_milli == 0


@pytest.mark.parametrize("text", ["", "0", "-1", "ten", "99999", "1e3"])
def test_a_size_that_is_none_counts_as_none(text: str):
    assert size({SIZES[0]: text}) == 0


def test_a_size_that_another_controllers_object_gives_counts_until_it_is_gone(cluster: Cluster):
    row = replace(pod("p", cpu="1"), labels={COSCHEDULING: "train"})
    asked = cluster.wanted(row)
    assert asked is not None

    def to_come() -> int:
        return cluster.prepared(asked, ("a", "b")).offer.kins.no_kin.room_milli

    told = ToldRow("default/train", {f"{COSCHEDULED} default/train": 6})
    cluster.told(COSCHEDULED, Changes(rows=(told,), whole=True))
    assert to_come() == 5000
    cluster.told(COSCHEDULED, Changes(gone=("default/train",)))
    assert to_come() == 0


def test_the_replicas_that_a_stateful_set_makes_one_after_another_are_to_come(cluster: Cluster):
    """Each once the one before is ready: of four, two are there."""
    rows = [replace(pod(f"db-{at}", group="db", cpu="1"), owner=OwnerRow("StatefulSet", "db")) for at in range(2)]
    kept = ToldReplicas("default/StatefulSet/db", "default/db", 4, Demand(1000))
    cluster.told(STATEFUL_SETS, Changes(rows=(ToldRow("default/db", replicas=kept),), whole=True))
    cluster.apply_pods(Changes(rows=(replace(rows[0], node="a"), rows[1])))
    asked = cluster.wanted(rows[1])
    assert asked is not None
    assert cluster.prepared(asked, NODES).offer.kins.no_kin.room_milli == 2000


def test_a_gang_that_is_given_up_holds_nothing_from_then_on(cluster: Cluster):
    """Though none of its pods says so yet, and one of its own is asked about."""
    rows = gang(4)
    cluster.apply_pods(Changes(rows=tuple(rows)))
    assert KubeScheduler(cluster, rows).try_once()
    refused = ToldRow("default/train", {}, refused=7)
    cluster.told(POD_GROUPS, Changes(rows=(refused,)))
    assert cluster.figures().assumed == ()
    assert KubeScheduler(cluster, rows).try_once()
    cluster.told(POD_GROUPS, Changes(rows=(replace(refused, sizes={"x": 1}),)))
    assert len(cluster.figures().assumed) == 4, "it says nothing new"


def waits(cluster: Cluster, clock: Clock, *rows: PodRow) -> dict[str, int]:
    """They have been there for a while. By group, for how many millicores room is held."""
    cluster.apply_pods(Changes(rows=rows))
    cluster.reserve()
    clock.now += GROWS_S + 1
    for node in NODES:
        cluster.received(node)
    cluster.reserve()
    return {group: sum(each.cpu_milli for each in there.values()) for group, there in cluster.held().items()}


TOLD_BY_PODS = [replace(row, unscheduled=1) for row in gang(4)]
TOLD_BY_GROUP = ToldRow("default/train", {}, refused=1)


@pytest.mark.parametrize(
    "give_up",
    [
        lambda cluster: cluster.apply_pods(Changes(rows=tuple(TOLD_BY_PODS))),
        lambda cluster: cluster.told(POD_GROUPS, Changes(rows=(TOLD_BY_GROUP,))),
    ],
    ids=["its pods say so", "its PodGroup says so"],
)
def test_no_room_is_held_for_the_waiting_pods_of_a_gang_that_was_given_up(cluster: Cluster, clock: Clock, give_up):
    assert waits(cluster, clock, *gang(4)) == {"default/train": 16_000}
    give_up(cluster)
    assert cluster.held() == {}
    cluster.reserve()
    assert cluster.held() == {}, "nor by the next plan"
    assert waits(cluster, clock, *gang(6)[4:]) == {"default/train": 8_000}, "what comes anew was not tried yet"


def test_nor_for_a_gang_of_which_not_all_fit(cluster: Cluster, clock: Clock):
    others = gang(2, name="small")
    assert waits(cluster, clock, *gang(13), *others) == {"default/small": 8_000}


@pytest.mark.parametrize("asked_before", [1, 2])
def test_a_gang_that_is_planned_while_it_is_tried_is_together(cluster: Cluster, asked_before: int):
    """Its first pods are where there was room; another with more is free by the time it is planned."""
    full = [others(0, 8), others(1, 8)]
    for node in NODES:
        tell(cluster, node, *([others(0, 1), full[1]] if node == "a" else full))
    rows = gang(3, cpu="2")
    cluster.apply_pods(Changes(rows=tuple(rows)))
    for at, row in enumerate(rows):
        if at == asked_before:
            tell(cluster, "a", others(0, 1), generation=2)
            cluster.reserve()
        asked = cluster.wanted(row)
        assert asked is not None
        scores(cluster, asked, *NODES)
    bind(cluster, rows[0], "a")
    homes = {name: home for name, home in reservations_of(cluster, "a").items() if "train" in name}
    assert len(homes) == 3
    assert {*homes.values()} == {"0"}


def test_a_gang_that_is_tried_between_the_questions_about_a_group_does_not_take_it_apart(
    cluster: Cluster, clock: Clock
):
    rows = gang(13)
    waits(cluster, clock, *rows)
    scheduler = KubeScheduler(cluster, rows)
    assert scheduler.try_once() == {}
    cluster.apply_pods(Changes(rows=tuple(replace(row, unscheduled=1) for row in rows)))
    cluster.reserve()
    members = [pod(f"next-{at}", group="next", cpu="1") for at in range(6)]
    for member in members:
        cluster.apply_pods(Changes(rows=(member,)))
        asked = cluster.wanted(member)
        assert asked is not None
        scores(cluster, asked, *NODES)
        scheduler.try_once()
    homes = {(node, home) for node in occupied(cluster) for home in reservations_of(cluster, node).values()}
    assert len(homes) == 1


def test_explain_says_for_whom_the_room_is_held(cluster: Cluster):
    (row,) = gang(1)
    cluster.apply_pods(Changes(rows=(row,)))
    KubeScheduler(cluster, [row]).try_once()
    answer = explain(cluster, "default", row.name)
    assert answer is not None
    assert (answer["expected"]["gang"], answer["expected"]["counts_for_its_gang_alone"]) == ("default/train", True)


class TestEndOfAHold:
    """Of a pod that was scored and is not bound."""

    @pytest.fixture(autouse=True)
    def scored(self, cluster: Cluster) -> None:
        cluster.apply_pods(Changes(rows=(pod("p"),), whole=True))
        cluster.score(want("p"), NODES)
        assert occupied(cluster)

    def test_it_ends_when_kube_scheduler_says_that_it_has_given_up(self, cluster: Cluster):
        cluster.apply_pods(Changes(rows=(replace(pod("p"), unscheduled=1),)))
        assert occupied(cluster) == {}

    def test_not_again_for_a_change_that_says_nothing_new(self, cluster: Cluster):
        cluster.apply_pods(Changes(rows=(replace(pod("p"), unscheduled=1),)))
        cluster.score(want("p"), NODES)
        cluster.apply_pods(Changes(rows=(replace(pod("p"), unscheduled=1, priority=1),)))
        assert occupied(cluster)

    def test_it_ends_when_kube_scheduler_asks_about_the_pod_anew(self, cluster: Cluster):
        cluster.refusals(want("p", cpu="99"), NODES)
        assert occupied(cluster), "a pod that the API server has with other requests says nothing"
        cluster.refusals(want("p", policy="restricted"), NODES)
        assert occupied(cluster) == {}

    def test_a_pod_that_was_given_up_before_holds_its_room_for_a_moment_only(self, cluster: Cluster, clock: Clock):
        """Given up once more for the same reason, its condition stays as it is."""
        cluster.apply_pods(Changes(rows=(replace(pod("p"), unscheduled=1),)))
        cluster.score(want("p"), NODES)
        clock.now += 4
        assert occupied(cluster)
        clock.now += 2
        assert occupied(cluster) == {}

    def test_a_bound_pod_keeps_its_room_whatever_is_asked(self, cluster: Cluster):
        bind(cluster, pod("p"), next(iter(occupied(cluster))))
        cluster.refusals(want("p"), NODES)
        cluster.apply_pods(Changes(rows=(replace(pod("p"), unscheduled=1, node=next(iter(occupied(cluster)))),)))
        assert occupied(cluster)


class TestAFilterCallAlone:
    """One node is left, so that kube-scheduler, if it was kube-scheduler, asks for no score."""

    def test_it_holds_nothing(self, cluster: Cluster):
        cluster.apply_pods(Changes(rows=(pod("p"),)))
        cluster.passed(want("p"), "a")
        assert occupied(cluster) == {}

    def test_it_counts_within_a_gang(self, cluster: Cluster):
        """A placement of one node is never scored."""
        rows = gang(5, policy="single-numa-node")
        cluster.apply_pods(Changes(rows=tuple(rows)))
        for row in rows[:4]:
            asked = cluster.wanted(row)
            assert asked is not None
            assert not cluster.refusals(asked, ["a"])
            cluster.passed(asked, "a")
        last = cluster.wanted(rows[4])
        assert last is not None
        assert cluster.refusals(last, ["a"])
        assert occupied(cluster) == {}

    def test_a_strict_pod_waits_for_its_binding(self):
        """Or both would be let in where one has room."""
        patient = []
        cluster = Cluster(Settings(report_timeout=60, hold=30, patience=0.25), Clock())
        tell(cluster, "a", of=machine(1))
        strict = {"policy": "single-numa-node", "cpu": "8"}
        cluster.apply_pods(Changes(rows=(pod("p", **strict), pod("q", **strict)), whole=True))
        cluster.passed(want("p", **strict), "a")

        def show(_row: PodRow, longest_s: float) -> None:
            patient.append(longest_s)
            bind(cluster, pod("p", **strict), "a")

        cluster.wait.asked = show
        assert cluster.refusals(want("q", **strict), ["a"])
        assert patient == [0.25]


@dataclass
class Truth:
    """Who holds room, by what kube-scheduler has done; told apart from the cluster's own books.

    held: by pod, when it ends and whether the pod is bound. published: pods of gangs of which one was bound in this try.
    """

    held: dict[str, tuple[float, bool]] = field(default_factory=dict)
    published: set[str] = field(default_factory=set)

    def asked(self, uid: str) -> None:
        if uid not in self.held or self.held[uid][1]:
            return
        for other in [other for other in self.held if other == uid or _gang(other) == _gang(uid) != ""]:
            if not self.held[other][1]:
                del self.held[other]

    def expire(self, now: float) -> None:
        self.held = {uid: (until, bound) for uid, (until, bound) in self.held.items() if until > now}

    def seen_by(self, gang_name: str) -> set[str]:
        return {
            uid
            for uid, (_, bound) in self.held.items()
            if bound or _gang(uid) in ("", gang_name) or uid in self.published
        }


UIDS = ["x-0", "x-1", "x-2", "y-0", "y-1", "s-0", "s-1"]
"""Of two gangs, and two by themselves."""


def _gang(uid: str) -> str:
    return f"default/{uid[0]}" if uid[0] in "xy" else ""


def _row(uid: str, **fields: Any) -> PodRow:
    return replace(pod(uid, group=uid[0], cpu="1"), scheduling_group=uid[0] if _gang(uid) else "", **fields)


STEPS = st.one_of(
    st.tuples(st.sampled_from(["score", "filter", "bind", "give up", "end", "elsewhere"]), st.sampled_from(UIDS)),
    st.tuples(st.just("wait"), st.sampled_from([1, 6, 31])),
)


@settings(max_examples=examples.of(150), deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_whatever_kube_scheduler_does_each_pod_finds_the_room_that_is_held_against_it_and_no_more(steps):
    clock = Clock()
    cluster, truth = Cluster(Settings(report_timeout=1e9, hold=30, patience=0), clock), Truth()
    for node in NODES:
        tell(cluster, node)
    bound: dict[str, str] = {}
    rows = {uid: _row(uid) for uid in UIDS}
    cluster.apply_pods(Changes(rows=tuple(rows.values()), whole=True))
    for number, (what, which) in enumerate(steps, 1):
        if what == "wait":
            clock.now += which
        elif what == "end":
            cluster.apply_pods(Changes(gone=(which,)))
            rows[which] = _row(which)
            cluster.apply_pods(Changes(rows=(rows[which],)))
            bound.pop(which, None)
            truth.held.pop(which, None)
        elif which in bound:
            continue
        elif what in ("score", "filter"):
            truth.expire(clock.now)
            truth.asked(which)
            asked = cluster.wanted(rows[which])
            assert asked is not None
            if what == "score":
                cluster.score(asked, NODES)
                lasts = 5 if rows[which].unscheduled else 30
                truth.held[which] = clock.now + lasts, False
                truth.published.discard(which)
            else:
                cluster.refusals(asked, NODES)
        elif what in ("bind", "elsewhere"):
            truth.expire(clock.now)
            node = next((each for each in NODES if which in _held(cluster, _gang(which))[each]), "a")
            node = node if what == "bind" else next(each for each in NODES if each != node)
            rows[which] = replace(rows[which], node=node)
            cluster.apply_pods(Changes(rows=(rows[which],)))
            bound[which] = node
            truth.held[which] = math.inf, True
            truth.published |= {uid for uid in truth.held if _gang(uid) == _gang(which)}
        else:
            rows[which] = replace(rows[which], unscheduled=number)
            cluster.apply_pods(Changes(rows=(rows[which],)))
            truth.held.pop(which, None)
        truth.expire(clock.now)
        for gang_name in ("", "default/x", "default/y"):
            found = {uid for pods in _held(cluster, gang_name).values() for uid in pods}
            assert found == truth.seen_by(gang_name), (what, which, gang_name)


def _held(cluster: Cluster, gang_name: str) -> dict[str, set[str]]:
    """By node whose room a new pod of the gang would find held."""
    new = replace(pod("probe", group="probe", cpu="100m"), scheduling_group=gang_name.rpartition("/")[2])
    asked = cluster.wanted(new)
    assert asked is not None
    offer = cluster.prepared(asked, tuple(NODES)).offer
    return {row.node: set(row.view.assumed) for row in offer.rows if row.view is not None}
