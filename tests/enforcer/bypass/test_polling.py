"""A look at a runtime, over a real unix socket."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from enforcer.bypass.cri_client import CriClient, RuntimeAway, RuntimeVersion
from enforcer.bypass.polling import REFRESH_S, RuntimePoller
from lab.standins.cri import CriRuntime
from lab.standins.cri.cgroups import Cgroups
from numakin.wire import nri_pb2 as nri

GROUP = {"group.numakin.io": "web"}


class World:
    """The stand-in, a connection to it, and a clock that the test moves."""

    def __init__(self, folder: Path) -> None:
        self.runtime = CriRuntime(folder / "cri.sock", Cgroups(folder, "0-7", "0-1"))
        self.runtime.start()
        self.connection = CriClient(f"unix://{folder}/cri.sock")
        self.now = 0.0
        self.poller = RuntimePoller(self.connection, folder / "proc", lambda: self.now)


@pytest.fixture
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="numakin.") as folder:
        made = World(Path(folder))
        with made.connection:
            yield made
        made.runtime.stop()


def test_what_is_created_or_runs_is_seen_and_what_has_ended_is_not(world: World) -> None:
    pod = world.runtime.run_pod("m", GROUP)
    created, running, ended = world.runtime.create(pod), world.runtime.run(pod), world.runtime.run(pod)
    world.runtime.end(ended)
    seen = world.poller.poll()
    states = {key: container.state for key, container in seen.containers.items()}
    assert states == {created: nri.CONTAINER_CREATED, running: nri.CONTAINER_RUNNING}
    assert seen.pod_of(seen.containers[running]).annotations == GROUP


def test_a_container_that_runs_on_without_its_sandbox_is_there_until_it_ends(world: World) -> None:
    """It has the CPUs that it has for as long as the kubelet lets it end."""
    pod = world.runtime.run_pod("m", GROUP)
    running, ended = world.runtime.run(pod), world.runtime.run(pod)
    world.runtime.end_pause(pod)
    world.runtime.end(ended)
    assert world.poller.poll().containers.keys() == {running}
    world.runtime.end(running)
    assert not world.poller.poll().sandboxes


def test_what_was_created_in_a_sandbox_that_has_ended_keeps_no_pod(world: World) -> None:
    pod = world.runtime.run_pod("m", GROUP)
    world.runtime.create(pod)
    world.runtime.end_pause(pod)
    assert not world.poller.poll().sandboxes


def test_a_second_look_asks_for_nothing_that_is_known(world: World) -> None:
    world.runtime.run(world.runtime.run_pod("m", GROUP))
    first = world.poller.poll()
    world.runtime.calls.clear()
    assert world.poller.poll() == first
    assert world.runtime.calls == ["ListContainers"]


def test_a_resize_of_a_member_is_seen_after_a_while_and_nobody_elses_is_asked_for(world: World) -> None:
    member = world.runtime.run(world.runtime.run_pod("m", GROUP))
    plain = world.runtime.run(world.runtime.run_pod("plain"))
    world.poller.poll()
    world.runtime.calls.clear()
    for entry in (member, plain):
        world.runtime.resize(entry, 4096)
    world.now += REFRESH_S + 1
    seen = world.poller.poll()
    assert seen.containers[member].linux.resources.cpu.shares.value == 4096
    assert world.runtime.calls == ["ListContainers", member]


def test_a_runtime_that_is_away_is_told_from_one_that_has_nothing(world: World) -> None:
    assert not world.poller.poll().containers
    world.runtime.stop()
    with pytest.raises(RuntimeAway, match="UNAVAILABLE"):
        world.poller.poll()


class WithoutPaths(CriRuntime):
    """Reports of a container's cgroup its process alone."""

    def ContainerStatus(self, request, context):  # noqa: N802
        answer = super().ContainerStatus(request, context)
        answer.info["info"] = json.dumps({"pid": 7})
        return answer


@pytest.mark.parametrize(
    ("cgroup", "path"),
    [
        ("/kubepods/podu/{id}", "/kubepods/podu/{id}"),
        ("/kubepods.slice/crio-{id}.scope/container", "/kubepods.slice/crio-{id}.scope"),
        ("/kubepods/podu/{id}/init.scope", "/kubepods/podu/{id}"),
        ("/system.slice/ssh.service", ""),
        ("/kubepods/podu/another", ""),
    ],
    ids=["its own", "crun's below it", "systemd's below it", "a service has its pid by now", "another container has"],
)
def test_by_its_process_a_container_has_its_own_cgroup_and_no_other(tmp_path: Path, cgroup: str, path: str) -> None:
    with WithoutPaths(tmp_path / "cri.sock", Cgroups(tmp_path, "0-7", "0-1")) as runtime:
        member = runtime.run(runtime.run_pod("m", GROUP))
        process = tmp_path / "proc" / "7"
        process.mkdir(parents=True)
        (process / "cgroup").write_text(f"0::{cgroup.format(id=member)}\n")
        with CriClient(f"unix://{tmp_path}/cri.sock") as connection:
            seen = RuntimePoller(connection, tmp_path / "proc").poll().containers[member]
        assert seen.linux.cgroups_path == path.format(id=member)


def test_what_ended_between_two_calls_is_none(world: World) -> None:
    assert world.connection.container("gone") is None
    assert world.connection.sandbox("gone") is None


@pytest.mark.parametrize(
    ("name", "version", "broadcasts"),
    [
        ("containerd", "1.7.24~ds1", False),
        ("containerd", "v2.0.0", True),
        ("containerd", "2.1.9+unknown", True),
        ("cri-o", "1.29.1", False),
        ("cri-o", "1.33.0", True),
        ("docker", "27.0.1", False),
        ("containerd", "unknown", False),
    ],
)
def test_events_are_listened_to_where_that_takes_none_from_the_kubelet(name, version, broadcasts) -> None:
    assert RuntimeVersion(name, version).broadcasts == broadcasts
