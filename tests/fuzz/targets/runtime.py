"""What a runtime without NRI says over CRI, and the kubelet over its podresources API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from google.protobuf import json_format
from google.protobuf.message import DecodeError

from enforcer.bypass.messages import container_of, sandbox_of
from enforcer.hook.facts import pods
from enforcer.observer.podresources import MOST_ROWS, told_of
from numakin.wire import cri_pb2 as cri
from numakin.wire import podresources_pb2 as pr
from tests.enforcer import bypass
from tests.fuzz.target import Target, must

RECORDED = Path(bypass.__file__).parent / "recorded"


def sandbox(data: bytes) -> None:
    try:
        answer = cri.PodSandboxStatusResponse.FromString(data)
    except DecodeError:
        return
    sandbox_of(answer).SerializeToString()


def container(data: bytes) -> None:
    """Whatever its `info` says: a message, whose demand and claim can be read."""
    try:
        answer = cri.ContainerStatusResponse.FromString(data)
    except DecodeError:
        return
    made = container_of(cri.Container(id="c1", pod_sandbox_id="p1"), answer)
    made.SerializeToString()
    must(pods.demand_of(made.linux.resources).cpu_milli >= 0, "no demand is negative")
    pods.claim_of(made)


def info(data: bytes) -> None:
    """The JSON in `info`, which each runtime makes as it likes."""
    text = {"info": data.decode(errors="replace")}
    container(cri.ContainerStatusResponse(info=text).SerializeToString())
    sandbox(cri.PodSandboxStatusResponse(info=text).SerializeToString())


def devices(data: bytes) -> None:
    try:
        answer = pr.ListPodResourcesResponse.FromString(data)
    except DecodeError:
        return
    must(len(told_of(answer.pod_resources).rows) <= MOST_ROWS, "no more rows than the bound")


def _recorded(key: str, kind: type[cri.ContainerStatusResponse | cri.PodSandboxStatusResponse]) -> Iterator[bytes]:
    for path in sorted(RECORDED.glob("*.json")):
        yield json_format.ParseDict(json.loads(path.read_text())[key], kind()).SerializeToString()


def _infos() -> Iterator[bytes]:
    for path in sorted(RECORDED.glob("*.json")):
        recorded = json.loads(path.read_text())
        for key in ("container", "sandbox"):
            yield recorded[key]["info"]["info"].encode()


def _devices() -> Iterator[bytes]:
    near = pr.TopologyInfo(nodes=[pr.NUMANode(ID=1)])
    device = pr.ContainerDevices(resource_name="vendor.com/gpu", device_ids=["gpu-0"], topology=near)
    container = pr.ContainerResources(name="main", devices=[device])
    pod = pr.PodResources(name="trainer", namespace="default", containers=[container])
    yield pr.ListPodResourcesResponse(pod_resources=[pod]).SerializeToString()


TARGETS = (
    Target("cri-container", container, lambda: _recorded("container", cri.ContainerStatusResponse)),
    Target("cri-sandbox", sandbox, lambda: _recorded("sandbox", cri.PodSandboxStatusResponse)),
    Target("cri-info", info, _infos),
    Target("podresources", devices, _devices),
)
