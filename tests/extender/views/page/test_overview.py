"""The whole cluster in short: what a reader is sent who knows an earlier version of it."""

from __future__ import annotations

from extender.cluster import Cluster
from extender.state.enforcer_health import EnforcerHealths
from extender.views.page.overview import Overview
from extender.views.page.scene import FRESH_S, Scenes
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
