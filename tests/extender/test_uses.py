"""From what a node says that a workload uses to the next pod's score and what its enforcer is sent: the real program."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.patience import until
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.state.occupancy import Reservation
from numakin.wire import report_pb2 as pb
from numakin.wire.bounds import USES
from tests.extender.running import GIB, Extender, machine

SMALL = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}
WEB = "default/Deployment/web"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as first:
        for node in ("n1", "n2"):
            first.create_node(node)
        yield first


def created(server: ApiServer, name: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d7", "uid": "r"}
    labels = {"pod-template-hash": "5d7"}
    keys = {"group.numakin.io": "shop"}
    return server.create_pod(name, annotations=keys, containers=[SMALL], owner=owner, labels=labels)


def busy(pod: str) -> Reservation:
    """A member on NUMA node 0 that uses six of the eight CPUs there, and asks for 100m."""
    demand = Demand(cpu_milli=100, used_milli=6000)
    return Reservation(pod, pod, "default/shop", NumaSet.parse("0"), demand, workload=WEB)


def used(extender: Extender) -> int | None:
    """What a pod of the workload is known to use."""
    rows = extender.get("/api/v1/graph")["workloads"]
    return next((row["used_cpu_milli"] for row in rows if row["workload"] == WEB), None)


def test_a_pod_of_a_workload_that_uses_more_than_it_asks_for_goes_where_there_is_cpu(
    watching: Extender, server: ApiServer
) -> None:
    first, second = watching.enforcer("n1"), watching.enforcer("n2")
    first.report(machine(), busy("kin"))
    second.report(machine())
    first.send(traffic=pb.Traffic(uses={WEB: 6000}))
    pod = created(server, "web-1")
    until(lambda: used(watching) == 6000, "what the workload uses to be known")
    scores = watching.scores(json.dumps({"Pod": pod, "NodeNames": ["n1", "n2"]}).encode())
    assert scores["n1"] > scores["n2"]
    server.bind("web-1", "n1")
    expect = first.next().expect
    assert expect.numa_nodes == "1", "beside its kin more would be used than there is"
    assert (expect.pod_demand.cpu_milli, expect.pod_demand.used_milli) == (100, 6000)
    assert expect.containers[0].demand == pb.Demand(cpu_milli=100, memory=GIB)


@pytest.mark.parametrize(
    "uses",
    [
        pytest.param({"no workload": 5}, id="no name"),
        pytest.param({"a/b": 5}, id="no workload"),
        pytest.param({WEB: 0}, id="nothing"),
        pytest.param({WEB: 1 << 60}, id="more than any pod"),
        pytest.param({f"a/B/w{number}": 1 for number in range(USES + 1)}, id="too many"),
    ],
)
def test_what_can_be_no_use_is_refused(watching: Extender, uses: dict[str, int]) -> None:
    enforcer = watching.enforcer("n1")
    enforcer.report(machine())
    enforcer.send(traffic=pb.Traffic(uses=uses))
    assert "Traffic.uses" in enforcer.failure().details()
