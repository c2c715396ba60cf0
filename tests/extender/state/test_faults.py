"""A fault of ours over one node costs that node its points, and nobody an answer."""

from __future__ import annotations

import pytest

from extender.cluster import Cluster
from extender.scoring.refused_pods import Welcome
from extender.state.node_report import Report
from extender.state.node_view import NodeView
from extender.state.pods import Changes
from extender.views.explain import explain
from extender.views.readout import gauges, nodes
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.state.occupancy import fingerprint
from tests.extender.machines import pod, want
from tests.extender.running import machine, reservation


class Broken(Machine):
    """Where its memory is can't be told."""

    def nearest_mems(self, numa_nodes: NumaSet) -> NumaSet:
        raise KeyError("no such NUMA node")


class Uncounted(Machine):
    """How many CPUs its NUMA nodes have can't be told, and so not what is asked for on them either."""

    @property
    def cpu_counts(self) -> dict[int, int]:
        raise KeyError("no such NUMA node")


def cluster_with(bad: type[Machine]) -> Cluster:
    """`bad` has a member, so that kin are looked for on it too; so has `good`. However busy the machine, no report of
    theirs gets old.
    """
    result, whole = Cluster(clock=lambda: 0.0), machine()
    for name, of in (("bad", bad(whole.numa_nodes, whole.cores)), ("good", whole), ("empty", whole)):
        reservations = [] if name == "empty" else [reservation(f"kin-{name}", "1")]
        result.connected(name)
        report = Report(1, 0, fingerprint(reservations, []), tuple(reservations), registered=True)
        assert isinstance(result.reported(NodeView(name, "session", "1", of), report), NodeView)
    return result


@pytest.fixture
def cluster() -> Cluster:
    return cluster_with(Broken)


NAMES = ("bad", "good", "empty")


@pytest.mark.parametrize("asked", [{}, {"cpus": "exclusive", "cpu": "2"}, {"cpu": "10"}, {"policy": "restricted"}])
def test_it_scores_0_and_the_others_are_scored(cluster: Cluster, asked):
    scores = dict(zip(NAMES, cluster.score(want("p", **asked), NAMES).scores, strict=True))
    assert scores["bad"] == 0
    assert scores["good"] > scores["empty"] > 0


def test_nor_are_they_kept_from_it_where_what_is_asked_for_there_cannot_be_summed():
    cluster = cluster_with(Uncounted)
    scores = dict(zip(NAMES, cluster.score(want("p"), NAMES).scores, strict=True))
    assert scores["bad"] == 0
    assert scores["good"] > scores["empty"] > 0
    cluster.apply_pods(Changes(rows=(pod("q", group="shop"),)))
    assert cluster.reserve() is not None


def test_it_is_refused_to_nobody_and_a_preemption_on_it_is_not_stopped(cluster: Cluster):
    asked = want("p", policy="single-numa-node", cpu="10")
    assert set(cluster.refusals(asked, NAMES)) == {"good", "empty"}
    assert list(cluster.victims(asked, {name: ["kin-bad"] for name in NAMES})) == ["bad"]
    assert cluster.pods_to_retry(["bad"]) == Welcome((), complete=True)


def test_a_pod_that_is_bound_to_it_is_nominated_its_facts_alone(cluster: Cluster):
    (nomination,) = cluster.apply_pods(Changes(rows=(pod("p", node="bad"),)))
    assert (nomination.node, nomination.numa_nodes) == ("bad", NumaSet())


def test_it_is_counted_by_name_and_explained_until_it_leaves(cluster: Cluster):
    cluster.score(want("p"), NAMES)
    counts = next(values for name, _, _, values in gauges(cluster.figures(), cluster.live) if "faults" in name)
    assert set(counts) == {"bad"}
    assert counts["bad"] > 0
    assert [row["weighing_faults"] > 0 for row in nodes(cluster.picture(), cluster.live).rows] == [True, False, False]
    reasons = {row["node"]: row["reasons"] for row in explain(cluster, "default", "p")["scored"]["nodes"]}
    assert reasons["bad"] == ["it could not be weighed: KeyError: 'no such NUMA node'"]
    cluster.apply_nodes(Changes(gone=("bad",)))
    assert cluster.faults.counts == {}
