"""The plugin on real sockets, with the embedded runtime as its peer."""

from pathlib import Path
from queue import Queue

import pytest

from enforcer.nri.dispatch import ROWS
from enforcer.nri.handlers import Handlers
from enforcer.nri.session import Stage
from lab.standins.patience import PATIENCE_S
from lab.standins.runtime import VERSIONS, CriError, Runtime
from numakin.wire import nri_pb2 as nri
from tests.enforcer.nri.plugin.pinning import PINNING, SYNCED, pin, update
from tests.enforcer.nri.running import Running


@pytest.mark.parametrize("version", VERSIONS)
def test_with_every_nri_version_containers_are_pinned_and_all_events_arrive(socket_path, version):
    seen = []

    def observe(row):
        return lambda *_: seen.append(row.method)

    observers = {row.handler: observe(row) for row in ROWS}
    deciders = {
        "create_container": lambda *_: seen.append("CreateContainer") or (pin(), []),
        "update_container": lambda *_: seen.append("UpdateContainer") or [],
        "stop_container": lambda *_: seen.append("StopContainer") or [],
    }
    with (
        Runtime(socket_path, nri_version=version) as runtime,
        Running(socket_path, Handlers(**observers | deciders)) as it,
    ):
        runtime.wait_for_plugin()
        pod = runtime.run_pod("cart")
        container = runtime.run_container(pod, "server")
        runtime.update_container(container, nri.LinuxResources())
        runtime.remove_pod(pod)
        assert (container.cpus, container.mems) == ("1-2", "0")
        assert not it.plugin.stats.unknown_methods
    assert seen == [
        "RunPodSandbox",
        "CreateContainer",
        "PostCreateContainer",
        "StartContainer",
        "PostStartContainer",
        "UpdateContainer",
        "PostUpdateContainer",
        "StopContainer",
        "RemoveContainer",
        "StopPodSandbox",
        "RemovePodSandbox",
    ]


@pytest.mark.parametrize("size", [1, 4097, 20_000, 300_000, 1 << 20])
def test_answers_of_any_size_arrive(socket_path, size):
    handlers = Handlers(create_container=lambda *_: (pin(pad=size), []))
    with Runtime(socket_path) as runtime, Running(socket_path, handlers):
        runtime.wait_for_plugin()
        container = runtime.create_container(runtime.run_pod("cart"), "server")
        assert len(container.annotations["pad"]) == size
        assert runtime.create_container(container.pod, "second").cpus == "1-2"


