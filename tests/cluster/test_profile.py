"""A profile of kube-scheduler for members alone, on so many nodes that other pods are offered a part of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.cluster.binaries import Binaries
from lab.cluster.cluster import Cluster, Terms
from lab.cluster.release import Release
from tests.cluster.conftest import TEN_NODES, made, up
from tests.cluster.workloads import Namespace, member, split

pytestmark = pytest.mark.thorough

MANY = 250
"""Of which kube-scheduler looks at 120 for a pod, by default."""

GROUPS = [member(f"ten-{number}", 10, schedulerName="numakin") for number in range(8)]


@pytest.fixture(scope="module")
def profile(kubernetes: Binaries, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Ten nodes have enforcers; the others only make the cluster large."""
    if not Release(kubernetes.minor).profiles_have_percentages:
        pytest.skip("a profile of this kube-scheduler (before 1.25) has no percentage; KUBERNETES_BIN of a newer one")
    terms = Terms(TEN_NODES, scheduler="profile")
    with up(kubernetes, terms, request) as cluster:
        for number in range(MANY - len(TEN_NODES)):
            cluster.register(cluster.nodes["node-0"], name=f"bare-{number}")
        yield cluster


@pytest.fixture
def shop(profile: Cluster) -> Iterator[Namespace]:
    yield from made(profile)


def test_groups_stay_whole(profile: Cluster, shop: Namespace):
    shop.deploy(*GROUPS)
    profile.until(lambda: len(shop.bound()) == 80, "80 pods to be bound")
    assert split(shop.bound()) == {}
