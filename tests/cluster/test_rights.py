"""The roles of the manifests, held to what a real API server was asked for."""

from __future__ import annotations

from extender.kube.api import Api, ApiError
from extender.kube.objects.told_kinds import KINDS
from lab.cluster.cluster import Cluster
from tests.cluster.rights import Right, granted, refused, requests, roles_of, used
from tests.cluster.workloads import Namespace, member
from tests.manifests.rendered import files

EXTENDER, ENFORCER = "system:serviceaccount:numakin:numakin-extender", "system:serviceaccount:numakin:numakin-enforcer"

NOT_SEEN = {
    Right("numakin.io", "affinitygroups", "delete"),  # ten minutes after a group's last pod
    Right("topology.node.k8s.io", "noderesourcetopologies", "delete"),  # what an admission plugin may ask for
}
"""Rights that no run of some minutes uses."""

WITH_TLS = {
    *(Right("", "secrets", verb) for verb in ("create", "get", "update")),
    *(Right("", "configmaps", verb) for verb in ("create", "patch")),
    Right("authorization.k8s.io", "subjectaccessreviews", "create"),
    Right("authentication.k8s.io", "tokenreviews", "create"),
}
"""Rights of an installation with its own CA, and with readers and enforcers that are known; here the extender runs
without them.
"""


def rights_to_absent_kinds(api: Api) -> set[Right]:
    """Of the kinds that say how many pods come together those that this cluster does not have, which are not asked for."""
    return {
        Right(kind.group, kind.plural, verb)
        for kind in KINDS
        if not serves(api, kind.path)
        for verb in ("list", "watch")
    }


def serves(api: Api, path: str) -> bool:
    try:
        api.get(path, {"limit": "1"})
    except ApiError as refused:
        return refused.code != 404
    return True


def test_nothing_is_granted_to_the_extender_that_it_does_not_use_and_nothing_refused(
    ten_nodes: Cluster, namespace: Namespace
):
    namespace.deploy(member("shop", 2))
    namespace.until_running(2)
    (first, *_) = namespace.pods()
    ten_nodes.nodes[first["spec"]["nodeName"]].restart_containers(first["metadata"]["uid"])
    roles = roles_of("numakin-extender", files())
    expected = granted(roles) - NOT_SEEN - WITH_TLS - rights_to_absent_kinds(ten_nodes.plane.api)
    log = ten_nodes.plane.audit_log
    ten_nodes.until(
        lambda: expected <= used(requests(log, EXTENDER)),
        "the extender to use each right that it has",
    )
    assert used(requests(log, EXTENDER)) <= granted(roles)
    assert refused(requests(log, EXTENDER)) == []


def test_enforcers_ask_the_api_server_for_nothing(ten_nodes: Cluster):
    assert list(requests(ten_nodes.plane.audit_log, ENFORCER)) == []
