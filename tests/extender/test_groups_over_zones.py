"""Groups whose pods are spread over zones, or keep off each other there, are planned in pieces, each as whole as may be,
and nowhere where kube-scheduler would not let them go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.cluster import Cluster
from extender.kube.stream import nodes as node_rows
from extender.kube.stream import pods as pod_rows
from extender.planning.pieces import MOST_CELLS
from extender.scoring.group_holds import GROWS_S
from extender.settings import Settings
from extender.state.node_domains import ZONE
from extender.state.pod_terms import HOST
from extender.state.pods import Changes, PodRow
from tests.clock import Clock
from tests.extender import pod_rules
from tests.extender.pod_rules import Object
from tests.extender.told import other, tell

ZONES = {"a": "x", "b": "y", "c": "z", "d": "x", "e": "y", "f": "z"}
"""By node."""


def spread(app: str, key: str = ZONE, skew: int = 1, **more: Any) -> Object:
    selector = {"matchLabels": {"app": app}}
    return {
        "topologyKey": key,
        "labelSelector": selector,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule",
        **more,
    }


def away(app: str, key: str = HOST) -> Object:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def beside(app: str) -> Object:
    """In one zone with them."""
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def replicas(app: str, count: int, *, cpu: str = "2", **spec: Any) -> list[Object]:
    """Of one workload, not bound yet. spec: of what else they say."""
    metadata = {
        "namespace": "default",
        "labels": {"app": app},
        "annotations": {"group.numakin.io": "shop"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": app, "uid": app, "controller": True}],
    }
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "1Mi"}}}]
    names = (f"{app}-{at}" for at in range(count))
    return [
        {"metadata": {**metadata, "name": name, "uid": name}, "spec": {"containers": containers, **spec}}
        for name in names
    ]


def row(pod: Object, node: str = "") -> PodRow:
    return pod_rows().row(json.dumps({**pod, "spec": {**pod["spec"], "nodeName": node}}).encode())


def node(name: str, labels: Mapping[str, str]) -> Object:
    return {"metadata": {"name": name, "labels": {HOST: name, **labels}}, "spec": {}}


def told_nodes(cluster: Cluster, nodes: Sequence[Object]) -> None:
    read = node_rows()
    cluster.apply_nodes(Changes(rows=tuple(read.row(json.dumps(each).encode()) for each in nodes), whole=True))


def created(
    cluster: Cluster, clock: Clock, pods: Sequence[Object], nodes: Iterable[str] = ZONES
) -> dict[str, tuple[str, int]]:
    """By pod, the node and NUMA node where it is planned once all have been there for a while."""
    cluster.apply_pods(Changes(rows=tuple(map(row, pods))))
    return planned(cluster, clock, nodes)


def planned(cluster: Cluster, clock: Clock, nodes: Iterable[str] = ZONES) -> dict[str, tuple[str, int]]:
    cluster.reserve()
    clock.now += GROWS_S + 1
    for name in nodes:
        cluster.received(name)
    cluster.reserve()
    return {uid: (held.place.node, held.place.numa_node) for uid, held in cluster._nodes.group_holds._pods.items()}


def asked(cluster: Cluster, pod: Object, *names: str) -> str:
    """The node that leads."""
    want = cluster.wanted(row(pod))
    assert want is not None
    result = {scored.node: scored.score for scored in cluster.score(want, names).rows}
    return max(result, key=result.__getitem__)


def together(places: Mapping[str, Any]) -> list[list[str]]:
    """The pods of each place."""
    return sorted(sorted(pod for pod, at in places.items() if at == place) for place in {*places.values()})


@pytest.fixture
def zones(cluster: Cluster) -> Cluster:
    """Three zones of two nodes, each of 8 and 8 CPUs."""
    for name in ZONES:
        tell(cluster, name)
    told_nodes(cluster, [node(name, {ZONE: zone}) for name, zone in ZONES.items()])
    return cluster


WEB, DB = {"topologySpreadConstraints": [spread("web")]}, {"topologySpreadConstraints": [spread("db")]}
PAIRS = [["db-0", "web-0"], ["db-1", "web-1"], ["db-2", "web-2"]]


def in_zones(places: Mapping[str, tuple[str, int]]) -> set[str]:
    return {ZONES[name] for name, _ in places.values()}


def test_a_group_that_is_spread_over_zones_has_a_whole_piece_in_each(zones: Cluster, clock: Clock):
    pods = [*replicas("web", 3, **WEB), *replicas("db", 3, **DB)]
    places = created(zones, clock, pods)
    assert (together(places), in_zones(places)) == (PAIRS, {"x", "y", "z"})
    assert [asked(zones, pod, *ZONES) for pod in pods] == [places[pod["metadata"]["uid"]][0] for pod in pods]


def test_so_has_one_of_which_more_may_be_in_a_zone(zones: Cluster, clock: Clock):
    places = created(zones, clock, [*replicas("web", 6, cpu="1", **WEB), *replicas("db", 6, cpu="1", **DB)])
    assert [len(piece) for piece in together(places)] == [4, 4, 4]


def test_one_that_a_zone_may_have_all_of_is_whole(zones: Cluster, clock: Clock):
    pods = [
        *replicas("web", 2, topologySpreadConstraints=[spread("web", skew=2)]),
        *replicas("db", 2, topologySpreadConstraints=[spread("db", skew=2)]),
    ]
    assert together(created(zones, clock, pods)) == [["db-0", "db-1", "web-0", "web-1"]]


def test_within_a_zone_those_are_apart_that_share_no_host(zones: Cluster, clock: Clock):
    web = {**WEB, "affinity": away("web")}
    places = created(zones, clock, [*replicas("web", 6, **web), *replicas("db", 6)])
    pieces = together({pod: name for pod, (name, _) in places.items() if pod.startswith("web")})
    assert (len(places), [len(piece) for piece in pieces]) == (12, [1] * 6)


def test_pods_that_keep_off_each_other_s_zone_are_in_pairs(zones: Cluster, clock: Clock):
    apart = ({"affinity": away(app, ZONE)} for app in ("web", "db"))
    web, db = (replicas(app, 4, **spec) for app, spec in zip(("web", "db"), apart, strict=True))
    places = created(zones, clock, [*web, *db])
    assert (together(places), in_zones(places)) == (PAIRS, {"x", "y", "z"}), "the fourth of each goes nowhere"


def test_several_rules_of_one_pod_are_held_to(zones: Cluster, clock: Clock):
    terms = [
        {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}},
        {
            "topologyKey": ZONE,
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db"]}]},
        },
    ]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    places = created(zones, clock, [*replicas("db", 2), *replicas("web", 2, affinity=affinity)])
    zone = {pod: ZONES[name] for pod, (name, _) in places.items()}
    assert zone["db-0"] == zone["db-1"]
    assert zone["db-0"] not in (zone["web-0"], zone["web-1"])
    assert places["web-0"][0] != places["web-1"][0]


def test_who_has_to_be_in_one_zone_is(zones: Cluster, clock: Clock):
    affinity = beside("web")
    pods = [*replicas("web", 7, cpu="3", affinity=affinity), *replicas("db", 2, cpu="3", affinity=affinity)]
    assert len(in_zones(created(zones, clock, pods))) == 1


def test_what_would_have_to_wait_for_a_full_zone_is_not_planned(zones: Cluster, clock: Clock):
    for name in ("c", "f"):
        tell(zones, name, other(0, 8000), other(1, 8000), generation=2)
    places = created(zones, clock, replicas("web", 6, **WEB))
    assert (sorted(places), in_zones(places)) == (["web-0", "web-1"], {"x", "y"})


@pytest.mark.parametrize("given", [{"memory": "1Mi"}, {"pods": "1"}], ids=["memory", "pods"])
def test_a_zone_in_which_kube_scheduler_has_too_little_to_give_is_passed_over(
    zones: Cluster, clock: Clock, given: dict[str, str]
):
    """The nodes of x have most CPU, and otherwise room for two of the three that have to be in one zone."""
    for name in "bcef":
        tell(zones, name, other(0, 1000), generation=2)
    nodes = [node(name, {ZONE: zone}) for name, zone in ZONES.items()]
    told_nodes(
        zones, [each | {"status": {"allocatable": given if each["metadata"]["name"] in "ad" else {}}} for each in nodes]
    )
    places = created(zones, clock, replicas("web", 3, affinity=beside("web")))
    assert len(places) == 3
    assert in_zones(places) < {"y", "z"}


def test_members_that_are_there_count(zones: Cluster, clock: Clock):
    web, db = replicas("web", 3, **WEB), replicas("db", 3, **DB)
    for pod, name in zip(web[:2], "ab", strict=True):
        zones.apply_pods(Changes(rows=(row(pod),)))
        asked(zones, pod, name)
        zones.apply_pods(Changes(rows=(row(pod, name),)))
    places = created(zones, clock, [web[2], *db])
    assert in_zones({"web-2": places["web-2"]}) == {"z"}
    assert sorted(name for pod, (name, _) in places.items() if pod.startswith("db")) == ["a", "b", places["web-2"][0]]


def test_who_is_asked_about_out_of_turn_takes_the_place_of_one_alike(zones: Cluster, clock: Clock):
    web = replicas("web", 3, **WEB)
    places = created(zones, clock, [*web, *replicas("db", 3, **DB)])
    first, second = places["web-0"][0], places["web-1"][0]
    others = [name for name in ZONES if ZONES[name] != ZONES[first]]
    assert asked(zones, web[0], *others) == second, "kube-scheduler leaves it no node of its zone"
    after = {uid: held.place.node for uid, held in zones._nodes.group_holds._pods.items()}
    assert (after["web-0"], after["web-1"]) == (second, first)


def test_nodes_without_a_zone_take_none_of_them(cluster: Cluster, clock: Clock):
    for name in "ab":
        tell(cluster, name)
    told_nodes(cluster, [node("a", {}), node("b", {ZONE: "y"})])
    assert {name for name, _ in created(cluster, clock, replicas("web", 3, **WEB)).values()} == {"b"}


def test_a_plan_follows_nodes_whose_zone_changes(zones: Cluster, clock: Clock):
    created(zones, clock, [*replicas("web", 3, **WEB), *replicas("db", 3, **DB)])
    moved = {**ZONES, "a": "z", "d": "z"}
    told_nodes(zones, [node(name, {ZONE: zone}) for name, zone in moved.items()])
    places = planned(zones, clock)
    assert {moved[name] for name, _ in places.values()} == {"y", "z"}


def test_of_many_racks_those_with_most_room_are_taken(cluster: Cluster, clock: Clock):
    names = [f"n{at:02}" for at in range(MOST_CELLS + 2)]
    for name in names:
        tell(cluster, name, other(0, 8000), *(() if name > "n31" else (other(1, 1000),)))
    told_nodes(cluster, [node(name, {"rack": name}) for name in names])
    web = replicas("web", 2, topologySpreadConstraints=[spread("web", "rack")])
    assert {name for name, _ in created(cluster, clock, web, names).values()} == {"n32", "n33"}


RULES = st.one_of(
    st.builds(
        lambda skew, key, more: {"skew": skew, "key": key, **more},
        st.integers(1, 3),
        st.sampled_from([ZONE, ZONE, HOST]),
        st.sampled_from([{}, {"minDomains": 3}]),
    ),
    st.just({"away": HOST}),
    st.just({"away": ZONE}),
)


def workload(app: str, count: int, rules: Sequence[Mapping[str, Any]], cpu: str, *, pool: bool) -> list[Object]:
    spreads = [
        spread(app, **{name: value for name, value in each.items() if name != "skew"}, skew=each["skew"])
        for each in rules if "skew" in each
    ]  # fmt: skip
    terms = [
        {"topologyKey": each["away"], "labelSelector": {"matchLabels": {"app": app}}}
        for each in rules
        if "away" in each
    ]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    more = {"nodeSelector": {"pool": "fast"}} if pool else {}
    return replicas(app, count, cpu=cpu, topologySpreadConstraints=spreads, affinity=affinity, **more)


@st.composite
def groups(draw: st.DrawFn) -> list[Object]:
    rules = st.lists(RULES, min_size=1, max_size=2)
    pods = [
        pod
        for app in ("web", "db")
        for pod in workload(
            app, draw(st.integers(1, 6)), draw(rules), draw(st.sampled_from(["1", "5"])), pool=draw(st.booleans())
        )
    ]
    return draw(st.permutations(pods))


@settings(max_examples=60, deadline=None)
@given(
    pods=groups(),
    zoned=st.just([*ZONES.values()]) | st.lists(st.sampled_from(["x", "y", "z", None]), min_size=6, max_size=6),
    full=st.sampled_from(["", "cf", "cf"]) | st.sets(st.sampled_from("abcdef"), max_size=3),
)
def test_each_is_planned_where_kube_scheduler_lets_it_go_in_its_turn(pods, zoned, full):
    clock = Clock()
    cluster = Cluster(Settings(), clock)
    nodes = [
        node(name, ({ZONE: zone} if zone else {}) | ({"pool": "fast"} if name in "abcd" else {}))
        for name, zone in zip(ZONES, zoned, strict=True)
    ]
    for name in ZONES:
        tell(cluster, name, *((other(0, 8000), other(1, 8000)) if name in full else ()))
    told_nodes(cluster, nodes)
    places = created(cluster, clock, pods)
    bound: list[tuple[Object, str]] = []
    by_name = {each["metadata"]["name"]: each for each in nodes}
    for pod in pods:
        if (place := places.get(pod["metadata"]["uid"])) is not None:
            assert pod_rules.admits(pod, by_name[place[0]])
            assert pod_rules.lets(pod, place[0], nodes, bound)
            bound.append((pod, place[0]))
