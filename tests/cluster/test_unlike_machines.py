"""Groups of unlike sizes on machines of unlike sizes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from lab.cluster.binaries import Binaries
from lab.cluster.cluster import Cluster, Terms
from tests.cluster.conftest import made, up
from tests.cluster.workloads import Namespace, member, replicas, split

pytestmark = pytest.mark.thorough

MACHINES = ("epyc-7763-nps2", "xeon-8480-snc4", "epyc-7742-nps1", "kunpeng-920-2s", "xeon-8380")
"""Of 2 to 8 NUMA nodes with 24 to 128 CPUs each."""

GROUPS = [member(f"unlike-{at}", 5 + at * 11 % 36, cpu=("250m", "1", "500m", "1500m")[at % 4]) for at in range(30)]
"""Of 5 to 40 pods, a quarter of all CPUs: each node holds each."""


@pytest.fixture(scope="module")
def unlike(kubernetes: Binaries, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    machines = {f"node-{at}": MACHINES[at % len(MACHINES)] for at in range(10)}
    with up(kubernetes, Terms(machines), request) as cluster:
        yield cluster


@pytest.fixture
def namespace(unlike: Cluster) -> Iterator[Namespace]:
    yield from made(unlike)


@pytest.mark.timeout(1800)
def test_each_is_on_one_node_as_all_come_at_once_and_again_after_an_update_of_all(namespace: Namespace):
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": GROUPS})
    namespace.cluster.kubectl("apply", "-n", namespace.name, "-f", "-", text=text)
    namespace.until_running(replicas(GROUPS))
    assert split(namespace.pods()) == {}
    namespace.update(GROUPS, 1)
    assert split(namespace.pods()) == {}
