from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.standins.patience import until
from numakin.process.ports import free_address
from numakin.wire import report_pb2 as pb
from tests.extender.running import Extender, machine, reservation, running
from tests.numakin.kubectl.documents import written

__all__ = ["written"]

POD = "0c3a"
"""The uid of shop/cart-0, which runs on node-1."""


@pytest.fixture(scope="session")
def extender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Extender]:
    """One that knows two nodes: on node-1 three members of shop/boutique, on node-2 nobody; cart-9 was scored.

    It outlives all tests, on a busy machine too: nothing of it gets too old.
    """
    with running(tmp_path_factory.mktemp("extender"), "--report-timeout=3600", "--hold=3600") as single:
        first = single.enforcer("node-1")
        members = [
            reservation(uid, numa, group="shop/boutique", milli=1500)
            for uid, numa in ((POD, "0"), ("1d", "0"), ("2e", "1"))
        ]
        decision = pb.DecisionRecord(
            pod=POD, namespace="shop", pod_name="cart-0", container="c1", container_name="cart", event="create",
            numa_nodes="0", cpus="0-7", mems="0", score=0.75, outcome=pb.KEPT, nominated="0",
            reasons=[pb.Reason(what="kin here", number="75 %", effect="pulls")],
        )  # fmt: skip
        first.report(machine(), *members, decisions=[decision])
        single.enforcer("node-2").report(machine())
        until(lambda: len(single.get("/api/v1/nodes")["nodes"]) == 2, "both nodes are known")
        single.post("prioritize", scored("cart-9"))
        yield single


@pytest.fixture
def at(extender: Extender) -> str:
    return f"--extender=http://{extender.web_address}"


@pytest.fixture
def nothing_there(tmp_path: Path) -> str:
    """An address at which nobody listens: the port is known to be free."""
    return f"http://{free_address()}"


def scored(name: str, group: str = "boutique", milli: int = 1000) -> bytes:
    """What kube-scheduler asks about a pod of namespace shop."""
    resources = {"requests": {"cpu": f"{milli}m", "memory": "1Gi"}}
    pod = {
        "metadata": {"name": name, "namespace": "shop", "uid": name, "annotations": {"group.numakin.io": group}},
        "spec": {"containers": [{"name": "cart", "resources": resources}]},
    }
    return json.dumps({"Pod": pod, "NodeNames": ["node-1", "node-2"]}).encode()
