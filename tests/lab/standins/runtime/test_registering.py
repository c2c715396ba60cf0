"""Who may become a plugin of the stand-in runtime, and who is forgotten."""

import socket

import pytest

from lab.standins.patience import PATIENCE_S
from lab.standins.runtime import Runtime
from numakin.wire import nri_pb2 as nri
from numakin.wire import ttrpc_pb2
from tests.lab.standins.runtime.plugin import LATE_S, UNPINNED, Plugin, place, update


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
