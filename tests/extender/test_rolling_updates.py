"""A rolling update replaces all of a group: it is planned whole once more, and those that are about to go are no kin that
stay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from extender.cluster import Cluster
from extender.kube.stream import pods
from extender.scoring.replicas_to_come import FOLLOW_S
from extender.state.pods import Allocatable, Changes, NodeRow, OwnerRow, PodRow
from extender.state.templates import ANNOUNCED_S
from extender.state.told_groups import DEPLOYMENTS, ToldReplicas, ToldRow
from extender.traffic.known import ClusterTraffic
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.state.occupancy import Reservation
from tests.clock import Clock
from tests.extender.machines import pod
from tests.extender.told import SETTLED_S, asked, other, reservations_of, tell

OLD, NEW = "1111111111", "2222222222"
CPU = 1000
WEB, DB = "default/Deployment/web", "default/Deployment/db"
NO_PAGES: Mapping[int, int] = {}
HUGEPAGES = {2 << 20: 100 << 20}


def replicas(name: str, template: str, count: int, *, first: int = 0, node: str = "") -> list[PodRow]:
    """Of a Deployment of the group shop, each of one CPU, as the API server sends them."""
    replica_set = f"{name}-{template}"
    metadata = {
        "namespace": "default",
        "labels": {"app": name, "pod-template-hash": template},
        "annotations": {"group.numakin.io": "shop"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": replica_set, "uid": replica_set, "controller": True}],
    }
    resources = {"requests": {"cpu": "1", "memory": "1Mi"}, "limits": {"memory": "1Mi"}}
    spec = {"nodeName": node, "containers": [{"name": "main", "resources": resources}]}
    status, reader = {"phase": "Running" if node else "Pending"}, pods()
    names = (f"{replica_set}-{at}" for at in range(first, first + count))
    sent = ({"metadata": {**metadata, "name": each, "uid": each}, "spec": spec, "status": status} for each in names)
    return [reader.row(json.dumps(each).encode()) for each in sent]


def there(rows: Sequence[PodRow], numa_node: int) -> list[Reservation]:
    """As their node reports them."""
    home, demand = NumaSet.of((numa_node,)), Demand(CPU, memory=1 << 20, memory_limit=1 << 20)
    return [Reservation(row.uid, row.uid, "default/shop", home, demand, workload=row.workload) for row in rows]


def kept(
    cluster: Cluster,
    name: str,
    count: int,
    ahead: int,
    template: str = "",
    pages: Mapping[int, int] = NO_PAGES,
    *,
    paused: bool = False,
) -> None:
    workload, more = f"default/Deployment/{name}", {"ahead": ahead, "template": template}
    replicas = ToldReplicas(workload, "default/shop", count, Demand(CPU, hugepages=pages), paused=paused, **more)
    cluster.told(DEPLOYMENTS, Changes(rows=(ToldRow(f"default/{name}", replicas=replicas),)))


def came(cluster: Cluster, *rows: PodRow) -> set[tuple[str, str]]:
    """They are created, planned, scored and bound: their nodes and NUMA nodes."""
    cluster.apply_pods(Changes(rows=rows))
    cluster.reserve()
    homes = set()
    for row in rows:
        node = asked(cluster, row)
        cluster.apply_pods(Changes(rows=(replace(row, node=node),)))
        homes.add((node, reservations_of(cluster, node)[row.uid]))
    return homes


@pytest.fixture(params=[False, True], ids=["by annotation", "traffic known"])
def shop(cluster: Cluster, clock: Clock, request: pytest.FixtureRequest) -> Cluster:
    """Four pods on NUMA node 0 of a, which has two CPUs left; NUMA node 1 of a is full, and b has 5 and 8 left."""
    if request.param:
        cluster.learned(ClusterTraffic(peers={WEB: {WEB: 5.0, DB: 1.0}, DB: {WEB: 1.0}}))
    old = replicas("web", OLD, 4, node="a")
    tell(cluster, "a", other(1, 8000), other(0, 2000), *there(old, 0))
    tell(cluster, "b", other(1, 3000))
    cluster.apply_pods(Changes(rows=tuple(old)))
    clock.now += SETTLED_S
    cluster.received("a"), cluster.received("b")
    return cluster


class TestADeployment:
    def test_it_goes_where_there_is_room_for_all_though_none_of_the_others_has_ended(self, shop: Cluster):
        kept(shop, "web", 4, ahead=2)
        assert came(shop, *replicas("web", NEW, 1)) == {("b", "1")}

    def test_it_stays_where_there_is_such_room(self, shop: Cluster):
        kept(shop, "web", 2, ahead=2)
        (first, second, *_) = replicas("web", OLD, 4, node="a")
        shop.apply_pods(Changes(gone=(first.uid, second.uid)))
        assert came(shop, *replicas("web", NEW, 1)) == {("a", "0")}

    def test_where_no_numa_node_has_it_stays_with_room_for_what_comes_before_they_end_at_once(self, shop: Cluster):
        kept(shop, "web", 4, ahead=2)
        tell(shop, "b", other(0, 5000), other(1, 5000), generation=2)
        assert came(shop, *replicas("web", NEW, 1)) == {("a", "0")}

    def test_it_goes_as_a_whole_to_where_it_fits_where_there_is_not(self, shop: Cluster):
        kept(shop, "web", 4, ahead=3)
        assert came(shop, *replicas("web", NEW, 1)) == {("b", "1")}
        (leaving,) = replicas("web", OLD, 1, node="a")
        shop.apply_pods(Changes(gone=(leaving.uid,)))
        assert came(shop, *replicas("web", NEW, 3, first=1)) == {("b", "1")}

    def test_those_that_take_long_to_end_draw_none_back(self, shop: Cluster):
        kept(shop, "web", 4, ahead=3)
        assert came(shop, *replicas("web", NEW, 3)) == {("b", "1")}
        old = replicas("web", OLD, 4, node="a")
        shop.apply_pods(Changes(rows=tuple(replace(row, leaving=True) for row in old)))
        assert came(shop, *replicas("web", NEW, 1, first=3)) == {("b", "1")}

    def test_it_stays_by_and_by_where_it_fits_nowhere_else(self, shop: Cluster):
        kept(shop, "web", 4, ahead=3)
        tell(shop, "b", other(0, 5000), other(1, 5000), generation=2)
        assert came(shop, *replicas("web", NEW, 2)) == {("a", "0")}

    def test_it_stays_where_no_other_node_takes_all_of_its_pods(self, shop: Cluster):
        """Theirs takes as many as are to be there at once."""
        limits = {"a": 6, "b": 3}
        rows = tuple(NodeRow(node, allocatable=Allocatable(pods=limits[node])) for node in limits)
        shop.apply_nodes(Changes(rows=rows))
        kept(shop, "web", 4, ahead=2)
        assert came(shop, *replicas("web", NEW, 2)) == {("a", "0")}
        shop.apply_pods(Changes(gone=(f"web-{OLD}-0", f"web-{OLD}-1")))
        assert came(shop, *replicas("web", NEW, 2, first=2)) == {("a", "0")}

    def test_what_it_comes_back_to_is_not_given_to_another_group(self, shop: Cluster):
        """Of both the first pods are there; who has begun goes on first."""
        kept(shop, "web", 4, ahead=2)
        tell(shop, "b", other(0, 5000), other(1, 5000), generation=2)
        assert came(shop, *replicas("web", NEW, 1)) == {("a", "0")}
        stranger = pod("stranger", group="other", cpu="1", memory="1Mi")
        strangers = [replace(stranger, uid=f"other-{at}", name=f"other-{at}") for at in range(2)]
        assert came(shop, *strangers).isdisjoint({("a", "0")})

    def test_nor_the_room_that_it_needs_there_until_those_before_it_have_ended(self, shop: Cluster):
        kept(shop, "web", 4, ahead=2)
        tell(shop, "a", other(1, 8000), *there(replicas("web", OLD, 4), 0), generation=2)
        tell(shop, "b", other(0, 6000), other(1, 5000), generation=2)
        assert came(shop, *replicas("web", NEW, 1)) == {("a", "0")}
        stranger = pod("stranger", group="other", cpu="1", memory="1Mi")
        strangers = [replace(stranger, uid=f"other-{at}", name=f"other-{at}") for at in range(3)]
        assert came(shop, *strangers) == {("b", "1")}
        assert came(shop, *replicas("web", NEW, 3, first=1)) == {("a", "0")}

    def test_after_it_is_undone_it_is_where_those_are_that_stay(self, shop: Cluster):
        kept(shop, "web", 4, ahead=3)
        new = replicas("web", NEW, 2)
        assert came(shop, *new) == {("b", "1")}
        shop.apply_pods(Changes(gone=(f"web-{OLD}-0", f"web-{OLD}-1")))
        assert came(shop, *replicas("web", OLD, 2, first=4)) == {("a", "0")}

    def test_after_an_update_is_undone_that_replaced_none_others_come_beside_it(self, shop: Cluster, clock: Clock):
        kept(shop, "web", 4, 1, OLD), kept(shop, "web", 4, 1, NEW)
        (failed,) = replicas("web", NEW, 1)
        assert came(shop, failed) == {("b", "1")}
        kept(shop, "web", 4, 1, OLD)
        shop.apply_pods(Changes(gone=(failed.uid,)))
        clock.now += ANNOUNCED_S
        shop.received("a"), shop.received("b")
        assert came(shop, *replicas("db", OLD, 1)) == {("a", "0")}

    def test_a_pod_that_comes_before_a_plan_has_counted_it_waits_for_that(self, shop: Cluster):
        (new,) = replicas("web", NEW, 1)
        shop.apply_pods(Changes(rows=(new,)))
        assert shop._ledger.awaits_plan(new.uid)
        shop.reserve()
        assert not shop._ledger.awaits_plan(new.uid)

    def test_while_plans_take_long_one_answer_alone_waits_for_each(self, shop: Cluster):
        first, second = replicas("web", NEW, 2)
        for row, longest_s in ((first, 0.01), (second, 3600.0)):
            shop.apply_pods(Changes(rows=(row,)))
            want = shop.wanted(row)
            assert want is not None
            shop._ledger.wait_for(want, longest_s)
        assert shop._ledger.awaits_plan(second.uid)

    @pytest.mark.parametrize("shop", [False], indirect=True, ids=["by annotation"])
    def test_those_draw_others_too_that_were_bound_by_the_time_the_watch_showed_them(self, shop: Cluster, clock: Clock):
        """As in a burst, where it shows of each what it is by then."""
        kept(shop, "web", 4, 1, OLD)
        shop.apply_pods(Changes(rows=tuple(replicas("web", OLD, 4, node="a")), whole=True))
        kept(shop, "web", 4, 1, NEW)
        new = replicas("web", NEW, 2, node="b")
        tell(shop, "b", other(1, 3000), *there(new, 0), generation=2)
        shop.apply_pods(Changes(rows=tuple(new)))
        clock.now += ANNOUNCED_S
        shop.received("a"), shop.received("b")
        assert came(shop, *replicas("db", OLD, 1)) == {("b", "0")}

    def test_a_pod_of_the_same_template_waits_for_none(self, shop: Cluster):
        (more,) = replicas("web", OLD, 1, first=4)
        shop.apply_pods(Changes(rows=(more,)))
        assert not shop._ledger.awaits_plan(more.uid)


def test_of_two_deployments_the_one_that_is_updated_stays_beside_the_other(shop: Cluster):
    """Though b has room for all of it, and a does not for all that may come before the others have ended."""
    stays = replicas("db", OLD, 2, node="a")
    old = replicas("web", OLD, 4, node="a")
    tell(shop, "a", other(1, 8000), other(0, 1000), *there([*old, *stays], 0), generation=2)
    shop.apply_pods(Changes(rows=tuple(stays)))
    kept(shop, "web", 4, ahead=3)
    assert came(shop, *replicas("web", NEW, 1)) == {("a", "0")}


class TestTwoDeploymentsAreUpdatedOneAfterTheOther:
    """NUMA node 0 of a has no room for all that may come before the others have ended, that of b for all of it."""

    @pytest.fixture
    def both(self, shop: Cluster) -> Cluster:
        old = [*replicas("web", OLD, 4, node="a"), *replicas("db", OLD, 2, node="a")]
        tell(shop, "a", other(1, 8000), other(0, 1000), *there(old, 0), generation=2)
        shop.apply_pods(Changes(rows=tuple(old)))
        kept(shop, "web", 4, 3, OLD), kept(shop, "db", 2, 2, OLD)
        return shop

    def test_the_second_is_heard_of_before_the_first_is_planned(self, both: Cluster, clock: Clock):
        kept(both, "web", 4, 3, NEW)
        clock.now += FOLLOW_S / 2
        kept(both, "db", 2, 2, NEW)
        assert came(both, *replicas("web", NEW, 3)) == {("b", "0")}
        assert came(both, *replicas("db", NEW, 2)) == {("b", "0")}

    def test_the_first_pod_waits_for_it(self, both: Cluster, clock: Clock):
        kept(both, "web", 4, 3, NEW)
        (first, *more) = replicas("web", NEW, 3)
        both.apply_pods(Changes(rows=(first,)))
        clock.now += FOLLOW_S / 4
        assert both.reserve() == pytest.approx(FOLLOW_S * 3 / 4)
        assert both._ledger.awaits_plan(first.uid)
        kept(both, "db", 2, 2, NEW)
        both.reserve()
        assert not both._ledger.awaits_plan(first.uid)
        assert asked(both, first) == "b"
        assert came(both, *more) == {("b", "0")}

    def test_it_waits_though_another_began_long_ago_and_gets_nowhere(self, both: Cluster, clock: Clock):
        both.apply_pods(Changes(rows=(*replicas("cache", OLD, 1, node="c"), *replicas("cache", NEW, 1))))
        kept(both, "cache", 2, 1, NEW)
        clock.now += 10 * FOLLOW_S
        kept(both, "web", 4, 3, NEW)
        (first,) = replicas("web", NEW, 1)
        both.apply_pods(Changes(rows=(first,)))
        both.reserve()
        assert both._ledger.awaits_plan(first.uid)

    def test_it_waits_no_longer_for_one_that_does_not_come(self, both: Cluster, clock: Clock):
        kept(both, "web", 4, 3, NEW)
        (first,) = replicas("web", NEW, 1)
        both.apply_pods(Changes(rows=(first,)))
        clock.now += FOLLOW_S
        both.reserve()
        assert not both._ledger.awaits_plan(first.uid)
        assert asked(both, first) == "a"

    def test_another_number_of_replicas_announces_nothing(self, both: Cluster):
        kept(both, "db", 3, 2, OLD)
        assert not both._nodes.to_come.renews("default/shop")

    def test_one_that_was_changed_while_it_was_paused_is_updated_once_that_ends(self, both: Cluster, clock: Clock):
        """As where several of its fields are changed one after the other, to be rolled out at once."""
        for template in (OLD, NEW):
            kept(both, "db", 2, 2, template, paused=True)
        assert not both._nodes.to_come.renews("default/shop")
        kept(both, "web", 4, 3, NEW)
        clock.now += FOLLOW_S / 2
        kept(both, "db", 2, 2, NEW)
        assert came(both, *replicas("web", NEW, 3)) == {("b", "0")}
        assert came(both, *replicas("db", NEW, 2)) == {("b", "0")}

    def test_one_that_is_paused_and_resumed_replaces_no_more_than_before(self, both: Cluster):
        for paused in (True, False):
            kept(both, "db", 2, 2, OLD, paused=paused)
        assert not both._nodes.to_come.renews("default/shop")

    @pytest.mark.parametrize("more", [{}, {"template": NEW, "paused": True}], ids=["never", "paused"])
    def test_it_waits_for_none_that_replaces_no_pods(self, both: Cluster, more):
        kept(both, "db", 2, 2, **more)
        kept(both, "web", 4, 3, NEW)
        (first,) = replicas("web", NEW, 1)
        both.apply_pods(Changes(rows=(first,)))
        both.reserve()
        assert not both._ledger.awaits_plan(first.uid)

    def test_one_whose_pods_do_not_come_does_not_count_for_long(self, both: Cluster, clock: Clock):
        kept(both, "db", 2, 2, NEW)
        clock.now += ANNOUNCED_S
        both.received("a"), both.received("b")
        kept(both, "web", 4, 3, NEW)
        clock.now += FOLLOW_S
        assert came(both, *replicas("web", NEW, 1)) == {("a", "0")}

    def test_a_pod_that_waits_in_vain_follows_what_is_planned_by_then(self, both: Cluster, clock: Clock):
        kept(both, "web", 4, 3, NEW)
        (first,) = replicas("web", NEW, 1)
        both.apply_pods(Changes(rows=(first,)))
        both.reserve()
        assert both._ledger.awaits_plan(first.uid)
        assert asked(both, first) == "a"


def test_one_of_which_pods_in_hugepages_are_to_come_stays_where_it_is(shop: Cluster):
    """Of these none waits yet."""
    kept(shop, "db", 1, 1, OLD, pages=HUGEPAGES), kept(shop, "web", 4, 3, OLD)
    stays, old = replicas("db", OLD, 1, node="a"), replicas("web", OLD, 4, node="a")
    tell(shop, "a", other(1, 8000), other(0, 2000), *there([*old, *stays], 0), generation=2)
    shop.apply_pods(Changes(rows=tuple(stays)))
    kept(shop, "db", 1, 1, NEW, pages=HUGEPAGES), kept(shop, "web", 4, 3, NEW)
    assert came(shop, *replicas("web", NEW, 1)) == {("a", "0")}


def test_one_that_no_numa_node_holds_is_where_its_traffic_is(cluster: Cluster, clock: Clock):
    """b has room for all of it."""
    cluster.learned(ClusterTraffic(peers={WEB: {WEB: 5.0}}))
    old = replicas("web", OLD, 12, node="a")
    tell(cluster, "a", *there(old[:8], 0), *there(old[8:], 1))
    tell(cluster, "b")
    cluster.apply_pods(Changes(rows=tuple(old)))
    clock.now += SETTLED_S
    cluster.received("a"), cluster.received("b")
    kept(cluster, "web", 12, ahead=6)
    assert came(cluster, *replicas("web", NEW, 3)) == {("a", "1")}


def test_a_stateful_sets_pod_comes_back_to_where_the_one_before_it_was(cluster: Cluster, clock: Clock):
    """Its place is the only room there."""
    owner = OwnerRow("StatefulSet", "db")

    def member(at: int, template: str, node: str = "") -> PodRow:
        row = pod(f"db-{at}-{template}", cpu="1", memory="1Mi", node=node)
        phase = "Running" if node else "Pending"
        return replace(row, name=f"db-{at}", owner=owner, labels={"controller-revision-hash": template}, phase=phase)

    old = [member(at, OLD, "a") for at in range(4)]
    tell(cluster, "a", other(1, 8000), other(0, 4000), *there(old[:3], 0))
    tell(cluster, "b")
    cluster.apply_pods(Changes(rows=tuple(old[:3])))
    clock.now += SETTLED_S
    cluster.received("a"), cluster.received("b")
    assert came(cluster, member(3, NEW)) == {("a", "0")}
