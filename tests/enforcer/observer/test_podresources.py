"""The kubelet is asked over a real socket which devices it gave, and the hook is told what is new."""

import queue
import socket
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Self

import grpc
import pytest

from enforcer.observer import podresources
from enforcer.observer.device_watch import DeviceWatch
from enforcer.observer.podresources import MOST_ALIKE, Lister, told_of
from lab.standins.kubelet import Kubelet
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.runtime import Runtime
from numakin.wire import local_pb2 as local
from numakin.wire import podresources_pb2 as pb
from tests.enforcer.command import command
from tests.enforcer.running import GROUP, Enforcer, cpus, numa_cpus
from tests.supervised import threads


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="numakin.") as folder:
        yield Path(folder) / "kubelet.sock"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer is missed because the machine is busy."""
    monkeypatch.setattr(podresources, "TIMEOUT_S", PATIENCE_S)


class Asking:
    """A thread that asks, and all that it told."""

    def __init__(self, path: Path) -> None:
        self.told: queue.Queue[local.Devices] = queue.Queue()
        self.failures: queue.Queue[bool] = queue.Queue()
        self.devices = DeviceWatch(str(path), self.told.put, lambda: self.failures.put(True), threads())

    def __enter__(self) -> Self:
        self.devices.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.devices.stop(PATIENCE_S)
        assert not self.devices.alive

    def next(self) -> dict[str, list[str]]:
        rows = self.told.get(timeout=PATIENCE_S).rows
        return {f"{row.namespace}/{row.pod}/{row.container}": list(row.numa_nodes) for row in rows}


def test_a_hook_that_comes_is_told_everything(path: Path) -> None:
    with Kubelet(path) as kubelet, Asking(path) as asking:
        kubelet.admit("ns", "a", "app", "vendor.com/gpu", ("g0", (0,)), ("g1", (1,)))
        kubelet.admit("ns", "plain", "app")
        for _ in range(2):
            asking.devices.hook_came()
            assert asking.next() == {"ns/a/app": ["0", "1"]}


def test_a_pod_that_the_kubelet_does_not_know_yet_is_asked_for_until_there_is_something_to_tell(path: Path) -> None:
    with Kubelet(path) as kubelet, Asking(path) as asking:
        asking.devices.appeared("ns", "a")
        for _ in range(3):
            assert kubelet.was_asked(PATIENCE_S)
        kubelet.admit("ns", "a", "app", "vendor.com/gpu", ("g0", (1,)))
        assert asking.next() == {}
        assert asking.next() == {"ns/a/app": ["1"]}


def test_a_pod_with_the_name_and_the_devices_of_the_last_one_is_told(path: Path) -> None:
    with Kubelet(path) as kubelet, Asking(path) as asking:
        kubelet.admit("ns", "a", "app", "vendor.com/gpu", ("g0", (1,)))
        for _ in range(2):
            asking.devices.appeared("ns", "a")
            assert asking.next() == {"ns/a/app": ["1"]}


def test_a_node_without_the_socket_is_normal_and_said_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"), Asking(path) as asking:
        asking.devices.appeared("ns", "a")
        until(lambda: caplog.messages, "it is said")
        with Kubelet(path) as kubelet:
            kubelet.admit("ns", "a", "app", "vendor.com/gpu", ("g0", (1,)))
            assert asking.next() == {"ns/a/app": ["1"]}
    assert caplog.messages == [
        "no podresources socket: devices are known by their numbers",
        "the kubelet reports devices",
    ]
    assert asking.failures.empty()


def test_a_kubelet_that_refuses_is_counted_each_time_and_complained_of_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Kubelet(path) as kubelet, caplog.at_level("INFO"), Asking(path) as asking:
        kubelet.refusal = grpc.StatusCode.RESOURCE_EXHAUSTED
        kubelet.admit("ns", "a", "app", "vendor.com/gpu", ("g0", (1,)))
        asking.devices.appeared("ns", "a")
        for _ in range(3):
            assert asking.failures.get(timeout=PATIENCE_S)
        kubelet.refusal = None
        assert asking.next() == {"ns/a/app": ["1"]}
    output = [record.message for record in caplog.records]
    assert output == [
        "the kubelet does not report devices: they are known by their numbers",
        "the kubelet reports devices",
    ]


def test_a_kubelet_that_starts_again_is_dialled_anew(path: Path) -> None:
    with Asking(path) as asking:
        for near in (0, 1):
            with Kubelet(path) as kubelet:
                kubelet.admit("ns", "a", "app", "vendor.com/gpu", ("g0", (near,)))
                asking.devices.appeared("ns", "a")
                assert asking.next() == {"ns/a/app": [str(near)]}


def test_free_devices_are_told_again_when_a_plugin_registers_more(path: Path) -> None:
    with Kubelet(path) as kubelet, Asking(path) as asking:
        asking.devices.hook_came()
        assert not asking.told.get(timeout=PATIENCE_S).free
        kubelet.plug("v/gpu", ("g0", (1,)))
        asking.devices.hook_came()
        (row,) = asking.told.get(timeout=PATIENCE_S).free
        assert (row.resource, row.numa_nodes, row.free) == ("v/gpu", "1", 1)


def test_a_kubelet_before_1_23_is_asked_for_what_it_knows_and_the_rest_said_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Kubelet(path) as kubelet, caplog.at_level("INFO"), Asking(path) as asking:
        kubelet.says_free = False
        kubelet.admit("ns", "a", "app", "vendor.com/gpu", ("g0", (1,)))
        for _ in range(2):
            asking.devices.hook_came()
            assert asking.next() == {"ns/a/app": ["1"]}
    assert asking.failures.empty()
    assert caplog.messages == [
        "the kubelet reports devices",
        "the kubelet does not report which devices are free: the extender does not know where they are",
    ]


@pytest.mark.parametrize("refusal", [grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNKNOWN])
def test_a_kubelet_that_does_not_say_what_can_be_allocated_has_answered(path: Path, refusal: grpc.StatusCode) -> None:
    """One before 1.21 lacks the method; one whose gate is off refuses it in words alone."""
    lister = Lister(str(path))
    with Kubelet(path) as kubelet, closing(lister):
        kubelet.refusal = refusal
        assert lister.allocatable_devices() is None
        assert lister.allocatable() == pb.AllocatableResourcesResponse()


def test_a_socket_that_nobody_listens_at_is_a_failure(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))
        with Asking(path) as asking:
            asking.devices.appeared("ns", "a")
            assert asking.failures.get(timeout=PATIENCE_S)


class TestTold:
    """What of the kubelet's answer goes to the hook."""

    @staticmethod
    def near(*devices: pb.ContainerDevices) -> list[list[str]]:
        pod = pb.PodResources(name="a", namespace="ns", containers=[pb.ContainerResources(name="app", devices=devices)])
        return [list(row.numa_nodes) for row in told_of([pod]).rows]

    @staticmethod
    def device(resource: str, ids: list[str], *nodes: int) -> pb.ContainerDevices:
        made = pb.ContainerDevices(resource_name=resource, device_ids=ids)
        for node in nodes:
            made.topology.nodes.add(ID=node)
        return made

    def test_a_device_without_numa_nodes_has_no_say(self) -> None:
        assert self.near(self.device("v/gpu", ["g0"])) == []

    @pytest.mark.parametrize("node", [-1, 1 << 40])
    def test_an_id_that_no_numa_node_has_is_left_out(self, node: int) -> None:
        assert self.near(self.device("v/gpu", ["g0"], node)) == []

    def test_several_told_together_count_each(self) -> None:
        assert self.near(self.device("v/gpu", ["g0", "g1"], 1), self.device("v/nic", ["n0"], 0, 1)) == [
            ["0-1", "1", "1"]
        ]

    def test_what_no_container_has_is_free_also_where_that_is_none(self) -> None:
        used = pb.ContainerResources(
            name="app", devices=[self.device("v/gpu", ["g1"], 1), self.device("v/nic", ["g2"], 0)]
        )
        pod = pb.PodResources(name="a", namespace="ns", containers=[used])
        there = [
            self.device("v/gpu", ["g0"], 0), self.device("v/gpu", ["g1"], 1), self.device("v/gpu", ["g2", "g3"], 0),
            self.device("v/share", ["s0", "s1"]), self.device("v/link", ["l0"], 0, 1),
        ]  # fmt: skip
        free = {(row.resource, row.numa_nodes): row.free for row in told_of([pod], there).free}
        assert free == {
            ("v/gpu", "0"): 3, ("v/gpu", "1"): 0, ("v/share", ""): 2, ("v/link", "0-1"): 1,
        }  # fmt: skip

    def test_nothing_is_free_by_a_kubelet_that_does_not_say(self) -> None:
        assert list(told_of([], None).free) == []

    def test_a_device_in_thousands_of_shares_outweighs_nothing(self) -> None:
        shares = [self.device("v/share", [f"s{number}"], 1) for number in range(5_000)]
        assert self.near(*shares) == [["1"] * MOST_ALIKE]


