"""numakin's own pods, and programs that run inside of them as `kubectl exec` would start them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from kubectl_numakin.apiserver import ApiServer
from kubectl_numakin.errors import CommandError, Unanswered

ENFORCER, EXTENDER = "numakin-enforcer", "numakin-extender"
"""Values of the label app.kubernetes.io/name, and names of the containers' programs."""

AT_ONCE = 16
"""Pods that are asked at the same time."""

EXEC_S = 60.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OwnPod:
    """One of numakin's pods. arguments: of its program, with the node's name filled in."""

    name: str
    node: str
    running: bool
    container: str
    arguments: tuple[str, ...]
    ports: dict[str, int]

    def option(self, name: str, default: str) -> str:
        """Of --NAME=VALUE among its arguments."""
        start = f"--{name}="
        return next(
            (argument.removeprefix(start) for argument in self.arguments if argument.startswith(start)), default
        )


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program in a pod printed. code: its exit code."""

    code: int
    out: str
    err: str


def own_pods(api: ApiServer, namespace: str, name: str) -> list[OwnPod]:
    """By node. Unanswered when they may not be listed."""
    query = {"labelSelector": f"app.kubernetes.io/name={name}"}
    items = api.object(f"/api/v1/namespaces/{namespace}/pods", query)["items"]
    return sorted((_own(item) for item in items), key=lambda pod: (pod.node, pod.name))


def _own(item: dict[str, Any]) -> OwnPod:
    spec, (container, *_) = item["spec"], item["spec"]["containers"]
    node = spec.get("nodeName") or ""
    arguments = (argument.replace("$(NODE_NAME)", node) for argument in container.get("args") or ())
    ports = {port.get("name", ""): port["containerPort"] for port in container.get("ports") or ()}
    running = (item.get("status") or {}).get("phase") == "Running" and not item["metadata"].get("deletionTimestamp")
    return OwnPod(item["metadata"]["name"], node, running, container["name"], tuple(arguments), ports)


def of_nodes(pods: Sequence[OwnPod], nodes: Iterable[str]) -> list[OwnPod]:
    """Those of these nodes; of all when none is named. CommandError for a node that has none."""
    wanted = list(nodes)
    for node in wanted:
        if node not in {pod.node for pod in pods}:
            raise CommandError(f"no enforcer's pod is on node {node}; they are on: {_listed(pods)}")
    return [pod for pod in pods if not wanted or pod.node in wanted]


def _listed(pods: Sequence[OwnPod]) -> str:
    return ", ".join(sorted({pod.node for pod in pods})) or "none"


def run_in(api: ApiServer, namespace: str, pod: OwnPod, command: Sequence[str], timeout_s: float = EXEC_S) -> Ran:
    """Runs a program in the pod's container. Unanswered when it can't be started there."""
    from kubernetes import client  # noqa: PLC0415
    from kubernetes.stream import stream  # noqa: PLC0415

    # Of its own: while it opens a web socket, the package changes the client that it is given.
    connect = client.CoreV1Api(client.ApiClient(api.client.configuration)).connect_get_namespaced_pod_exec
    try:
        opened = stream(
            connect, pod.name, namespace, container=pod.container, command=list(command),
            stdout=True, stderr=True, stdin=False, tty=False, _preload_content=False,
        )  # fmt: skip
    except Exception as bad:  # the package raises what its layers raise
        raise Unanswered(f"{pod.name} on {pod.node}: no program can be started there: {_why(bad)}") from bad
    try:
        opened.run_forever(timeout=timeout_s)
        if opened.is_open():
            raise Unanswered(f"{pod.name} on {pod.node}: {command[0]} has not ended after {timeout_s:.0f} s")
        out, err = opened.read_stdout(timeout=0), opened.read_stderr(timeout=0)
        return Ran(int(opened.returncode or 0), out, err)
    finally:
        opened.sock.shutdown()


def _why(bad: Exception) -> str:
    """The Status' message where there is one; else the first line."""
    for detail in (getattr(bad, "body", None), str(bad)):
        text = detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail or "")
        start, end = text.find('{"kind":"Status"'), text.rfind("}")
        if start >= 0:
            with suppress(ValueError, KeyError):
                return str(json.loads(text[start : end + 1])["message"])
    return str(getattr(bad, "reason", None) or bad).splitlines()[0][:300]


def each(pods: Sequence[OwnPod], ask: Callable[[OwnPod], T]) -> Iterator[tuple[OwnPod, T | CommandError]]:
    """Asks of every pod at the same time, in their order; what one fails by costs none of the others."""

    def contained(pod: OwnPod) -> T | CommandError:
        try:
            return ask(pod)
        except CommandError as bad:
            return bad

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from zip(pods, pool.map(contained, pods), strict=True)
