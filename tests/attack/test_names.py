"""Names that lead elsewhere: each is refused where it comes in, by the field's name, and reaches no path and no log."""

from __future__ import annotations

import json
from collections.abc import Iterator

import grpc
import pytest

from extender.kube.api import Api, Unreachable
from extender.kube.config import connect
from lab.standins.apiserver import ApiServer
from numakin.wire import report_pb2 as pb
from tests.extender.running import Extender, machine, recorded, reservation, running, whole_report

EVICTION = "kube-system/pods/etcd-0/eviction?x="
FORGED = (EVICTION, "../../secrets", "a/b", "a\nb", "A", "a" * 254, "-a", "\uff41")
BASE = {"pod": "u", "namespace": "shop", "pod_name": "cart-1", "container": "c", "container_name": "main"}


REFUSED = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED)


@pytest.fixture(scope="module")
def extender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Extender]:
    """One for all: whatever is tried, it goes on."""
    with running(tmp_path_factory.mktemp("extender")) as first:
        yield first


@pytest.mark.parametrize("name", FORGED, ids=range(len(FORGED)))
@pytest.mark.parametrize("field", ["namespace", "pod_name", "container_name"])
def test_a_compromised_enforcer_can_not_forge_a_name(extender: Extender, field, name):
    """Each of these would have come into the path of a request to the API server."""
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    enforcer.send(report=whole_report(2, decisions=[pb.DecisionRecord(**{**BASE, field: name})]))
    assert enforcer.failure().code() is grpc.StatusCode.INVALID_ARGUMENT
    lines = [json.loads(line) for line in extender.log.read_text().splitlines()]
    assert not [line for line in lines if line["event"] == "decided"]
    assert f"DecisionRecord.{field}" in [line for line in lines if line["event"] == "report refused"][-1]["why"]


@pytest.mark.parametrize("name", FORGED, ids=range(len(FORGED)))
def test_a_node_s_name_is_one(extender: Extender, name):
    assert extender.enforcer(name).failure().code() in REFUSED


@pytest.mark.parametrize("group", ["shop", "../x", "shop/a\nb", "shop/" + "a" * 64])
def test_a_group_s_name_is_one(extender: Extender, group):
    enforcer = extender.enforcer("n1")
    enforcer.next()
    report = whole_report(1, [reservation("a", "0", group=group)])
    enforcer.send(machine=pb.Machine(numa_nodes=[pb.NumaNode(id=0, cpus="0-7", memory=1 << 34, distances=[10])]))
    enforcer.send(report=report)
    assert enforcer.failure().code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("field", ["name", "namespace", "uid"])
@pytest.mark.parametrize("name", ["../x", "a\nb", "a b", "a" * 600])
def test_kube_scheduler_s_port_takes_no_such_pod(extender: Extender, field, name):
    """One that has opted in: of others nothing is decoded, and their names go nowhere."""
    body = json.loads(recorded("basic-nodecache-true.filter", opted_in=True))
    body["Pod"]["metadata"][field] = name
    status, answer = extender.ask("POST", "/filter", json.dumps(body).encode())
    assert status == 400
    assert answer["error"].startswith(f"Pod.metadata.{field}: ")


@pytest.mark.parametrize(
    "path", [f"/api/v1/namespaces/{EVICTION}/events", "/api/v1/../x", "/api/v1/a%2fb", "/a\r\nb: c"]
)
def test_no_path_leads_elsewhere_whatever_was_overlooked(tmp_path, path):
    with ApiServer() as server:
        api = connect(str(server.kubeconfig(tmp_path / "kubeconfig")), {})
        assert isinstance(api, Api)
        with pytest.raises(Unreachable, match="not asked"):
            api.request("POST", path, body={})
        assert server.asked == []
