"""The secured installation on a real API server: its own certificates, and readers by real tokens and RBAC."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest

from extender.kube.readers import TOKEN_HEADER
from lab.cluster.cluster import NAMESPACE, Terms
from tests.cluster.conftest import up
from tests.cluster.secured import Secured, started
from tests.extender.running import recorded
from tests.manifests.rendered import WHOLE, rendered

pytestmark = pytest.mark.thorough

FOREIGN = ("cert-manager.io/v1", "monitoring.coreos.com/v1")
"""Kinds of others, which a bare API server does not have."""


@pytest.fixture(scope="module")
def secured(kubernetes, request, tmp_path_factory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    with up(kubernetes, Terms({}, extenders=0), request) as cluster, started(cluster, folder) as secured:
        yield secured


@pytest.mark.parametrize("overlay", WHOLE)
def test_the_api_server_takes_every_overlay(secured, overlay):
    objects = [each for each in rendered(overlay) if each["apiVersion"] not in FOREIGN]
    applied = secured.cluster.apply(objects).splitlines()
    assert len(applied) == len(objects), applied


def test_kube_scheduler_s_certificate_of_the_secret_is_taken_and_nobody_else_is(secured):
    body = recorded("basic-nodecache-true.filter")
    assert secured.ask("POST", "/filter", body, scheduler=True)[0] == 200
    with pytest.raises((ssl.SSLError, ConnectionError)):
        secured.ask("POST", "/filter", body)


def test_readers_are_let_in_as_rbac_says(secured):
    secured.cluster.kubectl("create", "namespace", "shop")
    secured.cluster.kubectl("-n", "shop", "create", "serviceaccount", "tenant")
    token = f"Bearer {secured.cluster.token('shop', 'tenant')}"
    assert secured.ask("GET", "/api/v1/nodes")[0] == 401
    assert secured.ask("GET", "/api/v1/nodes", Authorization=token)[0] == 403
    binding = ("create", "rolebinding", "tenant", "--clusterrole=numakin-reader", "--serviceaccount=shop:tenant")
    secured.cluster.kubectl("-n", "shop", *binding)
    assert secured.ask("GET", "/api/v1/explain?namespace=shop&pod=x", Authorization=token)[0] == 404
    assert secured.ask("GET", "/api/v1/explain?namespace=default&pod=x", Authorization=token)[0] == 403
    viewer = secured.cluster.token(NAMESPACE, "numakin-viewer")
    assert secured.ask("GET", "/api/v1/nodes", **{TOKEN_HEADER: viewer})[0] == 200
