"""One node with its runtime and its enforcer, an extender, and an API server: real processes between two stand-ins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.standins.apiserver import ApiServer
from lab.standins.patience import until
from lab.standins.runtime.runtime import Runtime
from tests.enforcer.running import Enforcer
from tests.extender.running import Extender


class NodeSite:
    """options: the enforcer's. runtime: as Runtime takes it."""

    def __init__(self, folder: Path, *options: str, **runtime: Any) -> None:
        self.server = ApiServer()
        self.server.start()
        self.server.create_node("n1")
        kubeconfig = str(self.server.kubeconfig(folder / "kubeconfig"))
        (folder / "extender").mkdir()
        self.extender = Extender(folder / "extender", "--kube", "--kubeconfig", kubeconfig, "--namespace", "default")
        self.enforcer = Enforcer(folder)
        self.runtime = Runtime(self.enforcer.socket, **runtime)
        self.runtime.start()
        self.enforcer.start("--extender", self.extender.grpc_address, "--podresources-socket", "off", *options)
        self.runtime.wait_for_plugin()
        until(lambda: [node for node in self.nodes() if node["connected"]], "the node is connected")

    def close(self) -> None:
        self.enforcer.close()
        self.runtime.stop()
        self.extender.stop()
        self.server.close()

    def nodes(self) -> list[dict[str, Any]]:
        nodes: list[dict[str, Any]] = self.extender.get("/api/v1/nodes")["nodes"]
        return nodes
