"""The cluster of a soak: a stand-in API server, the extender, a proxy and a link between it and each enforcer, and
the nodes.
"""

from __future__ import annotations

import json
import signal
import socket
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from http.client import HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lab.standins.apiserver import ApiServer
from lab.standins.extender import ExtenderProcess
from tests.soak.clock import WallClock, forget_killed
from tests.soak.nodes import Node, Uplink
from tests.soak.packets import namespaces
from tests.soak.packets.link import Link
from tests.soak.pods import PodSpec
from tests.soak.processes import send, until
from tests.soak.proxy import Proxy

NAMESPACE = "soak"
CALL_S = 5.0
"""kube-scheduler's default for an extender."""

Make = Callable[[str, Path, Uplink, ExitStack], Node]
"""A node of this name in this folder, that reaches the extender by this and ends with this stack."""


class Cluster:
    """A context manager. nodes: their names, with what makes each. links: by node; none where this machine can't have them."""

    def __init__(self, folder: Path, make: Make, names: Sequence[str]) -> None:
        self._folder, self._make, self._names = folder, make, names
        self._stack = ExitStack()
        self.nodes: list[Node] = []
        self.proxies: dict[str, Proxy] = {}
        self.links: dict[str, Link] = {}
        self.killed = 0

    def __enter__(self) -> Self:
        self._stack.callback(forget_killed)
        try:
            self.api = self._stack.enter_context(ApiServer())
            self.api.kubeconfig(self._folder / "kubeconfig")
            options = ("--kubeconfig", str(self._folder / "kubeconfig"))
            self.clock = WallClock(self._folder)
            self.extender = ExtenderProcess(self._folder, options, environment=self.clock.environment)
            self._stack.callback(self.extender.end)
            self.extender.start()
            for name in self._names:
                self.api.create_node(name)
                (self._folder / name).mkdir()
                self.nodes.append(self._make(name, self._folder / name, self._uplink(name), self._stack))
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def created(self, spec: PodSpec, node: str) -> str:
        """The pod at the API server, scored by the extender as kube-scheduler would have it, and bound; its uid."""
        pod = self.api.create_pod(
            spec.name,
            NAMESPACE,
            annotations=spec.annotations,
            containers=[{"name": "app", "image": "app:1", "resources": {"requests": {"cpu": str(spec.cpus)}}}],
        )
        self._ask("/prioritize", {"Pod": pod, "NodeNames": [each.name for each in self.nodes]})
        self.api.bind(spec.name, node, NAMESPACE)
        return str(pod["metadata"]["uid"])

    def deleted(self, spec: PodSpec) -> None:
        self.api.delete("v1", "pods", spec.name, NAMESPACE, grace_s=0)

    def views(self) -> dict[str, dict[str, Any]]:
        """node -> what the extender has of it; {} while it does not answer."""
        return {row["node"]: row for row in (self._ask("/api/v1/nodes") or {}).get("nodes", ())}

    def extender_pid(self) -> int:
        """0 while it does not run."""
        process = self.extender.process
        return 0 if process is None or process.poll() is not None else process.pid

    def kill(self, pid: int) -> None:
        """By SIGKILL; counted, unless nobody is there (0)."""
        if pid:
            send(pid, signal.SIGKILL)
            self.killed += 1

    def keep(self) -> None:
        """What has ended is started again, as the kubelet does."""
        for node in self.nodes:
            node.enforcer.keep()
        if not self.extender_pid():
            self.extender.start()

    def settled(self) -> None:
        """Raises NotSettled."""

        def answers() -> bool:
            self.keep()
            return bool(self.views())

        until(answers, lambda: "the extender does not answer")

    def _uplink(self, name: str) -> Uplink:
        """Over a link to the proxy, and on to the extender by loopback."""
        if namespaces.missing():
            proxy = self.proxies[name] = self._stack.enter_context(Proxy(self.extender.grpc))
            return Uplink(proxy.address)
        link = self.links[name] = self._stack.enter_context(Link())
        with link.extender.entered():
            listener = socket.create_server((link.extender.address, 0))
        proxy = self.proxies[name] = self._stack.enter_context(Proxy(self.extender.grpc, listener))
        return Uplink(proxy.address, link.node.command)

    def _ask(self, path: str, body: Any = None) -> Any:
        """None where the extender does not answer: kube-scheduler goes on without it (`ignorable`)."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://{self.extender.port_of(path)}{path}", data, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=CALL_S) as answer:
                return json.load(answer)
        except (OSError, HTTPException, ValueError):
            return None
