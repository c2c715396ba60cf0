"""Groups whose pods all come anew, by rolling updates or as nodes are drained, are as close together as before."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.cluster.workloads import Deployment, Namespace, deployment, member, replicas, split

UPDATES = 20

GROUPS = [member(f"shop-{at}", 4 + at, cpu=("250m", "1", "2")[at % 3]) for at in range(8)]
"""Each fits one NUMA node."""

PAIRS = [
    deployment(f"{name}-{at}", 4, cpu="2", annotations={"group.numakin.io": f"pair-{at}"})
    for at in range(3)
    for name in ("web", "db")
]
"""Of each group two Deployments."""


def localities(namespace: Namespace) -> dict[str, float]:
    """By group, the share of pairs of its pods on one NUMA node, of those whose pods are all reported."""
    expected = Counter(pod["metadata"]["annotations"]["group.numakin.io"] for pod in namespace.pods())
    rows = namespace.cluster.extenders[0].get("/api/v1/groups")["groups"]
    own = [row for row in rows if row["group"].startswith(f"{namespace.name}/")]
    return {
        name: row["locality"]
        for row in own
        if len(row["members"]) == expected[name := row["group"].partition("/")[2]]
        and not any(each["expected"] for each in row["members"])
    }


def deploy(namespace: Namespace, groups: list[Deployment]) -> dict[str, float]:
    """The locality of each group, once all is reported."""
    namespace.deploy(*groups)
    namespace.until_running(replicas(groups))
    return reported(namespace)


def reported(namespace: Namespace) -> dict[str, float]:
    names = {pod["metadata"]["annotations"]["group.numakin.io"] for pod in namespace.pods()}
    namespace.cluster.until(lambda: localities(namespace).keys() == names, "every pod to be reported, and no other")
    return localities(namespace)


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_after_each_rolling_update_of_everything_no_group_is_further_apart_than_before(namespace: Namespace):
    groups = [*GROUPS, *PAIRS]
    before, worse = deploy(namespace, groups), {}
    for number in range(UPDATES):
        namespace.update(groups, number)
        after = reported(namespace)
        worse |= {(number, name): (before[name], now) for name, now in after.items() if now < before[name]}
    assert worse == {}


def test_after_a_drain_of_two_nodes_groups_are_whole_where_they_fit(namespace: Namespace):
    deploy(namespace, GROUPS)
    nodes = [node for node, _ in Counter(pod["spec"]["nodeName"] for pod in namespace.pods()).most_common(2)]
    options = ("--ignore-daemonsets", "--force", "--timeout=170s")
    try:
        for node in nodes:
            namespace.cluster.kubectl("drain", node, *options)
        namespace.until_running(replicas(GROUPS))
        namespace.cluster.until(lambda: len(namespace.pods()) == replicas(GROUPS), "those that were evicted to be gone")
        assert split(namespace.pods()) == {}
        assert not {pod["spec"]["nodeName"] for pod in namespace.pods()} & {*nodes}
    finally:
        namespace.cluster.kubectl("uncordon", *nodes)
