"""A group with devices, over HTTP: its room and its devices are held where enforcers report these as free."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.patience import until
from numakin.wire import report_pb2 as pb
from tests.extender.running import Extender, machine, running

CARD = "example.com/card"
FREE = {"a": {}, "b": {"0": 0, "1": 2}, "c": {"0": 1, "1": 0}}
"""By node, how many are free near which NUMA nodes."""


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


@pytest.fixture
def extender(tmp_path: Path, server: ApiServer) -> Iterator[Extender]:
    kubeconfig = str(server.kubeconfig(tmp_path / "kubeconfig"))
    with running(tmp_path, "--kube", "--kubeconfig", kubeconfig, "--namespace", "default") as extender:
        for node, free in FREE.items():
            server.create_node(node)
            cards = [pb.FreeDevices(resource=CARD, numa_nodes=near, free=count) for near, count in free.items()]
            extender.enforcer(node).report(machine(), free_devices=cards)
        yield extender


def made(server: ApiServer, name: str, **devices: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1", "memory": "1Mi", **devices}, "limits": devices}
    containers = [{"name": "main", "image": "example.invalid/app:1", "resources": resources}]
    return server.create_pod(name, annotations={"group.numakin.io": "shop"}, containers=containers)


def left(extender: Extender) -> dict[str, int]:
    return {
        row["node"]: sum(each["free"] for each in row["free_devices"])
        for row in extender.get("/api/v1/nodes")["nodes"]
    }  # fmt: skip


def test_pods_without_a_device_lead_to_the_node_where_those_after_them_find_theirs(
    server: ApiServer, extender: Extender
):
    plain = [made(server, f"feeder-{at}") for at in range(2)]
    with_card = [made(server, f"trainer-{at}", **{CARD: "1"}) for at in range(2)]
    place = {"node": "b", "numa_node": 1, "cpu_milli": 4000, "memory": 4 << 20}
    until(lambda: extender.get("/api/v1/plans")["held"] == {"default/shop": [place]}, "all four have room held")
    assert left(extender) == {"a": 0, "b": 0, "c": 1}
    for pod in (*plain, *with_card):
        scores = extender.scores(json.dumps({"Pod": pod, "Nodes": None, "NodeNames": [*FREE]}).encode())
        assert max(scores, key=scores.__getitem__) == "b", scores
        server.bind(pod["metadata"]["name"], "b")
    until(lambda: not extender.get("/api/v1/plans")["held"], "all have come")
    assert left(extender) == {"a": 0, "b": 0, "c": 1}, "what is expected to be taken is not free"
