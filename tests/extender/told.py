"""What enforcers tell a cluster, and what it answers."""

from __future__ import annotations

import pytest

from extender.cluster import Cluster
from extender.scoring.group_holds import GROWS_S
from extender.settings import Settings
from extender.state.node_report import Report
from extender.state.node_view import NodeView
from extender.state.pods import PodRow
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.live_usage import NOTHING, Live
from numakin.placement.state.occupancy import Reservation, fingerprint
from tests.clock import Clock
from tests.extender.running import machine

SETTLED_S = GROWS_S + 1
"""After it a group is taken to have been created whole."""


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


def asked(cluster: Cluster, row: PodRow, *names: str) -> str:
    """The node that leads."""
    want = cluster.wanted(row)
    assert want is not None
    result = {scored.node: scored.score for scored in cluster.score(want, names or ("a", "b")).rows}
    return max(result, key=result.__getitem__) if any(result.values()) else ""


def other(numa_node: int, milli: int) -> Reservation:
    """Of who has not opted in."""
    return Reservation(f"id-{numa_node}", "other", "", NumaSet.of((numa_node,)), Demand(milli))


def scores(cluster: Cluster, asked, *names: str) -> dict[str, int]:
    return {row.node: row.score for row in cluster.score(asked, names).rows}
