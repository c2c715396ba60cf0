"""numakin answers as the kubelet's podresources API does, over a real socket: the CPUs and memory that it gave itself,
all else as the kubelet says.
"""

import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import grpc
import pytest

from enforcer.observer import podresources_answers as answers
from lab.standins.kubelet import Kubelet
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.runtime import Runtime
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.state.occupancy import Allocation, Occupancy
from numakin.wire import local_pb2 as local
from numakin.wire import podresources_pb2 as pb
from tests.enforcer.observer.podresources_tool import tool
from tests.enforcer.running import GROUP, Enforcer, cpus, numa_cpus
from tests.machines import CXL, GIB, MIB, machine

ALONE = GROUP | {"cpus.numakin.io": "exclusive"}

Answer = TypeVar("Answer")


def late(failed: grpc.RpcError) -> bool:
    """Whether the kubelet had no time to answer numakin, as on a busy machine."""
    return failed.code() is grpc.StatusCode.UNAVAILABLE and "DEADLINE_EXCEEDED" in failed.details()


def in_time(question: Callable[[], Answer]) -> Answer:
    """What is answered once the kubelet's answer comes in time for numakin."""

    def answered() -> tuple[Answer, ...]:
        try:
            return (question(),)
        except grpc.RpcError as failed:
            if late(failed):
                return ()
            raise

    return until(answered, "an answer in time")[0]


def refused(question: Callable[[], object]) -> grpc.RpcError | None:
    """Why there is no answer; None where the kubelet was late."""
    with pytest.raises(grpc.RpcError) as failed:
        question()
    return None if late(failed.value) else failed.value


def rows(memory: object) -> set[tuple[str, int, tuple[int, ...]]]:
    return {
        (block.memory_type, block.size, tuple(node.ID for node in block.topology.nodes))
        for block in memory  # type: ignore[attr-defined]
    }


def starts(enforcer: Enforcer, runtime: Runtime, kubelet: str) -> Path:
    """The socket, once the hook has reported the node."""
    path = enforcer.folder / "podresources.sock"
    enforcer.start("--podresources-listen", str(path), "--podresources-socket", kubelet, "--reserved-cpus", "0-1")
    runtime.wait_for_plugin(PATIENCE_S)
    until(lambda: enforcer.get("/readyz")[0] == 200 and path.exists(), "ready")
    return path


def test_exclusive_cpus_and_bound_memory_are_those_that_numakin_gave(enforcer: Enforcer, runtime: Runtime) -> None:
    with tool(starts(enforcer, runtime, "off")) as reader:
        bound = runtime.run_pod("db", "shop", annotations=ALONE | {"memory.numakin.io": "bind"})
        own = cpus(runtime, runtime.run_container(bound, "app", cpu_request=3, memory_limit=4 * GIB))
        runtime.run_container(runtime.run_pod("web", "shop", annotations=GROUP), "app", cpu_request=2)
        plain = runtime.run_container(runtime.run_pod("plain", "shop"), "app", cpu_request=2)
        until(lambda: len(reader.containers()) == 3, "all are listed")
        listed = reader.containers()
        db = listed["shop/db/app"]
        assert CpuSet.of(db.cpu_ids) == own
        assert len(own) == 3
        home = 0 if own <= numa_cpus(enforcer)[0] else 1
        assert rows(db.memory) == {("memory", 4 * GIB, (home,))}
        assert listed["shop/web/app"] == listed["shop/plain/app"] == pb.ContainerResources(name="app")
        assert reader.pod("shop", "db").containers[0] == db
        with pytest.raises(grpc.RpcError) as refused:
            reader.pod("shop", "gone")
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
        assert CpuSet.of(reader.allocatable().cpu_ids) == CpuSet.of(range(160)) - CpuSet.parse("0-1")
        runtime.stop_container(plain)
        until(lambda: "shop/plain/app" not in reader.containers(), "it has gone")


def test_devices_and_what_others_were_given_are_the_kubelets(enforcer: Enforcer, runtime: Runtime) -> None:
    with Kubelet(enforcer.folder / "kubelet.sock") as kubelet:
        gpu = "vendor.com/gpu", ("g0", (1,))
        kubelet.plug(*gpu)
        kubelet.admit("shop", "trainer", "app", *gpu)
        kubelet.admit("shop", "guaranteed", "app")
        kubelet.give_cpus("shop", "guaranteed", (40, 41))
        with tool(starts(enforcer, runtime, str(kubelet.path))) as reader:
            runtime.run_container(runtime.run_pod("guaranteed", "shop", annotations=GROUP), "app", cpus="40-41")
            pod = runtime.run_pod("trainer", "shop", annotations=ALONE)
            own = cpus(runtime, runtime.run_container(pod, "app", cpu_request=2))
            until(lambda: in_time(reader.containers)["shop/trainer/app"].cpu_ids, "it is known")
            listed = in_time(reader.containers)
            assert CpuSet.of(listed["shop/trainer/app"].cpu_ids) == own
            assert [list(device.device_ids) for device in listed["shop/trainer/app"].devices] == [["g0"]]
            assert list(listed["shop/guaranteed/app"].cpu_ids) == [40, 41]
            assert [list(device.device_ids) for device in in_time(reader.allocatable).devices] == [["g0"]]
            kubelet.refusal = grpc.StatusCode.RESOURCE_EXHAUSTED
            for question in (reader.containers, reader.allocatable):
                failed = until(lambda question=question: refused(question), "the kubelet refuses in time")
                assert failed.code() is grpc.StatusCode.UNAVAILABLE
                assert "refused by the test" in failed.details()


