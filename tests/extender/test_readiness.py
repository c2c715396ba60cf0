"""A fresh extender is ready when all have told it everything, or after a minute."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from extender.config import ExtenderConfig
from extender.readiness import ReadinessGate
from extender.state.pods import Changes, NodeRow, PodRow
from lab.standins.apiserver import ApiServer
from lab.standins.apiserver.faults import Answer
from lab.standins.patience import PATIENCE_S, until
from tests.extender.running import Enforcer, Extender, machine, running
from tests.manifests.rendered import files, one

ACCOUNT = "numakin:enforcer"
WITHIN_S = ExtenderConfig().readiness_timeout


def pod(node: str, *, namespace: str = "numakin", account: str = "enforcer", phase: str = "Running") -> PodRow:
    return PodRow(f"uid-{node}", namespace, f"enforcer-{node}", node, phase=phase, account=account)


class World:
    def __init__(self, account: str = ACCOUNT) -> None:
        self.now = 1000.0
        self.unseen: list[str] = []
        self.heard: set[str] = set()
        self.call = ReadinessGate(
            account, lambda: self.unseen, lambda node: node in self.heard, WITHIN_S, lambda: self.now
        )

    def pods(self, *rows: PodRow, gone: tuple[str, ...] = (), whole: bool = False) -> None:
        self.call.pods(Changes(rows, gone, whole))

    def nodes(self, gone: tuple[str, ...] = (), **ready: bool) -> None:
        self.call.nodes(Changes(tuple(NodeRow(name, ready=entry) for name, entry in ready.items()), gone))


@pytest.fixture
def world() -> World:
    return World()


def test_every_enforcer_that_runs_is_waited_for(world):
    world.pods(pod("n1"), pod("n2"), whole=True)
    assert world.call.missing() == "2 of 2 enforcers have not reported yet: n1"
    world.heard.add("n1")
    assert world.call.missing() == "1 of 2 enforcers have not reported yet: n2"
    world.heard.add("n2")
    assert world.call.missing() == ""


def test_nodes_that_an_enforcer_s_pod_is_on_are_known_until_it_reports(world):
    world.pods(pod("n1"), pod("n2", phase="Pending"), pod("", phase="Pending"), pod("n4", phase="Failed"), whole=True)
    assert world.call.unreported() == ["n1", "n2"]
    world.heard.add("n1")
    world.pods(pod("n2"), pod("n3"))
    assert world.call.unreported() == ["n2", "n3"]
    world.pods(gone=("uid-n2",))
    assert world.call.unreported() == ["n3"]


def test_what_the_api_server_tells_is_waited_for_first(world):
    world.unseen = ["pods", "nodes"]
    world.pods(pod("n1"))
    world.heard.add("n1")
    assert world.call.missing() == "the API server has not listed pods, nodes yet"


@pytest.mark.parametrize(
    "other",
    [pod("n2", phase="Pending"), pod("n2", account="default"), pod("n2", namespace="default")],
    ids=["not started", "another account", "another namespace"],
)
def test_nobody_else_is_waited_for(world, other):
    world.pods(pod("n1"), other, whole=True)
    world.heard.add("n1")
    assert world.call.missing() == ""


def test_an_enforcer_that_ends_or_whose_node_is_down_is_waited_for_no_longer(world):
    world.pods(pod("n1"), pod("n2"), pod("n3"), pod("n4"), whole=True)
    world.heard.add("n1")
    world.pods(gone=("uid-n2",))
    world.pods(pod("n3", phase="Failed"))
    assert "1 of 2" in world.call.missing()
    world.nodes(n4=False)
    assert world.call.missing() == ""


def test_a_node_that_is_up_again_counts(world):
    world.pods(pod("n1"), pod("n2"), whole=True)
    world.heard.add("n1")
    world.nodes(n1=True, n2=False)
    world.nodes(n2=True)
    assert "n2" in world.call.missing()


def test_while_no_enforcer_runs_it_waits(world):
    world.pods(whole=True)
    assert world.call.missing() == "no enforcer runs yet"


def test_it_waits_no_longer_than_it_was_told(world):
    world.pods(pod("n1"), whole=True)
    world.now += WITHIN_S - 1
    assert world.call.missing()
    world.now += 1
    assert world.call.missing() == ""


def test_once_ready_it_stays_so(world):
    world.pods(pod("n1"), whole=True)
    world.heard.add("n1")
    assert world.call.missing() == ""
    world.unseen = ["pods"]
    world.pods(pod("n2"))
    assert world.call.missing() == ""


def test_without_an_account_no_enforcer_is_waited_for():
    world = World("")
    world.pods(pod("n1"), PodRow("u", "", "x", "n2", phase="Running"), whole=True)
    assert world.call.missing() == ""


PATIENT = ("--enforcer-account", ACCOUNT, "--readiness-timeout", str(10 * PATIENCE_S))
"""The options of an extender that does not give up waiting before a slow test has looked."""


class Site:
    """Two nodes with an enforcer's pod each, a third that is down, and an extender that demands their tokens."""

    def __init__(self, extender: Extender, server: ApiServer) -> None:
        self.extender, self.server = extender, server

    def ready(self) -> tuple[int, str]:
        return self.extender.ask("GET", "/readyz")

    def reports(self, node: str) -> Enforcer:
        token = self.server.token_for("numakin", "enforcer", "numakin", f"enforcer-{node}")
        enforcer = self.extender.enforcer(node, token=token)
        enforcer.report(machine())
        return enforcer


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as made:
        made.define(one(files(), "CustomResourceDefinition", "affinitygroups.numakin.io"))
        for name, ready in (("n1", "True"), ("n2", "True"), ("n3", "False")):
            made.create_node(name, status={"conditions": [{"type": "Ready", "status": ready}]})
            made.create_pod(f"enforcer-{name}", "numakin", serviceAccountName="enforcer", nodeName=name)
            made.set_phase(f"enforcer-{name}", "Running", "numakin")
        yield made


@pytest.fixture
def site(server: ApiServer, tmp_path: Path) -> Iterator[Site]:
    kubeconfig = str(server.kubeconfig(tmp_path / "kubeconfig"))
    with running(tmp_path, "--kube", "--kubeconfig", kubeconfig, *PATIENT) as extender:
        yield Site(extender, server)


def test_an_extender_is_ready_as_soon_as_the_last_enforcer_has_reported(site):
    until(lambda: site.ready() == (503, "2 of 3 enforcers have not reported yet: n1\n"), "all is seen")
    site.reports("n1")
    assert site.ready() == (503, "1 of 3 enforcers have not reported yet: n2\n")
    last = site.reports("n2")
    assert site.ready() == (200, "ok\n")
    last.close()
    assert site.ready() == (200, "ok\n")


def test_it_answers_while_it_is_not_ready(site):
    """For whoever asks it all the same: its Service may be a moment behind."""
    until(lambda: site.ready() == (503, "2 of 3 enforcers have not reported yet: n1\n"), "all is seen")
    assert site.extender.get("/api/v1/nodes") == {"nodes": [], "unreported": ["n1", "n2", "n3"]}


def test_it_is_not_ready_before_it_knows_the_pods(server, tmp_path):
    server.order(Answer(500), "list", "pods", times=1_000)
    kubeconfig = str(server.kubeconfig(tmp_path / "kubeconfig"))
    with running(tmp_path, "--kube", "--kubeconfig", kubeconfig, *PATIENT) as extender:
        site = Site(extender, server)
        for node in ("n1", "n2"):
            site.reports(node)
        until(lambda: site.ready()[1] == "the API server has not listed pods yet\n", "only pods are missing")
