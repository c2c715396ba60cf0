"""The embedded runtime treats plugins, good and bad, as measured on containerd."""

import contextlib
import socket
import threading

import pytest

from proto import nri_pb2 as nri
from proto import ttrpc_pb2
from standins.patience import PATIENCE_S
from standins.runtime import CriError, Runtime, framing

UNPINNED = ("", "")

LATE_S = 3.0
"""Long enough for an answer that is not to be late, and short enough to wait for."""


class Plugin:
    """Answers as its table says, by method: a message, a status code, bytes to send instead, or a function of the
    request's payload that gives one of these. Register as `index`.
    """

    def __init__(self, path, index="10", **answers):
        self.heard = []
        self.answered = threading.Event()
        self._answers = {"Configure": nri.ConfigureResponse(), "Synchronize": nri.SynchronizeResponse()} | answers
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._thread = threading.Thread(target=self._run, args=(index,))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE_S)
        self._socket.close()

    def update(self, *updates):
        """UpdateContainers, and the answer is not waited for."""
        payload = nri.UpdateContainersRequest(update=updates).SerializeToString()
        body = ttrpc_pb2.Request(service="nri.pkg.api.v1alpha1.Runtime", method="UpdateContainers", payload=payload)
        self._socket.sendall(framing.write(framing.Message(2, 3, framing.REQUEST, body.SerializeToString())))

    def wait_for_end(self):
        """Until the runtime closes the connection."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def _run(self, index):
        register = nri.RegisterPluginRequest(plugin_name="test", plugin_idx=index).SerializeToString()
        body = ttrpc_pb2.Request(service="nri.pkg.api.v1alpha1.Runtime", method="RegisterPlugin", payload=register)
        with contextlib.suppress(OSError):
            self._socket.sendall(framing.write(framing.Message(2, 1, framing.REQUEST, body.SerializeToString())))
            incoming = framing.Incoming()
            while data := self._socket.recv(1 << 16):
                for message in incoming.feed(data):
                    if message.kind == framing.REQUEST:
                        self._answer(message)
                    elif message.stream > 1:
                        self.answered.set()

    def _answer(self, message):
        request = ttrpc_pb2.Request.FromString(message.payload)
        self.heard.append(request.method)
        answer = self._answers.get(request.method, nri.Empty())
        if callable(answer):
            answer = answer(request.payload)
        if isinstance(answer, bytes):
            self._socket.sendall(answer)
            return
        response = ttrpc_pb2.Response()
        if isinstance(answer, int):
            response.status.code, response.status.message = answer, "says no"
        else:
            response.payload = answer.SerializeToString()
        self._socket.sendall(
            framing.write(framing.Message(1, message.stream, framing.RESPONSE, response.SerializeToString()))
        )


def created(cpus="", mems="", updates=()):
    response = nri.CreateContainerResponse(update=updates)
    response.adjust.linux.resources.cpu.cpus, response.adjust.linux.resources.cpu.mems = cpus, mems
    return response


def update(container_id, cpus="", mems=""):
    resources = nri.LinuxResources(cpu=nri.LinuxCPU(cpus=cpus, mems=mems))
    return nri.ContainerUpdate(container_id=container_id, linux=nri.LinuxContainerUpdate(resources=resources))


def place(container):
    return container.cpus, container.mems


@pytest.fixture
def path(tmp_path):
    return tmp_path / "nri.sock"


@pytest.fixture
def runtime(path):
    with Runtime(path, request_timeout_s=LATE_S) as runtime:
        yield runtime


def test_an_adjustment_is_where_the_container_is(runtime, path):
    with Plugin(path, CreateContainer=created("1-2", "0")):
        runtime.wait_for_plugin()
        container = runtime.run_container(runtime.run_pod("p"), "c")
        assert place(container) == ("1-2", "0")
        assert runtime.containers[container.id].running


def test_updates_of_others_are_applied_and_an_empty_mems_changes_nothing(runtime, path):
    with Plugin(path, CreateContainer=created("1", "0")):
        runtime.wait_for_plugin()
        first = runtime.create_container(runtime.run_pod("p"), "first")
    with Plugin(path, CreateContainer=created("2", "0", [update(first.id, "3"), update("unknown", "4")])):
        runtime.wait_for_plugin()
        runtime.create_container(first.pod, "second")
        assert place(runtime.containers[first.id]) == ("3", "0")


def test_who_was_waited_for_is_not_the_next_to_come(runtime, path):
    """It may have ended without the runtime having seen it yet."""
    with Plugin(path):
        runtime.wait_for_plugin()
        with pytest.raises(TimeoutError, match="no plugin within 0 s"):
            runtime.wait_for_plugin(0)
        with Plugin(path):
            runtime.wait_for_plugin()


def test_an_error_status_fails_the_creation_and_the_plugin_stays(runtime, path):
    with Plugin(path, CreateContainer=2):
        runtime.wait_for_plugin()
        pod = runtime.run_pod("p")
        with pytest.raises(CriError, match="failed to get NRI adjustment for container: says no"):
            runtime.create_container(pod, "c")
        assert runtime.containers == {}
        assert runtime.plugins.names == ["10-test"]


def test_an_error_to_run_pod_sandbox_fails_the_pod(runtime, path):
    with Plugin(path, StateChange=2):
        runtime.wait_for_plugin()
        with pytest.raises(CriError):
            runtime.run_pod("p")
        assert runtime.pods == {}


def test_an_error_to_stop_container_is_ignored(runtime, path):
    with Plugin(path, StopContainer=2):
        runtime.wait_for_plugin()
        pod = runtime.run_pod("p")
        runtime.stop_container(runtime.run_container(pod, "c"))
        runtime.remove_pod(pod)
        assert (runtime.pods, runtime.containers) == ({}, {})


def test_a_plugin_that_does_not_answer_in_time_is_closed_and_the_container_starts_unpinned(runtime, path):
    with Plugin(path, CreateContainer=b""):
        runtime.wait_for_plugin()
        assert place(runtime.create_container(runtime.run_pod("p"), "c")) == UNPINNED
        assert runtime.plugins.names == []
        assert "closing plugin 10-test: CreateContainer: context deadline exceeded" in runtime.plugins.notes


def test_a_first_frame_over_4096_bytes_closes_the_plugin(runtime, path):
    body = ttrpc_pb2.Response(payload=bytes(5000)).SerializeToString()
    message = len(body).to_bytes(4) + (1).to_bytes(4) + b"\2\0" + body
    with Plugin(path, CreateContainer=(1).to_bytes(4) + len(message).to_bytes(4) + message):
        runtime.wait_for_plugin()
        assert place(runtime.create_container(runtime.run_pod("p"), "c")) == UNPINNED
        assert runtime.plugins.notes[-1].startswith("closing plugin 10-test: a frame of 50")


@pytest.mark.parametrize(
    ("version", "events", "refused"),
    [("0.6.1", 0x800, True), ("0.8.0", 0x7FF, False), ("0.10.0", 0x3FFF, False), ("0.12.0", 0x4000, True)],
)
def test_events_that_it_does_not_know_get_a_plugin_refused(path, version, events, refused):
    with Runtime(path, nri_version=version) as runtime, Plugin(path, Configure=nri.ConfigureResponse(events=events)):
        note = f"invalid plugin events: 0x{events:x}" if refused else "plugin 10-test is synchronized"
        assert runtime.plugins.wait_for_note(note, PATIENCE_S)
        assert bool(runtime.plugins.names) is not refused


def test_only_what_was_asked_for_is_delivered(runtime, path):
    with Plugin(path, Configure=nri.ConfigureResponse(events=0x8)) as plugin:
        runtime.wait_for_plugin()
        runtime.run_container(runtime.run_pod("p"), "c")
        assert plugin.heard == ["Configure", "Synchronize", "CreateContainer"]


def test_since_0_12_every_event_has_its_own_call_and_code_12_brings_state_change_back(path):
    with Runtime(path, nri_version="0.12.0") as runtime, Plugin(path, RunPodSandbox=12) as plugin:
        runtime.wait_for_plugin()
        runtime.stop_pod(runtime.run_pod("p"))
        assert plugin.heard[2:] == ["RunPodSandbox", "StateChange", "StopPodSandbox"]


def test_a_bad_index_is_refused_with_the_connection_left_open_and_nothing_coming(runtime, path):
    with Plugin(path, index="1") as plugin:
        assert runtime.plugins.wait_for_note("plugin registration refused", PATIENCE_S)
        runtime.run_pod("p")
        assert plugin.heard == []


@pytest.mark.parametrize("answer", [b"", 2], ids=["no answer in time", "an error status"])
@pytest.mark.parametrize(("version", "stays"), [("0.6.1", True), ("0.8.0", False)])
def test_who_fails_to_synchronize_is_forgotten_and_the_oldest_leaves_its_socket_open(path, version, stays, answer):
    """As measured on containerd 1.7.24 and 2.1.9."""
    with Runtime(path, nri_version=version, request_timeout_s=LATE_S) as runtime:
        container = runtime.run_container(runtime.run_pod("p"), "c")
        with Plugin(path, Synchronize=answer) as plugin:
            assert runtime.plugins.wait_for_note("plugin 10-test: ", PATIENCE_S)
            runtime.run_container(container.pod, "second")
            assert plugin.heard == ["Configure", "Synchronize"]
            if stays:
                plugin.update(update(container.id, "3"))
                assert plugin.answered.wait(PATIENCE_S)
                assert place(runtime.containers[container.id]) == ("3", "")
            else:
                plugin.wait_for_end()
        assert runtime.plugins.names == []


def test_who_does_not_register_in_time_is_closed(path):
    with Runtime(path, registration_timeout_s=0.2), socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(path))
        silent.settimeout(PATIENCE_S)
        assert silent.recv(1) == b""


def test_state_over_the_limit_goes_in_parts_and_who_does_not_say_more_is_closed(path):
    def more(payload):
        return nri.SynchronizeResponse(more=nri.SynchronizeRequest.FromString(payload).more)

    with Runtime(path, max_message=8000) as runtime:
        pod = runtime.run_pod("p")
        for index in range(40):
            runtime.create_container(pod, f"c{index}")
        with Plugin(path, Synchronize=more) as plugin:
            runtime.wait_for_plugin()
            assert plugin.heard.count("Synchronize") > 2
        with Plugin(path):
            assert runtime.plugins.wait_for_note("plugin does not handle split sync requests", PATIENCE_S)


def test_plugins_are_called_in_the_order_of_their_indices_and_see_what_was_adjusted_before(runtime, path):
    seen = []

    def second(payload):
        seen.append(nri.CreateContainerRequest.FromString(payload).container.linux.resources.cpu.cpus)
        return nri.CreateContainerResponse()

    with Plugin(path, "20", CreateContainer=second), Plugin(path, "10", CreateContainer=created("1")):
        assert runtime.plugins.wait(2, PATIENCE_S)
        runtime.create_container(runtime.run_pod("p"), "c")
        assert seen == ["1"]


@pytest.mark.parametrize(("cpus", "mems", "words"), [("1", "", "CPU pinning"), ("", "0", "memory pinning")])
def test_two_plugins_cannot_set_the_same_field(runtime, path, cpus, mems, words):
    answer = created(cpus, mems)
    with Plugin(path, "10", CreateContainer=answer), Plugin(path, "20", CreateContainer=answer):
        assert runtime.plugins.wait(2, PATIENCE_S)
        with pytest.raises(CriError, match=f'plugins "20-test" and "10-test" both tried to set {words}'):
            runtime.create_container(runtime.run_pod("p"), "c")


def test_a_cri_update_of_the_cpuset_overrides_a_pin(runtime, path):
    with Plugin(path, CreateContainer=created("1")):
        runtime.wait_for_plugin()
        container = runtime.run_container(runtime.run_pod("p"), "c")
        after = runtime.update_container(container, nri.LinuxResources(cpu=nri.LinuxCPU(cpus="5")))
        assert after.cpus == "5"


def test_pods_and_containers_are_told_as_the_kubelet_makes_them(path):
    with Runtime(path) as runtime:
        pod = runtime.run_pod("cart", "shop", "u1", {"group.numakin.io": "shop"}, qos="guaranteed")
        container = runtime.run_container(pod, "server", cpu_request=1.5, cpu_limit=2, memory_limit=1 << 30)
        message = container.message()
        assert pod.message().linux.cgroup_parent == "/kubepods/podu1"
        assert message.annotations == {"group.numakin.io": "shop"}
        assert message.linux.cgroups_path == f"/kubepods/podu1/{container.id}"
        cpu, memory = message.linux.resources.cpu, message.linux.resources.memory
        assert (cpu.shares.value, cpu.quota.value, cpu.period.value) == (1536, 200_000, 100_000)
        assert memory.limit.value == 1 << 30


def test_of_sandboxes_that_it_found_at_its_start_only_their_containers_ends_are_told(path):
    """As containerd (#8426)."""
    with Runtime(path) as runtime:
        before = runtime.run_pod("before")
        container = runtime.run_container(before, "c")
        runtime.stop()
        runtime.start()
        with Plugin(path) as plugin:
            runtime.wait_for_plugin()
            after = runtime.run_pod("after")
            plugin.heard.clear()
            runtime.remove_pod(before)
            assert plugin.heard == ["StopContainer", "StateChange"], "and RemoveContainer"
            plugin.heard.clear()
            runtime.remove_pod(after)
            assert plugin.heard == ["StateChange"] * 2, "StopPodSandbox, RemovePodSandbox"
            assert container.id not in runtime.containers
