"""The whole cluster in short: what a reader is sent who knows an earlier version of it."""

from __future__ import annotations

from extender.cluster import Cluster
from extender.scoring.node_table import NodeState
from extender.state.enforcer_health import EnforcerHealths
from extender.views.page.overview import Overview
from extender.views.page.scene import FRESH_S, SHARE, Scenes
from tests.clock import Clock
from tests.extender.running import reservation
from tests.extender.told import tell


def test_a_version_that_another_extender_gave_gets_everything() -> None:
    """The one before, or another replica, whose rows the page still has: this one has seen as many changes and more."""
    known = _seen("a", "gone").since(0)["version"]
    overview = _seen("a", "b", "c")
    for version in (known, known - 1, known + 1):
        changes = overview.since(version)
        assert changes["whole"]
        assert [row["name"] for row in changes["nodes"]] == ["a", "b", "c"]


def test_a_version_of_its_own_gets_what_came_after() -> None:
    clock = Clock()
    cluster = Cluster()
    overview = _overview(cluster, clock)
    tell(cluster, "a")
    version = overview.since(0)["version"]
    tell(cluster, "b", reservation("pod", "0"))
    clock.now += FRESH_S
    changes = overview.since(version)
    assert not changes["whole"]
    assert [row["name"] for row in changes["nodes"]] == ["b"]


def test_what_the_overview_of_a_scene_takes_counts_with_it() -> None:
    """Else an open page would take several times its share: the overview of a scene takes longer than the scene."""
    cluster, clock, took = Cluster(), Clock(), 0.4

    def slow(_state: NodeState) -> bool:
        clock.now += took
        return True

    overview = Overview(Scenes(cluster, clock), slow, EnforcerHealths())
    tell(cluster, "a")
    version = overview.since(0)["version"]
    tell(cluster, "b")
    clock.now += took / SHARE - took - 0.1
    assert overview.since(version)["version"] == version
    clock.now += 0.2
    assert overview.since(version)["version"] > version


def _seen(*nodes: str) -> Overview:
    """Of an extender to which these came one after the other."""
    cluster, clock = Cluster(), Clock()
    overview = _overview(cluster, clock)
    for node in nodes:
        tell(cluster, node)
        clock.now += FRESH_S
        overview.since(0)
    return overview


def _overview(cluster: Cluster, clock: Clock) -> Overview:
    return Overview(Scenes(cluster, clock), lambda _state: True, EnforcerHealths())
