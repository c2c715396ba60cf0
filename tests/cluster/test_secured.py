"""The secured installation on a real API server: its own certificates, and readers by real tokens and RBAC."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cluster.cluster import ACCOUNT, NAMESPACE, Cluster, Terms
from extender.kube.readers import TOKEN_HEADER
from extender.kube.tls import own_ca
from standins.extender import ExtenderProcess
from standins.patience import PATIENCE_S
from tests.cluster.conftest import up
from tests.extender.running import recorded
from tests.manifests.rendered import WHOLE, rendered

FOREIGN = ("cert-manager.io/v1", "monitoring.coreos.com/v1")
"""Kinds of others, which a bare API server does not have."""


@dataclass
class Secured:
    cluster: Cluster
    extender: ExtenderProcess
    folder: Path

    def data(self, kind: str, name: str) -> dict[str, bytes]:
        result = json.loads(self.cluster.kubectl("-n", NAMESPACE, "get", kind, name, "-o", "json"))["data"]
        return {key: base64.b64decode(text) if kind == "secret" else text.encode() for key, text in result.items()}

    def ask(
        self, method: str, path: str, body: bytes | None = None, *, scheduler: bool = False, **headers: str
    ) -> tuple[int, Any]:
        context = ssl.create_default_context(cadata=self.data("configmap", own_ca.BUNDLE)["ca.crt"].decode())
        if scheduler:
            for name, content in self.data("secret", own_ca.SCHEDULER_SECRET).items():
                (self.folder / name).write_bytes(content)
            context.load_cert_chain(self.folder / "tls.crt", self.folder / "tls.key")
        connection = http.client.HTTPSConnection(self.extender.http, timeout=PATIENCE_S, context=context)
        connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        return response.status, answer


@pytest.fixture(scope="module")
def secured(kubernetes, request, tmp_path_factory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    with up(kubernetes, Terms({}, extenders=0), request) as cluster:
        token = cluster.token(NAMESPACE, ACCOUNT)
        made = cluster.plane.kubeconfig.parent / "secured.kubeconfig"
        config = json.loads(cluster.plane.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        made.write_text(json.dumps(config))
        options = ("--kubeconfig", str(made), "--namespace", NAMESPACE, "--own-ca", "--authorise-readers")
        extender = ExtenderProcess(folder, options)
        extender.start()
        yield Secured(cluster, extender, folder)
        extender.end()


@pytest.mark.parametrize("overlay", WHOLE)
def test_the_api_server_takes_every_overlay(secured, overlay):
    objects = [each for each in rendered(overlay) if each["apiVersion"] not in FOREIGN]
    applied = secured.cluster.apply(objects).splitlines()
    assert len(applied) == len(objects), applied


def test_kube_scheduler_s_certificate_of_the_secret_is_taken_and_nobody_else_is(secured):
    body = recorded("basic-nodecache-true.filter")
    assert secured.ask("POST", "/filter", body, scheduler=True)[0] == 200
    assert secured.ask("POST", "/filter", body)[0] == 401


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
