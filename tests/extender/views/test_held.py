"""Room that is held for pods which are not there yet, as people see it."""

from __future__ import annotations

from dataclasses import replace

from extender.cluster import Cluster
from extender.views.held import held
from tests.extender.machines import GIB, want
from tests.extender.running import reservation
from tests.extender.told import tell


def room(cluster: Cluster, node: str = "a"):
    view = cluster.view(node)
    assert view is not None
    return held(view)


def test_nothing_is_held_for_pods_that_are_there(cluster: Cluster) -> None:
    tell(cluster, "a", reservation("p", "1"))
    assert (room(cluster).cpu, room(cluster).memory, room(cluster).kept) == ({0: 0, 1: 0}, {0: 0, 1: 0}, {0: 0, 1: 0})


def test_room_is_held_where_a_pod_was_scored_best_until_it_is_reported(cluster: Cluster) -> None:
    tell(cluster, "a", reservation("kin", "1"))
    cluster.score(want("p"), ["a"])
    assert room(cluster).cpu == {0: 0, 1: 500}
    assert room(cluster).memory == {0: 0, 1: GIB}
    tell(cluster, "a", reservation("kin", "1"), reservation("p", "1"), generation=2)
    assert room(cluster).cpu == {0: 0, 1: 0}


def test_room_is_kept_for_the_rest_of_a_group_that_says_how_many_it_will_be(cluster: Cluster) -> None:
    tell(cluster, "a", replace(reservation("p", "1"), size=3))
    assert room(cluster).kept == {0: 0, 1: 2000}
