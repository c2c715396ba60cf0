"""What CRI-O tells plugins otherwise than containerd does, as it was recorded of both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from enforcer.nri.handlers import Handlers
from enforcer.nri.session import Stage
from lab.standins.runtime import Runtime
from numakin.wire import nri_pb2 as nri
from tests.enforcer.nri.running import Running

CRI_O = {"name": "cri-o", "version": "1.37.0", "nri_version": "0.12.0"}
CONTAINERD = {"nri_version": "0.12.0"}
BOTH = pytest.mark.parametrize("runtime", [CONTAINERD, CRI_O], ids=["containerd", "CRI-O"], indirect=True)


class Plugin:
    """Notes the last message of each event."""

    def __init__(self) -> None:
        self.pods: dict[str, nri.PodSandbox] = {}
        self.containers: dict[str, nri.Container] = {}
        noted = {
            name: self._note(name)
            for name in Handlers.__dataclass_fields__
            if name.endswith(("_container", "_sandbox"))
        }
        deciding = {
            name: self._deciding(name, answer)
            for name, answer in (("create_container", (None, [])), ("update_container", []), ("stop_container", []))
        }
        self.handlers = Handlers(**noted | deciding)

    def _note(self, event: str):
        def note(pod: nri.PodSandbox, *more: object) -> None:
            self.pods[event] = pod
            if more and isinstance(more[0], nri.Container):
                self.containers[event] = more[0]

        return note

    def _deciding(self, event: str, answer: object):
        note = self._note(event)

        def decide(*given: object) -> object:
            note(*given)
            return answer

        return decide


@pytest.fixture
def runtime(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Runtime]:
    with Runtime(tmp_path / "nri.sock", **request.param) as made:
        yield made


@pytest.fixture
def plugin(runtime: Runtime, tmp_path: Path) -> Iterator[Plugin]:
    noting = Plugin()
    with Running(tmp_path / "nri.sock", noting.handlers) as running:
        running.wait_for(Stage.SYNCHRONIZED)
        yield noting


def crio(runtime: Runtime) -> bool:
    return "cri-o" in str(runtime._terms.name)


@BOTH
def test_a_pod_in_the_hosts_network_lists_a_network_namespace_on_cri_o_alone(runtime: Runtime, plugin: Plugin) -> None:
    runtime.run_pod("a", host_network=True)
    kinds = [namespace.type for namespace in plugin.pods["run_pod_sandbox"].linux.namespaces]
    assert ("network" in kinds) == crio(runtime)


@BOTH
def test_a_containers_cgroup_has_cri_os_name_before_its_id(runtime: Runtime, plugin: Plugin) -> None:
    pod = runtime.run_pod("a")
    container = runtime.run_container(pod, "main")
    name = f"crio-{container.id}" if crio(runtime) else container.id
    assert plugin.containers["create_container"].linux.cgroups_path == f"{pod.cgroup_parent}/{name}"


@BOTH
def test_a_container_has_its_pid_from_its_creation_on_and_stays_created_on_cri_o(
    runtime: Runtime, plugin: Plugin
) -> None:
    runtime.run_container(runtime.run_pod("a"), "main")
    assert bool(plugin.containers["post_create_container"].pid) == crio(runtime)
    assert plugin.containers["start_container"].pid
    state = plugin.containers["post_start_container"].state
    assert state == (nri.CONTAINER_CREATED if crio(runtime) else nri.CONTAINER_RUNNING)


@BOTH
def test_one_that_ends_by_itself_is_told_as_stopped(runtime: Runtime, plugin: Plugin) -> None:
    runtime.end_container(runtime.run_container(runtime.run_pod("a"), "main"))
    state = plugin.containers["stop_container"].state
    assert state == nri.CONTAINER_STOPPED


def test_an_older_containerd_tells_it_as_running(tmp_path: Path) -> None:
    plugin = Plugin()
    with (
        Runtime(tmp_path / "nri.sock", nri_version="0.8.0") as runtime,
        Running(tmp_path / "nri.sock", plugin.handlers) as running,
    ):
        running.wait_for(Stage.SYNCHRONIZED)
        runtime.end_container(runtime.run_container(runtime.run_pod("a"), "main"))
        assert plugin.containers["stop_container"].state == nri.CONTAINER_RUNNING


@BOTH
def test_a_containers_annotations(runtime: Runtime, plugin: Plugin) -> None:
    pod = runtime.run_pod("a", annotations={"group.numakin.io": "shop"}, cpu_limit=2)
    runtime.run_container(pod, "main", cpu_limit=2)
    assert ("group.numakin.io" in plugin.containers["create_container"].annotations) == crio(runtime)


@BOTH
def test_the_end_of_a_sandbox_that_outlived_the_runtime_is_told_on_cri_o(runtime: Runtime, tmp_path: Path) -> None:
    pod = runtime.run_pod("a", cpu_limit=2)
    runtime.stop()
    runtime.start()
    plugin = Plugin()
    with Running(tmp_path / "nri.sock", plugin.handlers) as running:
        running.wait_for(Stage.SYNCHRONIZED)
        runtime.remove_pod(pod)
    assert ("stop_pod_sandbox" in plugin.pods) == crio(runtime)
    if crio(runtime):
        assert plugin.pods["remove_pod_sandbox"].uid == pod.uid
