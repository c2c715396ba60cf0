"""A group that exceeds its node stays near: on the nodes of one rack, one zone, as their labels say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from extender.cluster import Cluster
from extender.scoring.group_holds import GROWS_S
from extender.settings import Settings
from extender.state.node_domains import ZONE, label_keys
from extender.state.pods import Changes, NodeRow, PodRow
from extender.views.explain import explain
from lab.standins.scheduler.cache import MOST_PODS, Room
from lab.standins.scheduler.scheduler import Scheduler
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.state.occupancy import Reservation
from tests.clock import Clock
from tests.extender.machines import pod
from tests.extender.running import machine
from tests.extender.told import tell

GIB = 1 << 30
ZONES = {f"{zone}{number}": zone for number in range(4) for zone in "xyz"}
"""Three zones of four nodes."""


def other(node: str, milli: int) -> Reservation:
    """Of who has not opted in."""
    return Reservation(f"{node}-other", f"{node}-other", "", NumaSet.of((0,)), Demand(milli))


class Site:
    """Nodes of four NUMA nodes with 16 CPUs each, and kube-scheduler. taken: millicores of others, by node."""

    def __init__(self, labels: Mapping[str, tuple[str, ...]], taken: Mapping[str, int], group_hold: float) -> None:
        self.clock = Clock()
        self.cluster = Cluster(Settings(report_timeout=1e6, group_hold=group_hold, near=label_keys([])), self.clock)
        self.rooms = {node: Room(64_000 - taken.get(node, 0), 64 * GIB, MOST_PODS) for node in labels}
        self.cluster.apply_nodes(Changes(rows=tuple(NodeRow(node, near=near) for node, near in labels.items())))
        for node in labels:
            tell(self.cluster, node, other(node, taken.get(node, 0)), of=machine(4, 16))

    def scheduled(self, rows: Sequence[PodRow]) -> dict[str, str]:
        """By uid the node of each, all of which were created before."""
        self.cluster.apply_pods(Changes(rows=tuple(rows)))
        self.cluster.reserve()
        self.clock.now += GROWS_S + 1
        self.cluster.reserve()
        asked = {row.uid: row for row in rows}
        scheduler, nodes = Scheduler(self.rooms, _Asking(self.cluster, asked), random=Random(1)), {}
        for row in rows:
            want = Room(row.demand.cpu_milli, row.demand.memory)
            nodes[row.uid] = scheduler.schedule({"uid": row.uid}, "w", want).node
            self.cluster.apply_pods(Changes(rows=(replace(row, node=nodes[row.uid]),)))
            self.cluster.reserve()
        return nodes


class _Asking:
    def __init__(self, cluster: Cluster, rows: Mapping[str, PodRow]) -> None:
        self._cluster, self._rows = cluster, rows

    def prioritize(self, asked: Mapping[str, Any], nodes: Sequence[str]) -> dict[str, int]:
        want = self._cluster.wanted(self._rows[asked["uid"]])
        assert want is not None
        return {row.node: row.score for row in self._cluster.score(want, nodes).rows}


def group(count: int) -> list[PodRow]:
    return [pod(f"p{at}", group="large", cpu="4", memory="1Mi") for at in range(count)]


LABELS = {node: (zone, "") for node, zone in ZONES.items()}


@pytest.mark.parametrize("group_hold", [60.0, 0.0], ids=["planned", "pod by pod"])
@pytest.mark.parametrize("full", ["", "x"], ids=["all empty", "one zone with room for half of it"])
def test_a_group_that_exceeds_a_node_is_in_one_zone_wherever_one_holds_it(full: str, group_hold: float):
    """50 pods of 4 CPUs; no node has more than 16 of them."""
    taken = {node: 16_000 for node, zone in ZONES.items() if zone == full and node != "x0"}
    count = 44 if full else 50
    nodes = Site(LABELS, {**taken, "y1": 4000, "z2": 4000}, group_hold).scheduled(group(count))
    zones = Counter(ZONES[node] for node in nodes.values())
    assert len(zones) == 1, zones
    assert len(set(nodes.values())) == math.ceil(count / 16)


def test_its_pieces_go_where_they_are_planned_also_after_the_first_of_them_has_come():
    site = Site(LABELS, {}, 60.0)
    rows = group(30)
    site.cluster.apply_pods(Changes(rows=tuple(rows)))
    site.cluster.reserve()
    site.clock.now += GROWS_S + 1
    site.cluster.reserve()
    held = site.cluster.held()["default/large"]
    planned = {node: sum(each.cpu_milli for at, each in held.items() if at.node == node) for node in ZONES}
    nodes = site.scheduled(rows)
    assert {node: 4000 * count for node, count in Counter(nodes.values()).items()} == {
        node: milli for node, milli in planned.items() if milli
    }


def test_nodes_without_the_labels_are_far_from_all():
    nodes = Site({**LABELS, "bare": ()}, {}, 0.0).scheduled(group(40))
    assert "bare" not in nodes.values()


def test_explain_says_where_kin_near_by_are():
    site = Site(LABELS, {}, 0.0)
    rows = group(17)
    nodes = site.scheduled(rows)
    answer = explain(site.cluster, "default", "p16")
    assert answer is not None
    (row,) = (row for row in answer["scored"]["nodes"] if row["node"] == nodes["p16"])
    assert f"100% of its kin are on other nodes of {ZONE}={ZONES[nodes['p16']]}" in row["reasons"]


def test_a_node_that_is_labelled_anew_is_elsewhere_from_then_on():
    site = Site(LABELS, {}, 0.0)
    moved = [NodeRow(node, near=("z" if zone == "x" else "x", "")) for node, zone in ZONES.items() if zone in "xz"]
    site.cluster.apply_nodes(Changes(rows=tuple(moved)))
    nodes = site.scheduled(group(40))
    assert len({ZONES[node] for node in nodes.values()}) == 1
