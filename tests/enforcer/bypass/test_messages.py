"""What CRI tells becomes what NRI would have told; `recorded/` holds answers of real containerds."""

import json
from pathlib import Path

import pytest
from google.protobuf import json_format
from hypothesis import example, given
from hypothesis import strategies as st

from enforcer.bypass.messages import container_of, sandbox_of
from enforcer.hook.facts import pods
from numakin.wire import cri_pb2 as cri
from numakin.wire import nri_pb2 as nri

FOLDER = Path(__file__).parent / "recorded"
LIVES = sorted(path.stem for name in ("network", "port") for path in FOLDER.glob(f"*-{name}.json"))
NETWORKS = {"host-network": ("cart", []), "own-network": ("own", ["network"]), "host-port": ("exposed", ["network"])}
"""Of each, its pod and the namespaces that it lists."""
"""Recorded while pods lived, each container pinned to CPU 1 (tests/e2e/lab/record.py)."""


@pytest.fixture(params=["containerd-1.7.24", "containerd-2.1.9"])
def recorded(request) -> tuple[nri.PodSandbox, nri.Container]:
    return read(request.param)


def read(name: str) -> tuple[nri.PodSandbox, nri.Container]:
    received = json.loads((FOLDER / f"{name}.json").read_text())
    listed = json_format.ParseDict(received["listed"], cri.Container())
    container = json_format.ParseDict(received["container"], cri.ContainerStatusResponse())
    sandbox = json_format.ParseDict(received["sandbox"], cri.PodSandboxStatusResponse())
    return sandbox_of(sandbox), container_of(listed, container)


class TestContainerd:
    def test_a_pod_is_told_with_its_annotations(self, recorded) -> None:
        pod, _ = recorded
        assert (pod.name, pod.namespace, pod.uid) == ("cart", "default", "11111111-2222-3333-4444-555555555555")
        assert pod.annotations["group.numakin.io"] == "shop"
        assert pod.labels["app"] == "cart"
        assert pod.pid

    def test_a_pod_in_the_nodes_network_has_none_of_its_own(self, recorded) -> None:
        pod, container = recorded
        assert [namespace.type for namespace in pod.linux.namespaces] == []
        assert any(
            namespace.type == "network" and namespace.path == f"/proc/{pod.pid}/ns/net"
            for namespace in container.linux.namespaces
        )

    def test_a_container_is_told_with_its_cgroup_its_process_and_its_pod(self, recorded) -> None:
        pod, container = recorded
        assert container.pod_sandbox_id == pod.id
        assert container.state == nri.CONTAINER_RUNNING
        assert container.linux.cgroups_path.endswith(f"/pod{pod.uid}/{container.id}")
        assert container.pid
        assert container.started_at >= container.created_at > 0

    def test_its_demand_is_what_nri_would_have_shown(self, recorded) -> None:
        demand = pods.demand_of(recorded[1].linux.resources)
        assert (demand.cpu_milli, demand.memory_limit) == (500, 64 << 20)
        assert pods.claim_of(recorded[1]) is None


@pytest.mark.parametrize("name", LIVES)
class TestEveryRuntime:
    def test_a_pod_and_its_container_are_told_as_nri_would(self, name: str) -> None:
        pod, container = read(name)
        assert pod.name == next(pod for network, (pod, _) in NETWORKS.items() if name.endswith(network))
        assert pod.annotations["group.numakin.io"] == "shop"
        assert container.pod_sandbox_id == pod.id
        assert (container.state, bool(container.pid)) == (nri.CONTAINER_RUNNING, True)
        prefix = "crio-" if name.startswith("crio") else ""
        assert container.linux.cgroups_path.endswith(f"/pod{pod.uid}/{prefix}{container.id}")
        assert pods.claim_of(container) == pods.Claim("1", "0")
        demand = pods.demand_of(container.linux.resources)
        assert (demand.cpu_milli, demand.memory_limit) == (500, 64 << 20)

    def test_only_a_pod_with_a_network_of_its_own_lists_one(self, name: str) -> None:
        pod, _ = read(name)
        listed = next(listed for network, (_, listed) in NETWORKS.items() if name.endswith(network))
        assert [namespace.type for namespace in pod.linux.namespaces] == listed


