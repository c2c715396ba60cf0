"""A pod that kube-scheduler asks about before the watch has shown it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from extender.cluster import Cluster
from extender.settings import Settings
from extender.state.pods import Changes, PodRow
from tests.extender.machines import pod, want
from tests.extender.told import reservations_of, tell


class Clock:
    """Stands still but for what is expected of a workload: that takes all the time that it may, if it is set to."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.asked = Event()

    def __call__(self) -> float:
        return self.now

    def notice(self, _row: PodRow, _longest_s: float) -> None:
        self.asked.set()

    def use_up(self, _row: PodRow, longest_s: float) -> None:
        self.now += longest_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def made(clock: Clock) -> Callable[[float], Cluster]:
    """A cluster whose answers wait so long."""

    def make(patience: float) -> Cluster:
        cluster = Cluster(Settings(report_timeout=3600, patience=patience), clock=clock)
        tell(cluster, "a")
        cluster.apply_pods(Changes(whole=True))
        return cluster

    return make


def scored_while_shown(cluster: Cluster, clock: Clock, uid: str) -> None:
    """Asked about first, and shown by the watch while the answer may wait for it."""
    clock.asked.clear()
    cluster.wait.asked = clock.notice
    with ThreadPoolExecutor() as threads:
        offer = threads.submit(cluster.score, want(uid), ["a"])
        assert clock.asked.wait(60)
        cluster.apply_pods(Changes(rows=(pod(uid),)))
        assert offer.result(60).rows[0].score


def test_it_is_waited_for_and_its_room_is_held(made: Callable[[float], Cluster], clock: Clock):
    cluster = made(60)
    scored_while_shown(cluster, clock, "p")
    assert [*reservations_of(cluster, "a")] == ["p"]


def test_a_pod_that_the_api_server_does_not_have_is_answered_for_all_the_same(made: Callable[[float], Cluster]):
    cluster = made(0.01)
    assert cluster.score(want("invented"), ["a"]).rows[0].score
    assert reservations_of(cluster, "a") == {}


def test_what_was_waited_for_the_workload_is_not_waited_for_the_pod_again(
    made: Callable[[float], Cluster], clock: Clock
):
    """Else the pod would have been waited for in vain, and the next one would not be waited for at all."""
    cluster = made(60)
    cluster.wait.asked = clock.use_up
    assert cluster.score(want("first"), ["a"]).rows[0].score
    assert reservations_of(cluster, "a") == {}
    scored_while_shown(cluster, clock, "second")
    assert [*reservations_of(cluster, "a")] == ["second"]