def test_a_pod_is_pinned_beside_the_device_that_the_kubelet_gave_it(enforcer: Enforcer) -> None:
    path = enforcer.folder / "kubelet.sock"
    with Kubelet(path) as kubelet, Runtime(enforcer.socket) as runtime:
        enforcer.start("--podresources-socket", str(path))
        runtime.wait_for_plugin(PATIENCE_S)
        until(lambda: enforcer.get("/readyz")[0] == 200, "the observer knows the hook")
        kubelet.admit("ns", "trainer", "app", "vendor.com/gpu", ("g0", (1,)))
        pod = runtime.run_pod("trainer", "ns", annotations=GROUP)
        until(lambda: enforcer.status()["devices"], "the hook knows the device")
        assert enforcer.status()["devices"] == {"ns/trainer/app": ["1"]}
        assert cpus(runtime, runtime.run_container(pod, "app", cpu_request=2)) <= numa_cpus(enforcer)[1]
        kubelet.refusal = grpc.StatusCode.INTERNAL
        runtime.run_pod("next", "ns", annotations=GROUP)
        until(lambda: enforcer.metric("numakin_enforcer_podresources_failures_total"), "the failure is counted")


class TestDoctor:
    """What it says of what the kubelet and the kernel tell."""

    def test_a_kernel_without_pressure_is_a_note(self, tmp_path: Path) -> None:
        output = command("doctor", "--procfs", str(tmp_path), "--podresources-socket", "off")
        assert "the kernel keeps no pressure stall information (psi=1 at boot)" in output.stdout
        assert "the kubelet is not asked: devices are known by their numbers alone" in output.stdout

    def test_a_kubelet_that_tells_is_found(self, path: Path) -> None:
        with Kubelet(path) as kubelet:
            kubelet.admit("ns", "a", "app", "vendor.com/gpu", ("g0", (1,)))
            found = f"the kubelet reports devices at {path}: containers with some: 1"
            until(lambda: found in command("doctor", "--podresources-socket", str(path)).stdout, "it is found")

    def test_free_devices_are_named(self, path: Path) -> None:
        with Kubelet(path) as kubelet:
            kubelet.plug("vendor.com/gpu", ("g0", (1,)), ("g1", ()))
            found = "free devices: 1 of vendor.com/gpu near NUMA node unknown, 1 of vendor.com/gpu near NUMA node 1"
            until(
                lambda: found in _words(command("doctor", "--podresources-socket", str(path)).stdout), "they are named"
            )

    def test_a_kubelet_that_does_not_say_is_named(self, path: Path) -> None:
        with Kubelet(path) as kubelet:
            kubelet.says_free = False
            found = "the kubelet does not say which devices are free"
            until(lambda: found in _words(command("doctor", "--podresources-socket", str(path)).stdout), "it is said")

    def test_a_kubelet_that_refuses_is_quoted(self, path: Path) -> None:
        with Kubelet(path) as kubelet:
            kubelet.refusal = grpc.StatusCode.UNIMPLEMENTED
            quoted = "the kubelet does not report devices: UNIMPLEMENTED: refused by the test"
            until(lambda: quoted in command("doctor", "--podresources-socket", str(path)).stdout, "it is quoted")

    def test_no_socket_is_a_note(self, path: Path) -> None:
        output = command("doctor", "--podresources-socket", str(path))
        assert f"no podresources socket at {path}: devices are known by their numbers alone" in output.stdout


def _words(text: str) -> str:
    """As one line."""
    return " ".join(text.split())
