"""A compromised enforcer says which group a pod is in, and each group has an object at the API server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.cluster import Cluster
from extender.kube.objects.published import groups
from extender.state.pods import Changes
from tests.extender.machines import pod
from tests.extender.running import reservation
from tests.extender.told import tell

HERE = replace(pod("p", node="n1"), phase="Running")


def objects(cluster: Cluster) -> list[str]:
    """The names of those that would be made."""
    return [each.path.rpartition("/")[2] for each in groups(cluster.picture(), {}, {})]


@pytest.mark.parametrize(
    ("node", "uid", "group"),
    [("n1", "invented", "default/g"), ("n1", "p", "kube-system/g"), ("n2", "p", "default/g")],
    ids=["of no pod", "of another namespace", "of a pod on another node"],
)
def test_a_group_that_an_enforcer_invents_gets_no_object(node: str, uid: str, group: str):
    cluster = Cluster()
    cluster.apply_pods(Changes(rows=(HERE,), whole=True))
    tell(cluster, node, reservation(uid, "0", group=group))
    assert objects(cluster) == []


def test_a_group_that_a_pod_of_the_api_servers_is_in_has_one():
    cluster = Cluster()
    cluster.apply_pods(Changes(rows=(HERE,), whole=True))
    tell(cluster, "n1", reservation("p", "0", group="default/g"))
    assert objects(cluster) == ["g"]
