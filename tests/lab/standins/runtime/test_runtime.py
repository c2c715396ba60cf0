"""The embedded runtime treats plugins, good and bad, as measured on containerd."""

from contextlib import nullcontext

import pytest

from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime import CriError, Runtime
from numakin.wire import nri_pb2 as nri
from tests.lab.standins.runtime.plugin import UNPINNED, Plugin, created, place, update


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
        assert message.annotations == {}, "containerd shows a container none of its pod's"
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


@pytest.mark.parametrize(("version", "hangs"), [("0.6.1", True), ("0.8.0", True), ("0.12.0", True), ("0.12.1", False)])
def test_an_update_out_of_turn_that_meets_an_event_hangs_an_older_runtime_for_good(path, version, hangs):
    with Runtime(path, nri_version=version, cri_timeout_s=0.2) as runtime, Plugin(path) as plugin:
        runtime.wait_for_plugin()
        container = runtime.run_container(runtime.run_pod("p"), "c")
        with runtime.busy():
            plugin.update(update(container.id, "3"))
            until(lambda: runtime.unsolicited, "it has come")
            with pytest.raises(CriError, match="deadline exceeded") if hangs else nullcontext():
                runtime.run_pod("another")
        assert runtime.hung == hangs
        with pytest.raises(CriError, match="the runtime hangs") if hangs else nullcontext():
            runtime.run_pod("later")
        if not hangs:
            assert plugin.answered.wait(PATIENCE_S)