def asked(spec: dict, **resources: object) -> nri.Container:
    answer = cri.ContainerStatusResponse(info={"info": json.dumps({"pid": 7, "runtimeSpec": {"linux": spec}})})
    answer.status.resources.linux.CopyFrom(cri.LinuxContainerResources(**resources))
    return container_of(cri.Container(id="c"), answer)


def test_a_pod_with_a_network_of_its_own_shows_it_and_its_addresses() -> None:
    answer = cri.PodSandboxStatusResponse()
    answer.status.network.ip = "10.0.0.7"
    answer.status.network.additional_ips.add(ip="fd00::7")
    pod = sandbox_of(answer)
    assert [namespace.type for namespace in pod.linux.namespaces] == ["network"]
    assert list(pod.ips) == ["10.0.0.7", "fd00::7"]


def test_the_pods_whole_demand_is_taken_from_what_the_kubelet_sent() -> None:
    config = {"linux": {"resources": {"cpu_shares": 2048, "memory_limit_in_bytes": 1 << 30, "hugepage_limits": []}}}
    answer = cri.PodSandboxStatusResponse(info={"info": json.dumps({"config": config})})
    assert pods.demand_of(sandbox_of(answer).linux.pod_resources).cpu_milli == 2000


def test_an_older_runtime_that_tells_no_resources_has_them_in_its_spec() -> None:
    container = asked({"resources": {"cpu": {"shares": 1024, "cpus": "2-3"}, "memory": {"limit": 1 << 20}}})
    assert pods.demand_of(container.linux.resources).cpu_milli == 1000
    assert pods.claim_of(container) == pods.Claim("2-3", "")


def test_a_resize_beats_the_spec_of_the_creation() -> None:
    container = asked({"resources": {"cpu": {"shares": 1024}}}, cpu_shares=4096)
    assert container.linux.resources.cpu.shares.value == 4096


def test_limits_of_none_are_not_set() -> None:
    cpu = {"quota": -1, "period": 100000}
    resources = asked({"resources": {"cpu": cpu, "memory": {"limit": -1}}}, memory_limit_in_bytes=-1).linux.resources
    assert not resources.cpu.HasField("quota")
    assert not resources.memory.HasField("limit")


@pytest.mark.parametrize("text", ["{", "[]", '{"pid": ' + "[" * 100_000])
def test_information_that_is_none_leaves_what_the_status_says(text: str) -> None:
    answer = cri.ContainerStatusResponse(info={"info": text})
    answer.status.resources.linux.CopyFrom(cri.LinuxContainerResources(cpu_shares=2048))
    assert pods.demand_of(container_of(cri.Container(id="c"), answer).linux.resources).cpu_milli == 2000


def test_devices_are_told_by_their_numbers() -> None:
    container = asked({"devices": [{"path": "/dev/nvidia0", "type": "c", "major": 195, "minor": 0}]})
    (device,) = container.linux.devices
    assert (device.type, device.major, device.minor) == ("c", 195, 0)


KEYS = "pid runtimeSpec linux resources cpu memory limit shares config devices namespaces cgroupsPath type cpu_shares"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS.split()),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(json_values | st.text(max_size=8))
@example({"runtimeSpec": {"linux": {"cgroupsPath": "\ud800"}}})
def test_an_info_of_whatever_shape_is_no_error(received) -> None:
    text = received if isinstance(received, str) else json.dumps(received)
    container_of(cri.Container(id="c"), cri.ContainerStatusResponse(info={"info": text}))
    sandbox_of(cri.PodSandboxStatusResponse(info={"info": text}))
