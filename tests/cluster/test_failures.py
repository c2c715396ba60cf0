"""What fails in the middle of a burst costs nobody a pod: a real control plane, two replicas of the extender."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.cluster.binaries import Binaries
from lab.cluster.cluster import Cluster, Terms
from tests.cluster.conftest import made, up
from tests.cluster.workloads import Namespace, member

pytestmark = pytest.mark.thorough

BURST = 200
SOME = 20
"""Pods that are bound before something fails."""


@pytest.fixture(scope="module")
def replicated(kubernetes: Binaries, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    machines = {f"node-{number}": "epyc-7763-nps2" for number in range(3)}
    with up(kubernetes, Terms(machines, extenders=2), request, as_shipped=True) as cluster:
        yield cluster


@pytest.fixture
def shop(replicated: Cluster) -> Iterator[Namespace]:
    yield from made(replicated)


def burst(shop: Namespace) -> None:
    """Begins one, and returns when it is under way."""
    shop.deploy(member("burst", BURST, cpu="50m"))
    shop.cluster.until(lambda: len(shop.bound()) >= SOME, "the burst to be under way")


def nominated(cluster: Cluster, shop: Namespace) -> bool:
    """Whether a new member's place was named to its enforcer in time: the extender saw it bound by its watch."""
    kept = [extender.metric('numakin_extender_predictions_total{outcome="kept"}') for extender in cluster.extenders]
    before = len(shop.pods())
    shop.deploy(member(f"later-{before}", 1))
    shop.until_running(before + 1)
    after = [extender.metric('numakin_extender_predictions_total{outcome="kept"}') for extender in cluster.extenders]
    return all(late > early for early, late in zip(kept, after, strict=True))


def test_the_other_replica_goes_on_when_the_one_that_answers_is_killed(replicated: Cluster, shop: Namespace):
    first, second = replicated.extenders
    burst(shop)
    first.process.kill()
    shop.deploy(member("after", 2))  # the burst may have been over
    shop.until_running(BURST + 2)
    assert second.metric("numakin_extender_requests_total") > 0
    first.start()
    replicated.until(replicated.all_report, "the killed replica to know every node again")
    replicated.until(lambda: nominated(replicated, shop), "both replicas to see what is bound")


def test_a_burst_ends_though_the_api_server_is_killed(replicated: Cluster, shop: Namespace):
    burst(shop)
    replicated.plane.api_server.kill()
    replicated.plane.start_api_server()
    shop.until_running(BURST)
    replicated.until(lambda: nominated(replicated, shop), "both replicas to see what is bound")


def test_a_burst_ends_though_the_scheduler_is_killed(replicated: Cluster, shop: Namespace):
    burst(shop)
    replicated.plane.scheduler.kill()
    replicated.plane.scheduler.start()
    shop.until_running(BURST)
