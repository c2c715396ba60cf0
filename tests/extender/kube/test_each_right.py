"""What breaks without each right of the extender's roles: each is taken away alone, and what it is for does not work."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from extender.kube.api import Api, ApiError, Unreachable
from extender.kube.config import connect
from extender.kube.events import About, Events, KubeEvent
from extender.kube.lease import Election, LeaseDurations
from extender.kube.namespace_settings import namespaces
from extender.kube.objects.affinitygroup import GroupStatus, affinity_group
from extender.kube.objects.grouprows import affinity_groups
from extender.kube.objects.nrt import topology
from extender.kube.objects.told_kinds import KINDS
from extender.kube.policy_rows import policies
from extender.kube.publish import Desired, Publisher, Unwanted
from extender.kube.readers import Forbidden, Readers
from extender.kube.stream import Resource, nodes, pods, services
from extender.kube.tls.own_ca import CA_SECRET, SCHEDULER_SECRET, OwnCa
from extender.kube.tokens import BadToken, node_of
from extender.kube.watch import ListWatch
from lab.standins.apiserver import ApiServer
from lab.standins.patience import until
from numakin.placement.state.occupancy import Occupancy
from tests.cluster.rights import Right, granted
from tests.extender.kube.objects.defined import BUILT_IN, defined
from tests.extender.kube.objects.published import MACHINE
from tests.lab.standins.apiserver.recorded import exchanges
from tests.manifests.rendered import files, one
from tests.supervised import threads

NAMESPACE = "numakin"
ROLES = ("ClusterRole", "Role")
LEASE = (NAMESPACE, "numakin-extender")
TRIES = 8
"""Requests after which a Lease that was not renewed will not be."""


class Site(NamedTuple):
    server: ApiServer
    folder: Path


Works = Callable[[Api, Site], bool]
"""Does with these rights what a right is for; whether that came about."""


def watches(resource: Callable[[], Resource[Any]], name: str = "") -> Works:
    def works(api: Api, site: Site) -> bool:
        watcher = ListWatch(api, resource(), lambda _changes: None, threads=threads())
        watcher.start()
        until(lambda: site.server.watches() or watcher.standing.error, "it watches, or knows why not")
        watching = bool(site.server.watches())
        watcher.stop()
        return watching

    works.__name__ += name
    return works


def leads(api: Api, site: Site) -> bool:
    """And goes on: the Lease is renewed."""
    terms = LeaseDurations(lease_duration=1, renew_deadline=0.5, retry_period=0.02)
    election = Election(api, NAMESPACE, "numakin-extender", "me", terms=terms, threads=threads())
    election.start()
    until(lambda: renewed(site) or len(site.server.asked) > TRIES, "the Lease is renewed, or will not be")
    election.stop()
    return renewed(site)


def renewed(site: Site) -> bool:
    stored = site.server.store.get(site.server.answers.kind("coordination.k8s.io/v1", "leases"), LEASE)
    spec = stored.object["spec"] if stored is not None else {}
    return bool(spec) and spec["renewTime"] != spec["acquireTime"]


def events(times: int) -> Works:
    def works(api: Api, site: Site) -> bool:
        sent = Events(api, "me", threads=threads())
        sent.start()
        for _ in range(times):
            sent.emit(KubeEvent(About("shop", "cart-1", "u"), "NumaPlaced", "x"))
        sent.stop()
        return sent.dropped == 0

    return works


def published(*objects: Desired) -> Works:
    def works(api: Api, site: Site) -> bool:
        publisher = Publisher(api, lambda: objects, threads=threads())
        publisher.round()
        return publisher.published == len(objects)

    return works


def takes_back(api: Api, site: Site) -> bool:
    group = affinity_group(GroupStatus("shop", "old"))
    made = site.server.create("numakin.io/v1alpha1", "affinitygroups", {"metadata": {"name": "old"}}, "shop")[
        "metadata"
    ]
    publisher = Publisher(api, lambda: [Unwanted(group.path, made["uid"], made["resourceVersion"])], threads=threads())
    publisher.round()
    return site.server.count("delete", "affinitygroups") > 0 and not present(site, "affinitygroups", "old", "shop")


def certifies(api: Api, site: Site) -> bool:
    """The first time, and once more after the Secret was spoilt."""
    own = OwnCa(api, NAMESPACE, ("numakin-extender",), threads=threads())
    own.ensure()
    site.server.patch("v1", "secrets", CA_SECRET, {"data": {"0.crt": "eA=="}}, namespace=NAMESPACE)
    own.ensure()
    data = site.server.get("v1", "secrets", CA_SECRET, NAMESPACE)["data"]
    return data["0.crt"] != "eA==" and present(site, "secrets", SCHEDULER_SECRET, NAMESPACE)


def knows_enforcers(api: Api, site: Site) -> bool:
    try:
        node_of(api, "garbage", "numakin:numakin-enforcer")
    except BadToken:
        return True
    return False


def knows_readers(api: Api, site: Site) -> bool:
    try:
        Readers(api).check(site.server.grant("reader", []), "shop")
    except Forbidden:
        return True
    return False


def present(site: Site, plural: str, name: str, namespace: str) -> bool:
    version = "numakin.io/v1alpha1" if plural == "affinitygroups" else "v1"
    kind = site.server.answers.kind(version, plural)
    return site.server.store.get(kind, (namespace, name)) is not None


GROUP = affinity_group(GroupStatus("shop", "cart"))
TOPOLOGY = topology("n1", MACHINE, Occupancy(), "uid-1")
NRT, AUTH = "topology.node.k8s.io", "authentication.k8s.io"

USES: Mapping[Right, Works] = {
    **{Right("", "pods", verb): watches(pods) for verb in ("list", "watch")},
    **{Right("", "nodes", verb): watches(nodes) for verb in ("list", "watch")},
    **{Right("", "services", verb): watches(services) for verb in ("list", "watch")},
    **{Right("networking.k8s.io", "networkpolicies", verb): watches(policies) for verb in ("list", "watch")},
    **{
        Right(kind.group, kind.plural, verb): watches(kind.resource, kind.plural)
        for kind in KINDS
        for verb in ("list", "watch")
    },
    **{Right("", "namespaces", verb): watches(namespaces) for verb in ("list", "watch")},
    **{Right("numakin.io", "affinitygroups", verb): watches(affinity_groups) for verb in ("list", "watch")},
    Right("", "events", "create"): events(1),
    Right("", "events", "patch"): events(2),
    **{Right("numakin.io", "affinitygroups", verb): published(GROUP) for verb in ("create", "patch")},
    Right("numakin.io", "affinitygroups/status", "patch"): published(GROUP),
    Right("numakin.io", "affinitygroups", "delete"): takes_back,
    **{Right(NRT, "noderesourcetopologies", verb): published(TOPOLOGY) for verb in ("create", "patch")},
    Right(AUTH, "tokenreviews", "create"): knows_enforcers,
    Right("authorization.k8s.io", "subjectaccessreviews", "create"): knows_readers,
    **{Right("coordination.k8s.io", "leases", verb): leads for verb in ("create", "get", "update")},
    **{Right("", "secrets", verb): certifies for verb in ("create", "get", "update")},
    **{Right("", "configmaps", verb): certifies for verb in ("create", "patch")},
}
"""Each right, and what needs it."""

ADMISSION = Right(NRT, "noderesourcetopologies", "delete")
"""Nothing here uses it: where the admission plugin OwnerReferencesPermissionEnforcement is on, setting an owner takes it."""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Certificates are left in no folder that others look through."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with ApiServer() as server:
        server.define(one(files(), "CustomResourceDefinition", "affinitygroups.numakin.io"))
        requests = [each["request"] for each in exchanges("05-nrt-crd") if each["request"]["method"] == "POST"]
        server.define(json.loads(requests[-1]["body"]))
        for kind in KINDS:
            if kind.group not in BUILT_IN:
                server.define(defined(kind))
        server.create("v1", "namespaces", {"metadata": {"name": NAMESPACE}})
        server.create_pod("cart-1", "shop")
        yield Site(server, tmp_path)


def rules(kind: str, without: Right | None) -> list[dict[str, Any]]:
    """A role's, without a right."""
    return [
        {**rule, "apiGroups": [group], "resources": [resource], "verbs": [verb]}
        for rule in one(files(), kind, "numakin-extender")["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if Right(group, resource, verb) != without
    ]


def worked(site: Site, works: Works, without: Right | None = None) -> bool:
    site.server.grant("extender", rules("ClusterRole", without))
    token = site.server.grant("extender", rules("Role", without), NAMESPACE)
    api = connect(str(site.server.kubeconfig(site.folder / "extender", token)), {})
    assert api is not None
    try:
        return works(api, site)
    except (ApiError, Unreachable) as refused:
        if "403" not in str(refused):
            raise
        return False


@pytest.mark.parametrize(
    "works", {id(works): works for works in USES.values()}.values(), ids=lambda works: works.__name__
)
def test_with_all_rights_it_works(site, works):
    assert worked(site, works)


@pytest.mark.parametrize("right", USES, ids=" ".join)
def test_without_the_right_it_does_not(site, right):
    assert not worked(site, USES[right], right)


def test_no_right_is_left_out_here():
    assert USES.keys() | {ADMISSION} == granted(one(files(), kind, "numakin-extender") for kind in ROLES)
