"""Whoever reaches kube-scheduler's port without TLS asks about pods that are none: no room is held for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.patience import until
from tests.extender.running import Extender, machine, reservation, running

NODE = "n1"
SMALL = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as made:
        made.create_node(NODE)
        yield made


@pytest.fixture
def extender(server: ApiServer, tmp_path: Path) -> Iterator[Extender]:
    kubeconfig = str(server.kubeconfig(tmp_path / "kubeconfig"))
    with running(tmp_path, "--kube", "--kubeconfig", kubeconfig) as made:
        made.enforcer(NODE).report(machine(), reservation("kin", "0"))
        until(lambda: "pods" not in made.ask("GET", "/readyz")[1], "the pods are listed")
        yield made


def question(pod: dict[str, Any]) -> bytes:
    return json.dumps({"Pod": pod, "NodeNames": [NODE]}).encode()


def invented(number: int, cpu: str = "4") -> dict[str, Any]:
    return {
        "metadata": {"name": f"x-{number}", "namespace": "default", "uid": f"invented-{number}",
                     "annotations": {"group.numakin.io": "x"}},
        "spec": {"containers": [{**SMALL, "resources": {"requests": {"cpu": cpu}}}]},
    }  # fmt: skip


def held(extender: Extender) -> int:
    (node,) = extender.get("/api/v1/nodes")["nodes"]
    return sum(row["requested_cpu_milli"] for row in node["numa_nodes"])


def test_sixty_invented_pods_take_no_room(extender, server):
    before = held(extender)
    for number in range(60):
        extender.scores(question(invented(number)))
    assert held(extender) == before
    real = server.create_pod("real", annotations={"group.numakin.io": "shop"}, containers=[SMALL])
    until(lambda: extender.scores(question(real)) and held(extender) > before, "room is held for a real pod")


def test_a_real_pod_s_uid_with_other_requests_changes_nothing(extender, server):
    before = held(extender)
    real = server.create_pod("real", annotations={"group.numakin.io": "shop"}, containers=[SMALL])
    until(lambda: extender.scores(question(real)) and held(extender) > before, "it is known")
    before = held(extender)
    forged = {**real, "spec": {"containers": [{**SMALL, "resources": {"requests": {"cpu": "8"}}}]}}
    extender.scores(question(forged))
    assert held(extender) == before
