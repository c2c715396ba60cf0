"""An extender with its own certificates beside a real API server, with the rights of its account and no others."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from extender.kube.tls import own_ca
from extender.scheduler.verbs import VERBS
from lab.cluster.cluster import ACCOUNT, NAMESPACE, Cluster
from lab.standins.extender import ExtenderProcess
from lab.standins.patience import PATIENCE_S
from tests import forked

OPTIONS = ("--namespace", NAMESPACE, "--own-ca", "--authorise-readers")


@dataclass(frozen=True, slots=True)
class Secured:
    """An extender that runs. http, grpc, web: HOST:PORT of kube-scheduler's port, of enforcers' and of people's. folder:
    for kube-scheduler's files.
    """

    cluster: Cluster
    http: str
    grpc: str
    web: str
    folder: Path

    def data(self, kind: str, name: str) -> dict[str, bytes]:
        """Of a ConfigMap or Secret."""
        result = json.loads(self.cluster.kubectl("-n", NAMESPACE, "get", kind, name, "-o", "json"))["data"]
        return {key: base64.b64decode(text) if kind == "secret" else text.encode() for key, text in result.items()}

    def copy_scheduler_files(self) -> Path:
        """As scheduler-config/kube-scheduler-config.yaml tells: ca.crt, tls.crt and tls.key, into the folder."""
        for name, content in self.data("secret", own_ca.SCHEDULER_SECRET).items():
            (self.folder / name).write_bytes(content)
        return self.folder

    def ask(
        self, method: str, path: str, body: bytes | None = None, *, scheduler: bool = False, **headers: str
    ) -> tuple[int, Any]:
        """Status and JSON. scheduler: with kube-scheduler's certificate."""
        context = ssl.create_default_context(cadata=self.data("configmap", own_ca.BUNDLE)["ca.crt"].decode())
        if scheduler:
            files = self.copy_scheduler_files()
            context.load_cert_chain(files / "tls.crt", files / "tls.key")
        address = self.http if path.lstrip("/") in VERBS else self.web
        connection = http.client.HTTPSConnection(address, timeout=PATIENCE_S, context=context)
        with closing(connection):
            connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
            response = connection.getresponse()
            return response.status, json.loads(response.read())


@contextmanager
def started(cluster: Cluster, folder: Path, *options: str) -> Iterator[Secured]:
    made = cluster.plane.kubeconfig.parent / "secured.kubeconfig"
    config = json.loads(cluster.plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": cluster.token(NAMESPACE, ACCOUNT)}
    made.write_text(json.dumps(config))
    extender = ExtenderProcess(folder, ("--kubeconfig", str(made), *OPTIONS, *options), begin=forked.extender)
    extender.start()
    try:
        yield Secured(cluster, extender.http, extender.grpc, extender.web, folder)
    finally:
        extender.end()
