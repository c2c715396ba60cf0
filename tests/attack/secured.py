"""The base installation, with its certificates and its ports."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.extender import ExtenderProcess
from lab.standins.patience import PATIENCE_S
from tests.manifests.rendered import files, one

NAMESPACE = "numakin"


@dataclass
class Site:
    server: ApiServer
    extender: ExtenderProcess
    folder: Path

    def secret(self, name: str) -> dict[str, bytes]:
        data = self.server.get("v1", "secrets", name, NAMESPACE)["data"]
        return {key: base64.b64decode(value) for key, value in data.items()}

    def context(self, *, scheduler: bool = False) -> ssl.SSLContext:
        bundle = self.server.get("v1", "configmaps", "numakin-ca-bundle", NAMESPACE)["data"]["ca.crt"]
        context = ssl.create_default_context(cadata=bundle)
        if scheduler:
            for name, content in self.secret("numakin-kube-scheduler").items():
                (self.folder / name).write_bytes(content)
            context.load_cert_chain(self.folder / "tls.crt", self.folder / "tls.key")
        return context

    def ask(
        self, method: str, path: str, body: bytes | None = None, *, scheduler: bool = False, **headers: str
    ) -> tuple[int, Any]:
        context = self.context(scheduler=scheduler)
        address = self.extender.port_of(path)
        connection = http.client.HTTPSConnection(address, timeout=PATIENCE_S, context=context)
        with closing(connection):
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return response.status, json.loads(response.read())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """As the manifests have it: the extender's own account, with its own rights alone."""
    folder = tmp_path_factory.mktemp("secured")
    objects = files()
    with ApiServer() as server:
        server.define(one(objects, "CustomResourceDefinition", "affinitygroups.numakin.io"))
        for namespace in (NAMESPACE, "shop", "other"):
            server.create("v1", "namespaces", {"metadata": {"name": namespace}})
        token = server.grant("extender", one(objects, "ClusterRole", "numakin-extender")["rules"])
        server.grant("extender", one(objects, "Role", "numakin-extender")["rules"], NAMESPACE)
        kubeconfig = str(server.kubeconfig(folder / "kubeconfig", token))
        options = ("--kubeconfig", kubeconfig, "--namespace", NAMESPACE, "--own-ca", "--authorise-readers",
                   "--enforcer-account", "numakin:numakin-enforcer")  # fmt: skip
        extender = ExtenderProcess(folder, options)
        extender.start()
        yield Site(server, extender, folder)
        extender.end()
