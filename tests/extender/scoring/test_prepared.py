"""prioritize goes on from what filter found out, unless a place was taken or given up in between, or time has passed."""

from __future__ import annotations

import pytest

from extender.cluster import Cluster
from extender.scoring.prepared import LASTS_S
from tests.clock import Clock
from tests.extender.machines import want
from tests.extender.running import reservation
from tests.extender.told import tell

NAMES = ("a", "b")


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """Each NUMA node has 8 CPUs; the pod's group is on a."""
    tell(cluster, "a", reservation("kin", "1"))
    tell(cluster, "b")
    return cluster


def asking(uid: str = "p"):
    return want(uid, cpu="6", policy="restricted")


def shown(cluster: Cluster, asked) -> dict[str, int]:
    """How many reservations the views have that the pod is scored on, by node."""
    rows = cluster.score(asked, NAMES).rows
    return {row.node: len(row.view.occupancy.reservations) for row in rows if row.view is not None}


def test_both_calls_are_answered_from_the_same_views(cluster: Cluster):
    asked = asking()
    assert cluster.refusals(asked, NAMES) == {}
    tell(cluster, "b", reservation("late", "0"))
    assert shown(cluster, asked) == {"a": 1, "b": 0}


def test_the_next_pod_is_answered_from_the_views_of_its_time(cluster: Cluster):
    cluster.refusals(asking(), NAMES)
    tell(cluster, "b", reservation("late", "0"))
    assert shown(cluster, asking("next")) == {"a": 1, "b": 1}


def test_a_place_that_was_taken_in_between_counts(cluster: Cluster):
    asked = asking()
    cluster.refusals(asked, NAMES)
    cluster.score(want("other", cpu="6"), NAMES)
    assert shown(cluster, asked) == {"a": 2, "b": 0}


def test_after_a_while_all_is_asked_again(cluster: Cluster, clock: Clock):
    asked = asking()
    cluster.refusals(asked, NAMES)
    tell(cluster, "b", reservation("late", "0"))
    clock.now += LASTS_S
    assert shown(cluster, asked) == {"a": 1, "b": 1}


def test_prioritize_alone_is_answered_as_after_filter(cluster: Cluster):
    asked = asking()
    cluster.refusals(asked, NAMES)
    after = cluster.score(asked, NAMES).scores
    assert cluster.score(asked, NAMES).scores == after
