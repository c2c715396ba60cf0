"""The simulated kubelets go on after what they can't do, and keep it as an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from extender.kube.config import connect
from lab.cluster.kubelets import Kubelets
from lab.standins.apiserver import ApiServer
from lab.standins.apiserver.faults import Send
from lab.standins.patience import PATIENCE_S, until


class Recorder:
    """A node that keeps the pods which it was given to run; one of them can't be."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.changed = threading.Condition()

    def run(self, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        with self.changed:
            self.ran.append(name)
            self.changed.notify_all()
        if name == "broken":
            raise KeyError(name)

    def end(self, uid: str) -> None: ...

    def wait(self, name: str) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: name in self.ran, PATIENCE_S), self.ran


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        server.create_node("node")
        yield server


@pytest.fixture
def node() -> Recorder:
    return Recorder()


@pytest.fixture
def kubelets(server: ApiServer, node: Recorder, tmp_path: Path) -> Iterator[Kubelets]:
    api = connect(str(server.kubeconfig(tmp_path / "kubeconfig")), {})
    assert api is not None
    kubelets = Kubelets(api, {"node": node})
    kubelets.start()
    yield kubelets
    kubelets.stop()


def bound(server: ApiServer, name: str) -> None:
    server.create_pod(name)
    server.bind(name, "node")


@pytest.mark.parametrize("frame", [b"no JSON\n", b"{}\n", b'{"type": "ADDED", "object": {}}\n'])
def test_the_watch_goes_on_after_what_can_t_be_read(server, node, kubelets, frame):
    bound(server, "first")
    node.wait("first")
    while not server.break_watches(Send(frame), "pods"):
        pass
    bound(server, "second")
    node.wait("second")
    assert [error.partition(":")[0] for error in kubelets.errors] == ["the watch of pods"]


def test_a_pod_that_can_t_be_run_is_named(server, node, kubelets):
    bound(server, "broken")
    bound(server, "good")
    node.wait("good")
    node.wait("broken")
    kubelets.stop()
    assert kubelets.errors == ["default/broken: KeyError: 'broken'"]


def test_the_phases_of_all_pods_of_a_namespace_are_known_and_none_of_those_that_have_gone(server, kubelets):
    bound(server, "runs")
    bound(server, "goes")
    server.create_pod("waits")
    server.create_pod("elsewhere", "other")
    until(lambda: sorted(kubelets.phases("default")) == ["Pending", "Running", "Running"], "two to run")
    server.delete("v1", "pods", "goes", "default", grace_s=0)
    until(lambda: sorted(kubelets.phases("default")) == ["Pending", "Running"], "one to be gone")


def test_pods_that_went_while_nobody_watched_are_not_kept(server, kubelets):
    server.create_pod("goes")
    until(lambda: kubelets.phases("default") == ["Pending"], "it to be known")
    while not server.break_watches(Send(b"no JSON\n"), "pods"):
        pass
    server.delete("v1", "pods", "goes", "default", grace_s=0)
    until(lambda: not kubelets.phases("default"), "it to be forgotten")
