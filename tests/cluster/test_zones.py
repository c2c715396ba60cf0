"""Three zones of four nodes: a group that no node holds is in one of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from extender.state.node_domains import ZONE
from lab.cluster.binaries import Binaries
from lab.cluster.cluster import Cluster, Terms
from tests.cluster.conftest import made, up
from tests.cluster.workloads import Deployment, Namespace, deployment, homes, member, nodes_by_group

pytestmark = pytest.mark.thorough

ZONES = {f"node-{at}": "xyz"[at % 3] for at in range(12)}
MACHINE = "xeon-8380"
"""Two NUMA nodes of 80 CPUs."""


@pytest.fixture(scope="module")
def three_zones(kubernetes: Binaries, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    terms = Terms(
        dict.fromkeys(ZONES, MACHINE),
        labels={node: {ZONE: zone} for node, zone in ZONES.items()},
    )
    with up(kubernetes, terms, request) as cluster:
        yield cluster


@pytest.fixture
def namespace(three_zones: Cluster) -> Iterator[Namespace]:
    yield from made(three_zones)


def zones_by_group(namespace: Namespace) -> dict[str, set[str]]:
    return {group: {ZONES[node] for node in nodes} for group, nodes in nodes_by_group(namespace.pods()).items()}


def test_a_group_that_exceeds_a_node_is_in_one_zone(namespace: Namespace):
    namespace.deploy(member("large", 50, cpu="4"))
    namespace.until_running(50)
    assert len(zones_by_group(namespace)["large"]) == 1
    assert len(nodes_by_group(namespace.pods())["large"]) == 2


def test_so_are_several_that_come_at_once_and_each_that_fits_one_is_on_one_node(namespace: Namespace):
    groups = [member("large", 50, cpu="4"), member("larger", 30, cpu="7"), member("small", 12, cpu="2")]
    namespace.deploy(*groups)
    namespace.until_running(92)
    assert {group: len(zones) for group, zones in zones_by_group(namespace).items()} == dict.fromkeys(
        ("large", "larger", "small"), 1
    )
    assert len(nodes_by_group(namespace.pods())["small"]) == 1


def test_of_groups_whose_workloads_are_spread_over_zones_what_may_be_together_is(namespace: Namespace):
    """Of each three web and three db, all created at once."""
    pairs = [(f"web-{at}", f"db-{at}") for at in range(2)]
    over = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}

    def spread(group: str, name: str) -> Deployment:
        rule = {**over, "labelSelector": {"matchLabels": {"app": name}}}
        annotations = {"group.numakin.io": group}
        return deployment(name, 3, cpu="2", annotations=annotations, topologySpreadConstraints=[rule])

    namespace.deploy(*(spread(f"group-{at}", name) for at, pair in enumerate(pairs) for name in pair))
    namespace.until_running(12)
    for at, pair in enumerate(pairs):
        assert [sorted(there) for there in homes(namespace, f"group-{at}").values()] == [sorted(pair)] * 3
        assert zones_by_group(namespace)[f"group-{at}"] == {*"xyz"}


def test_of_groups_that_have_to_be_spread_over_zones_those_in_one_are_on_one_numa_node(namespace: Namespace):
    names = [f"spread-{at}" for at in range(4)]
    for name in names:
        over = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
        over["labelSelector"] = {"matchLabels": {"app": name}}
        namespace.deploy(member(name, 6, cpu="2", topologySpreadConstraints=[over]))
    namespace.until_running(24)
    assert [zones_by_group(namespace)[name] for name in names] == [{*"xyz"}] * 4
    assert [[len(pods) for pods in homes(namespace, name).values()] for name in names] == [[2, 2, 2]] * 4