def test_the_socket_is_roots_alone_and_made_anew_when_it_is_deleted(enforcer: Enforcer, runtime: Runtime) -> None:
    path = starts(enforcer, runtime, "off")
    until(lambda: stat.S_IMODE(path.stat().st_mode) == 0o600, "root's alone")
    path.unlink()
    until(path.exists, "made anew")
    with tool(path) as reader:
        assert reader.containers() == {}


def test_a_socket_that_somebody_serves_is_left_to_them(enforcer: Enforcer, runtime: Runtime) -> None:
    path = enforcer.folder / "podresources.sock"
    with socket.socket(socket.AF_UNIX) as somebody:
        somebody.bind(str(path))
        somebody.listen()
        enforcer.start("--podresources-listen", str(path), "--podresources-socket", "off")
        runtime.wait_for_plugin(PATIENCE_S)
        until(lambda: enforcer.get("/readyz")[0] == 200, "all else works")
        until(
            lambda: enforcer.metric("numakin_enforcer_thread_failures_total", thread="podresources socket"), "counted"
        )
    with tool(path) as reader:
        assert reader.containers() == {}


class TestAnswers:
    """As pure functions."""

    @staticmethod
    def listed(kubelet: pb.PodResources, container: local.LocalContainer, allocation: Allocation) -> pb.PodResources:
        occupancy = Occupancy(allocations={container.id: allocation})
        (pod,) = answers.pods([kubelet], [container], occupancy)
        return pod

    def test_fields_that_are_not_known_here_are_passed_on(self) -> None:
        claims = b"\x2a\x07\x12\x05claim"  # dynamic_resources, field 5
        row = pb.ContainerResources.FromString(b"\x0a\x03app" + claims)
        container = local.LocalContainer(id="c", name="app", pod_name="a", namespace="ns", opted_in=True)
        pod = self.listed(
            pb.PodResources(name="a", namespace="ns", containers=[row]),
            container,
            Allocation("c", "app", "u", "u", CpuSet.parse("2-3"), exclusive=CpuSet.parse("2-3")),
        )
        assert list(pod.containers[0].cpu_ids) == [2, 3]
        assert claims in pod.SerializeToString()

    def test_hugepages_are_named_as_kubernetes_names_them_and_memory_over_two_nodes_is_one_block(self) -> None:
        container = local.LocalContainer(
            id="c", name="app", pod_name="a", namespace="ns", opted_in=True, memory=GIB,
            hugepages={2 * MIB: 64 * MIB, GIB: 3 * GIB, 64 << 10: 0},
        )  # fmt: skip
        allocation = Allocation("c", "app", "u", "u", CpuSet.parse("2"), NumaSet.parse("0-1"))
        pod = self.listed(pb.PodResources(name="a", namespace="ns"), container, allocation)
        assert rows(pod.containers[0].memory) == {
            ("memory", GIB, (0, 1)),
            ("hugepages-2Mi", 64 * MIB, (0, 1)),
            ("hugepages-1Gi", 3 * GIB, (0, 1)),
        }

    def test_all_memory_that_containers_are_given_is_allocatable_hugepages_apart(self) -> None:
        split = machine("hugepages on one NUMA node", ["0-1", "2-3"], [8, 8], hugepages=[{GIB: 2 * GIB}, {}])
        answer = answers.allocatable(pb.AllocatableResourcesResponse(), split, Occupancy(reserved=CpuSet.parse("0")))
        assert list(answer.cpu_ids) == [1, 2, 3]
        assert rows(answer.memory) == {
            ("memory", 6 * GIB, (0,)), ("hugepages-1Gi", 2 * GIB, (0,)), ("memory", 8 * GIB, (1,)),
        }  # fmt: skip

    def test_a_memory_only_node_has_no_cpus_and_its_memory(self) -> None:
        answer = answers.allocatable(pb.AllocatableResourcesResponse(), CXL, Occupancy())
        assert {nodes for _, _, nodes in rows(answer.memory)} == {(0,), (1,), (2,)}
        assert CpuSet.of(answer.cpu_ids) == CXL.cpus
