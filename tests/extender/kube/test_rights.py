"""The rights that the manifests give are enough for all that the extender does, and for no more."""

import json
import threading

import pytest

from extender.kube.api import Api, ApiError
from extender.kube.config import connect
from extender.kube.events import About, Events, KubeEvent
from extender.kube.lease import Election, LeaseDurations
from extender.kube.namespace_settings import namespaces
from extender.kube.objects.affinitygroup import GroupStatus, affinity_group
from extender.kube.objects.grouprows import affinity_groups
from extender.kube.objects.nrt import topology
from extender.kube.publish import Publisher, Unwanted
from extender.kube.stream import nodes, pods, services
from extender.kube.tokens import BadToken, node_of
from extender.kube.watch import ListWatch
from lab.standins.patience import PATIENCE_S
from numakin.placement.state.occupancy import Occupancy
from tests.extender.kube.objects.published import MACHINE
from tests.lab.standins.apiserver.recorded import exchanges
from tests.manifests.rendered import files, one
from tests.supervised import threads

NAMESPACE = "numakin"


@pytest.fixture
def extender(server, tmp_path) -> Api:
    """The API server as the extender's service account has it."""
    objects = files()
    server.define(one(objects, "CustomResourceDefinition", "affinitygroups.numakin.io"))
    requests = [each["request"] for each in exchanges("05-nrt-crd") if each["request"]["method"] == "POST"]
    server.define(json.loads(requests[-1]["body"]))
    server.create("v1", "namespaces", {"metadata": {"name": NAMESPACE}})
    server.create_pod("cart-1", "shop")
    token = server.grant("extender", one(objects, "ClusterRole", "numakin-extender")["rules"])
    server.grant("extender", one(objects, "Role", "numakin-extender")["rules"], NAMESPACE)
    api = connect(str(server.kubeconfig(tmp_path / "extender", token)), {})
    assert api is not None
    return api


@pytest.mark.parametrize("resource", [pods, nodes, namespaces, services, affinity_groups])
def test_it_may_watch(extender, server, resource):
    watcher = ListWatch(extender, resource(), lambda _changes: None, threads=threads())
    watcher.start()
    assert watcher.synced.wait(PATIENCE_S)
    server.wait_for("watches", 1)
    watcher.stop()


def test_it_may_publish(extender):
    objects = [affinity_group(GroupStatus("shop", "cart")), topology("n1", MACHINE, Occupancy(), "uid-1")]
    publisher = Publisher(extender, lambda: objects, threads=threads())
    publisher.round()
    assert publisher.published == 2


def test_it_may_take_back_an_object_of_its_own(extender, server):
    path = "/apis/numakin.io/v1alpha1/namespaces/shop/affinitygroups/cart"
    source: list = [affinity_group(GroupStatus("shop", "cart"))]
    publisher = Publisher(extender, lambda: source, threads=threads())
    publisher.round()
    made = server.get("numakin.io/v1alpha1", "affinitygroups", "cart", "shop")["metadata"]
    source[:] = [Unwanted(path, made["uid"], made["resourceVersion"])]
    publisher.round()
    with pytest.raises(ApiError, match="404"):
        extender.apply(
            f"{path}/status", {**affinity_group(GroupStatus("shop", "cart")).body, "status": {}}, manager="x"
        )


def test_it_may_lead(extender):
    led = threading.Event()
    election = Election(
        extender,
        NAMESPACE,
        "numakin-extender",
        "me",
        lambda _leading: led.set(),
        terms=LeaseDurations(retry_period=0.02),
        threads=threads(),
    )
    election.start()
    assert led.wait(PATIENCE_S)
    election.stop()


def test_it_may_tell_events_and_count_them(extender, server):
    received = Events(extender, "me", threads=threads())
    received.start()
    for _ in range(2):
        received.emit(KubeEvent(About("shop", "cart-1", "u"), "NumaPlaced", "x"))
    received.stop()
    assert received.dropped == 0
    assert server.count("patch", "events") == 1


def test_it_may_review_tokens(extender):
    with pytest.raises(BadToken):
        node_of(extender, "garbage", "numakin:numakin-enforcer")


FORBIDDEN = (
    ("DELETE", "/api/v1/namespaces/shop/pods/cart-1"),
    ("POST", "/api/v1/namespaces/shop/pods/cart-1/binding"),
    ("PATCH", "/api/v1/namespaces/shop/pods/cart-1"),
    ("GET", "/api/v1/namespaces/shop/pods/cart-1"),
    ("PATCH", "/api/v1/nodes/n1"),
    ("PATCH", "/api/v1/namespaces/shop"),
    ("GET", "/apis/coordination.k8s.io/v1/namespaces/shop/leases/numakin-extender"),
    ("GET", "/apis/coordination.k8s.io/v1/namespaces/numakin/leases/other"),
    ("POST", "/api/v1/namespaces/numakin/serviceaccounts/numakin-enforcer/token"),
)


@pytest.mark.parametrize(("method", "path"), FORBIDDEN)
def test_it_may_not(extender, method, path):
    with pytest.raises(ApiError, match="403 Forbidden"):
        extender.request(method, path, body={})
