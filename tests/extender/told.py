"""What enforcers tell a cluster, and what it answers."""

from __future__ import annotations

import pytest

from extender.cluster import Cluster
from extender.settings import Settings
from extender.state.node_report import Report
from extender.state.node_view import NodeView
from numakin.placement.model.live_usage import NOTHING, Live
from numakin.placement.state.occupancy import fingerprint
from tests.clock import Clock
from tests.extender.running import machine


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cluster(clock: Clock) -> Cluster:
    return Cluster(Settings(report_timeout=60, hold=30), clock)


def tell(cluster: Cluster, node: str, *reservations, of=None, generation: int = 1, live: Live = NOTHING) -> None:
    """A whole report of a node."""
    cluster.connected(node)
    view = NodeView(node, "session", "1", of or machine())
    cluster.reported(view, Report(generation, 0, fingerprint(reservations, []), tuple(reservations), live=live))


def reservations_of(cluster: Cluster, node: str) -> dict[str, str]:
    view = cluster.view(node)
    assert view is not None
    return {key: str(entry.numa_nodes) for key, entry in view.occupancy.reservations.items()}


def scores(cluster: Cluster, asked, *names: str) -> dict[str, int]:
    return {row.node: row.score for row in cluster.score(asked, names).rows}
