"""A pod that kube-scheduler asks about before the watch has shown it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from extender.cluster import Cluster
from extender.state.pods import Changes
from tests.extender.machines import pod, want
from tests.extender.test_cluster import reservations_of, tell


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    tell(cluster, "a")
    cluster.apply_pods(Changes(whole=True))
    return cluster


def test_it_is_waited_for_and_its_room_is_held(cluster: Cluster):
    asked = Event()
    cluster.asked = lambda _row: asked.set()
    with ThreadPoolExecutor() as threads:
        offer = threads.submit(cluster.score, want("p"), ["a"])
        assert asked.wait(60)
        cluster.apply_pods(Changes(rows=(pod("p"),)))
        assert offer.result().rows[0].score
    assert [*reservations_of(cluster, "a")] == ["p"]


def test_a_pod_that_the_api_server_does_not_have_is_answered_for_all_the_same(cluster: Cluster):
    assert cluster.score(want("invented"), ["a"]).rows[0].score
    assert reservations_of(cluster, "a") == {}
