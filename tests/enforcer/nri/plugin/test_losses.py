"""A runtime for which the plugin was late, which has forgotten it or says nothing, is joined again."""

import threading
import time

import pytest

from enforcer.nri.handlers import Handlers
from enforcer.nri.session import Stage
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime import Runtime
from numakin.process.loop import OVERDUE_S
from tests.enforcer.nri.plugin.pinning import LATE_S, PINNING, SYNCED, pin
from tests.enforcer.nri.running import Running


def test_a_late_answer_leaves_the_container_unpinned_and_the_plugin_comes_back(socket_path):
    release = threading.Event()

    def create(pod, container):
        if container.name == "slow":
            began = time.monotonic()
            release.wait(PATIENCE_S)
            until(lambda: time.monotonic() > began + LATE_S, "it is late by the plugin's own clock too")
        return pin(), []

    with (
        Runtime(socket_path, request_timeout_s=LATE_S) as runtime,
        Running(socket_path, Handlers(create_container=create)) as it,
    ):
        runtime.wait_for_plugin()
        pod = runtime.run_pod("cart")
        assert runtime.create_container(pod, "slow").cpus == ""
        assert runtime.plugins.names == []
        release.set()
        it.wait_for(*SYNCED, Stage.ENDED, *SYNCED)
        runtime.wait_for_plugin()
        assert runtime.create_container(pod, "quick").cpus == "1-2"
        assert it.plugin.stats.late_answers == 1


@pytest.mark.parametrize("version", ["0.6.1", "0.8.0"])
def test_after_a_late_synchronize_it_registers_anew_though_the_oldest_runtime_leaves_the_socket_open(
    socket_path, version
):
    release = threading.Event()
    handlers = Handlers(synchronize=lambda *_: release.wait(PATIENCE_S) and [], create_container=lambda *_: (pin(), []))
    with (
        Runtime(socket_path, nri_version=version, request_timeout_s=LATE_S) as runtime,
        Running(socket_path, handlers) as it,
    ):
        assert runtime.plugins.wait_for_note("Synchronize: context deadline exceeded", PATIENCE_S)
        release.set()
        runtime.wait_for_plugin()
        assert it.stages[:4] == [Stage.REGISTERING, Stage.CONFIGURED, Stage.ENDED, Stage.REGISTERING]
        assert runtime.create_container(runtime.run_pod("cart"), "server").cpus == "1-2"
        assert it.plugin.stats.late_answers == 1


def test_a_synchronize_that_lay_unread_while_the_process_stood_still_is_late_however_quickly_it_is_answered(
    socket_path,
):
    given_up, stood_still = threading.Event(), []

    def configure(*_):
        if not stood_still:
            stood_still.append(True)
            it.loop.call_later(-2 * OVERDUE_S, lambda: given_up.wait(PATIENCE_S))  # before anything else is read

    handlers = Handlers(configure=configure, create_container=lambda *_: (pin(), []))
    it = Running(socket_path, handlers)
    with Runtime(socket_path, nri_version="0.6.1", request_timeout_s=LATE_S) as runtime, it:
        assert runtime.plugins.wait_for_note("Synchronize: context deadline exceeded", PATIENCE_S)
        given_up.set()
        runtime.wait_for_plugin()
        assert it.stages[:4] == [Stage.REGISTERING, Stage.CONFIGURED, Stage.ENDED, Stage.REGISTERING]
        assert runtime.create_container(runtime.run_pod("cart"), "server").cpus == "1-2"


def test_a_runtime_that_configures_and_does_not_synchronize_is_given_up_after_a_while(socket_path, caplog):
    with Runtime(socket_path) as runtime, runtime.busy(), Running(socket_path, PINNING, patience_s=3) as it:
        it.wait_for(Stage.CONFIGURED, Stage.ENDED, Stage.REGISTERING)
    assert "the runtime did not synchronize 10-numakin within 3 s of registering" in caplog.text


def test_each_event_confirms_that_the_runtime_has_us_and_without_one_it_is_asked_where_that_is_safe(socket_path):
    with Runtime(socket_path, nri_version="0.12.1") as runtime, Running(socket_path, PINNING, probe_s=3.0) as it:
        runtime.wait_for_plugin()
        it.wait_for(*SYNCED)
        first = it.do(lambda: it.plugin.confirmed_s_ago)
        waited = [it.do(lambda: it.plugin.confirmed_s_ago)]
        until(lambda: waited.append(it.do(lambda: it.plugin.confirmed_s_ago)) or waited[-1] < waited[-2], "an answer")
        assert first is not None
        runtime.stop()
        it.wait_for(*SYNCED, Stage.ENDED)
        assert it.do(lambda: it.plugin.confirmed_s_ago) is None


def test_a_runtime_that_does_not_say_whether_it_still_has_us_is_dialled_anew(socket_path, caplog):
    with Runtime(socket_path, nri_version="0.12.1") as runtime, Running(socket_path, PINNING, probe_s=0.05) as it:
        runtime.wait_for_plugin()
        with runtime.busy():
            it.wait_for(*SYNCED, Stage.ENDED)
        it.wait_for(*SYNCED, Stage.ENDED, *SYNCED)
    assert "the runtime has not answered for" in caplog.text


@pytest.mark.parametrize("version", ["0.6.1", "0.8.0", "0.12.0"])
def test_a_runtime_that_an_update_may_lock_up_is_never_asked(socket_path, version):
    with Runtime(socket_path, nri_version=version) as runtime, Running(socket_path, PINNING, probe_s=0.02) as it:
        it.wait_for(*SYNCED)
        turns = []
        it.do(lambda: it.loop.call_later(0.1, lambda: turns.append(it.plugin.stage)))
        until(lambda: turns, "several probes' time")
        assert runtime.unsolicited == 0
        assert turns == [Stage.SYNCHRONIZED]


def test_told_that_the_runtime_has_forgotten_it_it_registers_anew(socket_path):
    with Runtime(socket_path) as runtime, Running(socket_path, PINNING) as it:
        it.wait_for(*SYNCED)
        it.do(lambda: it.plugin.register_again("containers run that it never told of"))
        it.wait_for(*SYNCED, Stage.ENDED, *SYNCED)
        runtime.wait_for_plugin()
        assert runtime.create_container(runtime.run_pod("cart"), "server").cpus == "1-2"