@pytest.mark.parametrize(("version", "size"), [("0.6.1", 5 << 20), ("0.8.0", 5 << 20)])
def test_a_state_over_four_mebibytes_is_taken_whole_or_in_parts(socket_path, version, size):
    got = Queue()
    handlers = Handlers(synchronize=lambda pods, containers: got.put((len(pods), len(containers))) or [])
    with Runtime(socket_path, nri_version=version) as runtime:
        pod = runtime.run_pod("cart")
        for index in range(20):
            runtime.run_container(pod, f"c{index}", env=["x" * (size // 20)])
        with Running(socket_path, handlers):
            runtime.wait_for_plugin()
        assert got.get_nowait() == (1, 20)


def test_updates_of_the_synchronization_are_carried_out(socket_path):
    def synchronize(_, containers):
        return [update(container, "3") for container in containers]

    with Runtime(socket_path) as runtime:
        container = runtime.run_container(runtime.run_pod("cart"), "server")
        with Running(socket_path, Handlers(synchronize=synchronize)):
            runtime.wait_for_plugin()
            assert runtime.containers[container.id].cpus == "3"


def test_an_exception_in_a_handler_creates_the_container_unpinned_and_the_next_one_pinned(socket_path):
    def create(pod, container):
        if container.name == "unlucky":
            raise RuntimeError("boom")
        return pin(), []

    with Runtime(socket_path) as runtime, Running(socket_path, Handlers(create_container=create)) as it:
        runtime.wait_for_plugin()
        pod = runtime.run_pod("cart")
        assert runtime.create_container(pod, "unlucky").cpus == ""
        assert runtime.create_container(pod, "lucky").cpus == "1-2"
        assert it.plugin.stats.handler_errors == {"CreateContainer": 1}


def test_it_waits_for_a_runtime_that_is_not_there_yet(socket_path, caplog):
    with Running(socket_path, PINNING), Runtime(socket_path) as runtime:
        runtime.wait_for_plugin()
        assert runtime.create_container(runtime.run_pod("cart"), "server").cpus == "1-2"


def test_a_restarted_runtime_is_joined_again_and_tells_what_runs(socket_path):
    got = Queue()
    handlers = Handlers(synchronize=lambda pods, containers: got.put([each.name for each in containers]) or [])
    with Runtime(socket_path) as runtime, Running(socket_path, handlers) as it:
        it.wait_for(*SYNCED)
        runtime.wait_for_plugin()
        runtime.run_container(runtime.run_pod("cart"), "server")
        runtime.stop()
        it.wait_for(*SYNCED, Stage.ENDED)
        runtime.start()
        it.wait_for(*SYNCED, Stage.ENDED, *SYNCED)
        runtime.wait_for_plugin()
        assert [got.get(timeout=PATIENCE_S) for _ in range(2)] == [[], ["server"]]
        assert (it.plugin.stats.connections, it.plugin.stats.losses) >= (2, 1)


def test_an_unsolicited_update_asked_for_in_an_event_does_not_deadlock(socket_path):
    answers, made = Queue(), []

    def create(pod, container):
        if made:
            it.plugin.update_containers([update(made[0], "7")], answers.put)
        return pin(), []

    with (
        Runtime(socket_path, nri_version="0.12.1") as runtime,
        Running(socket_path, Handlers(create_container=create)) as it,
    ):
        runtime.wait_for_plugin()
        pod = runtime.run_pod("cart")
        made.append(runtime.create_container(pod, "first"))
        assert runtime.create_container(pod, "second").cpus == "1-2"
        assert answers.get(timeout=PATIENCE_S).error == ""
        assert runtime.containers[made[0].id].cpus == "7"
        assert len(runtime.plugins.names) == 1


def test_an_unsolicited_update_that_fails_says_why_and_one_for_an_unknown_container_succeeds(socket_path):
    answers = Queue()
    with Runtime(socket_path, nri_version="0.12.1") as runtime, Running(socket_path, Handlers()) as it:
        runtime.wait_for_plugin()
        container = runtime.run_container(runtime.run_pod("cart"), "server")
        runtime.fail_updates = True
        it.do(lambda: it.plugin.update_containers([update(container, "7")], answers.put))
        assert answers.get(timeout=PATIENCE_S).error == "NRI update of some containers failed"
        runtime.fail_updates = False
        runtime.remove_container(container)
        it.do(lambda: it.plugin.update_containers([update(container, "7")], answers.put))
        assert answers.get(timeout=PATIENCE_S).error == ""


def test_an_unsolicited_update_that_the_runtime_never_answers_ends_with_the_connection(socket_path):
    answers = Queue()
    with Runtime(socket_path, nri_version="0.12.1") as runtime, Running(socket_path, Handlers()) as it:
        runtime.wait_for_plugin()
        container = runtime.run_container(runtime.run_pod("cart"), "server")
        with runtime.busy():
            it.do(lambda: it.plugin.update_containers([update(container, "7")], answers.put))
            runtime.stop()
            assert answers.get(timeout=PATIENCE_S).error  # in the socket's words, whichever end noticed first


def test_an_update_without_a_connection_is_refused(socket_path):
    with Running(socket_path, Handlers()) as it, pytest.raises(Exception, match="without a connection"):
        it.do(lambda: it.plugin.update_containers([], print))


def test_a_refused_registration_is_told_and_tried_again(socket_path, caplog):
    with Runtime(socket_path, refuse_registration="invalid plugin name"), Running(socket_path, PINNING) as it:
        it.wait_for(Stage.REGISTERING, Stage.ENDED, Stage.REGISTERING)
    assert "the runtime refused plugin 10-numakin: invalid plugin name; dialing again" in caplog.text


def test_a_runtime_that_says_nothing_is_given_up_after_a_while(socket_path, caplog):
    with Runtime(socket_path, mute=True), Running(socket_path, PINNING, patience_s=0.2) as it:
        it.wait_for(Stage.REGISTERING, Stage.ENDED, Stage.REGISTERING)
    assert "the runtime did not configure 10-numakin within 0.2 s of registering" in caplog.text


def test_a_refused_configuration_leaves_the_runtime_without_the_plugin(socket_path):
    def refuse(*_):
        raise ValueError("unknown option 'colour'")

    with Runtime(socket_path) as runtime, Running(socket_path, Handlers(configure=refuse)):
        assert runtime.plugins.wait_for_note("configuration refused: unknown option 'colour'", PATIENCE_S)
        assert runtime.create_container(runtime.run_pod("cart"), "server").cpus == ""


def test_closing_ends_the_connection_and_the_runtime_goes_on_at_once(socket_path):
    with Runtime(socket_path) as runtime, Running(socket_path, PINNING) as it:
        runtime.wait_for_plugin()
        it.do(it.plugin.close)
        it.wait_for(*SYNCED, Stage.ENDED)
        assert runtime.create_container(runtime.run_pod("cart"), "server").cpus == ""


def test_a_handler_may_close_the_plugin(socket_path):
    handlers = Handlers(create_container=lambda *_: it.plugin.close() or (pin(), []))
    with Runtime(socket_path) as runtime, Running(socket_path, handlers) as it:
        runtime.wait_for_plugin()
        assert runtime.create_container(runtime.run_pod("cart"), "server").cpus == ""
        it.wait_for(*SYNCED, Stage.ENDED)


def test_shutdown_is_answered_and_the_plugin_dials_again_when_the_runtime_is_back(socket_path):
    received = Queue()
    with Runtime(socket_path) as runtime, Running(socket_path, Handlers(shutdown=lambda: received.put("bye"))) as it:
        runtime.wait_for_plugin()
        runtime.plugins.shut_down()
        assert received.get(timeout=PATIENCE_S) == "bye"
        runtime.stop()
        runtime.start()
        it.wait_for(*SYNCED, Stage.ENDED, *SYNCED)


def test_an_exception_in_on_stage_does_not_end_the_session(socket_path, caplog):
    with Runtime(socket_path) as runtime, Running(socket_path, PINNING) as it:
        it.plugin._on_stage = lambda stage: 1 / 0
        runtime.wait_for_plugin()
        runtime.stop()
        runtime.start()
        runtime.wait_for_plugin()
        assert runtime.create_container(runtime.run_pod("cart"), "server").cpus == "1-2"


def test_two_plugins_that_claim_the_same_cpus_fail_the_container_as_on_the_real_one(socket_path):
    with (
        Runtime(socket_path) as runtime,
        Running(socket_path, PINNING, index="20"),
        Running(socket_path, PINNING, index="10"),
    ):
        assert runtime.plugins.wait(2, PATIENCE_S)
        with pytest.raises(CriError, match='plugins "20-numakin" and "10-numakin" both tried to set CPU pinning'):
            runtime.create_container(runtime.run_pod("cart"), "server")


def test_a_socket_path_that_is_no_socket_is_told_and_tried_again(tmp_path: Path, caplog):
    path = tmp_path / "nri.sock"
    path.write_text("")
    with Running(path, PINNING):
        pass
    todo = "until the container runtime runs and has NRI on, pods start unpinned; dialing again"
    assert f"can't connect to the runtime at {path}: [Errno 111] Connection refused; {todo}" in caplog.text
