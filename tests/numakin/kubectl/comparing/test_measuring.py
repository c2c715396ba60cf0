"""Deployments that a comparison has changed are restored, whatever becomes of whoever waits for it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, cast

import pytest

from lab.standins.apiserver import ApiServer
from lab.standins.apiserver.faults import Answer
from lab.standins.patience import until
from numakin.compare.workloads import Figures
from numakin.kubectl.apiserver import connect
from numakin.kubectl.comparing import measuring, templates
from numakin.kubectl.comparing.deployment import Deployment
from numakin.kubectl.comparing.measuring import Load, Plan
from numakin.kubectl.errors import CommandError
from numakin.kubectl.undoing import STOPPING, undone
from tests.ended import ended


class OneDeployment:
    """A Deployment that remembers what was done to it."""

    name = "web"

    def __init__(self) -> None:
        self.done: list[str] = []

    def begin(self) -> None:
        self.done.append("begin")

    def change(self, way: str, group: str) -> None:
        self.done.append(way)

    def rolled_out(self, way: str) -> list[dict[str, object]]:
        return [{"metadata": {"uid": "web-1"}, "spec": {"nodeName": "node-1"}}]

    def must_run(self, way: str) -> None: ...

    def disturbed(self, pods: list[dict[str, object]]) -> int:
        return 0


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """As in a terminal, also where the tests were started by nohup."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("gone", [BrokenPipeError(), SystemExit(1)], ids=["a pipe", "what rich makes of it"])
def test_who_reads_no_longer_finds_all_restored(gone, monkeypatch):
    web = OneDeployment()
    monkeypatch.setattr(measuring, "restore", lambda deployments: deployments[0].done.append("restored"))

    def report(_line: str) -> None:
        raise gone

    load = Load(["true"], lambda _: Figures(1.0, None), 0, 60)
    with pytest.raises(type(gone)):
        measuring.measure(Plan(cast("Any", [web]), "shop", load, lambda _uids: None, 6, 1), report)
    assert web.done[-1] == "restored"


@pytest.mark.parametrize(("last", "said"), [("wait", "not ended after 2 s"), ("exit 3", r"failed \(3\)"), ("true", "")])
def test_nothing_that_a_load_has_started_outlives_it(last, said, tmp_path):
    """It would load the next run too, and the Deployment when all is over."""
    script = f"sleep 3600 >/dev/null 2>&1 & echo $! >{tmp_path}/child; {last}"
    load = Load(["sh", "-c", script], lambda _: Figures(1.0, None), 0, 2)
    with pytest.raises(CommandError, match=said) if said else nullcontext():
        load.run()
    child = (tmp_path / "child").read_text().strip()
    until(lambda: ended(child), "the load's child has ended")


@pytest.mark.parametrize("number", STOPPING)
def test_each_signal_that_stops_undoes_first(number):
    undo: list[str] = []

    def stopped() -> None:
        with undone(lambda: undo.append("undone")):
            signal.raise_signal(number)

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert undo == ["undone"]


def test_under_nohup_a_closed_terminal_stops_nothing():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    undo: list[str] = []
    with undone(lambda: undo.append("undone")):
        signal.raise_signal(signal.SIGHUP)
        undo.append("went on")
    assert undo == ["went on", "undone"]


def test_a_second_signal_does_not_stop_what_undoes():
    undo: list[str] = []

    def slowly() -> None:
        signal.raise_signal(signal.SIGINT)
        undo.append("undone")

    with undone(slowly):
        pass
    assert undo == ["undone"]


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """With deployment web, of group shop."""
    template = {"metadata": {"labels": {"app": "web"}, "annotations": {"group.numakin.io": "shop"}}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    with ApiServer() as first:
        first.create("apps/v1", "deployments", {"metadata": {"name": "web"}, "spec": spec}, "default")
        yield first


def test_two_that_compare_at_once_leave_each_deployment_as_it_was(server, tmp_path):
    """Of jobs that begin at the same time both find it free: the second one remembered it as the first had made it."""
    api = connect(str(server.kubeconfig(tmp_path / "admin")), "")
    mine, theirs = (Deployment(api, "default", "web", 60) for _ in range(2))
    theirs.begin()
    theirs.change(templates.WITHOUT, "shop")
    load = Load(["true"], lambda _: Figures(1.0, None), 0, 60)
    plan = Plan([mine], "shop", load, lambda _uids: None, 6, 1)
    with pytest.raises(CommandError, match="another comparison of deployment/web runs, or has not restored it"):
        measuring.measure(plan, lambda _line: None)
    assert templates.way_of(theirs.read()) == templates.WITHOUT, "and it goes on with the first one's way"
    theirs.put_back()
    assert templates.annotations_of(theirs.read()) == {"group.numakin.io": "shop"}


def test_one_that_changes_as_it_is_begun_with_is_read_anew(server, tmp_path):
    api = connect(str(server.kubeconfig(tmp_path / "admin")), "")
    web = Deployment(api, "default", "web", 60)
    server.order(Answer(409), "patch", "deployments")
    web.begin()
    assert templates.is_compared(web.read())
    assert [request.verb for request in server.asked if request.verb == "patch"] == ["patch"] * 2
