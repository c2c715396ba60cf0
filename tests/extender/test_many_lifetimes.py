"""What the extender keeps does not grow with the pods that have come and gone, in whatever order their news comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from extender.cluster import Cluster
from extender.scoring import history
from extender.scoring.predict import Wanted
from extender.settings import Settings
from extender.state import departed
from extender.state.node_report import DecisionRow, Report
from extender.state.node_view import NodeView
from extender.state.pods import Changes, OwnerRow, PodRow, ServiceRow
from extender.traffic.known import TrafficLearning
from extender.traffic.learned import LearnedGroup
from extender.traffic.policies import PolicyRow
from extender.traffic.remembered import FADED, REST_S
from numakin.placement.decide.decide import Reason
from numakin.placement.state.occupancy import fingerprint
from numakin.placement.traffic.graph import HALF_LIFE_S, Amount, Flow, Key
from tests.clock import Clock
from tests.extender.machines import pod
from tests.extender.running import machine, reservation
from tests.extender.tables import sizes

NODES = ["a", "b", "c"]

BOUND = 20
"""Of each table that is bounded by a number alone, so that a test reaches it."""

LIFETIMES = 60


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(history, "OFFERS", BOUND)
    monkeypatch.setattr(history, "DECIDED_PODS", BOUND)
    monkeypatch.setattr(departed, "MOST_ENDED", BOUND)
    return Cluster(Settings(report_timeout=60, hold=30, patience=0), Clock())


class Lifetimes:
    """Pods of ever new groups and workloads. late: what kube-scheduler asks once more when a pod's end was seen."""

    def __init__(self, cluster: Cluster, late: Callable[[Cluster, Wanted], object]) -> None:
        self._cluster, self._late, self._lived, self._generation = cluster, late, 0, 0
        cluster.apply_pods(Changes(whole=True))

    def play(self, count: int) -> None:
        for at in range(self._lived, self._lived + count):
            self._play(f"p{at}", strict=at % 3 == 0)
        self._lived += count

    def _play(self, uid: str, *, strict: bool) -> None:
        cluster, cpu = self._cluster, "99" if strict else "500m"
        row = pod(uid, group=f"group-{uid}", cpu=cpu, policy="restricted" if strict else "best-effort")
        row = replace(row, owner=OwnerRow("StatefulSet", f"set-{uid}"))
        want = cluster.wanted(row)
        assert want is not None
        for early in (False, True):  # the watch may show the pod after kube-scheduler has asked
            if early:
                cluster.apply_pods(Changes(rows=(row,)))
            cluster.refusals(want, NODES)
            cluster.victims(want, {"a": ["x"], "b": []})
            cluster.score(want, NODES)
        cluster.pods_to_retry(NODES)
        if not strict:
            self._run(replace(row, node="a"))
        cluster.apply_pods(Changes(gone=(uid,)))
        self._late(cluster, want)
        cluster.departed("a")
        cluster.clock.now += 1  # type: ignore[attr-defined]

    def _run(self, row: PodRow) -> None:
        cluster = self._cluster
        cluster.apply_pods(Changes(rows=(row,)))
        decision = DecisionRow(
            row.uid, "default", row.name, f"c-{row.uid}", "create", "0", "0-7", "0", 1.0, (Reason("kin", "1", ""),),
            "kept", "0", self._generation,
        )  # fmt: skip
        self._tell(reservation(row.uid, "0", group=f"default/group-{row.uid}"), decisions=(decision,))
        cluster.apply_pods(Changes(rows=(replace(row, phase="Running"),)))
        cluster.departed("a")
        self._tell()

    def _tell(self, *reservations, decisions: tuple[DecisionRow, ...] = ()) -> None:
        self._generation += 1
        view = NodeView("a", "session", "1", machine())
        facts = fingerprint(reservations, [])
        self._cluster.reported(view, Report(self._generation, 0, facts, tuple(reservations), decisions=decisions))
        for node in NODES:
            self._cluster.connected(node)


@pytest.mark.parametrize(
    "late",
    [
        lambda cluster, want: cluster.score(want, NODES),
        lambda cluster, want: cluster.refusals(want, NODES),
        lambda cluster, want: cluster.victims(want, {"a": [want.pod.uid]}),
        lambda cluster, want: cluster.apply_pods(Changes(gone=(want.pod.uid,))),
        lambda _cluster, _want: None,
    ],
    ids=["scored", "filtered", "preempting", "gone again", "nothing"],
)
def test_no_table_grows_with_the_pods_that_have_come_and_gone(cluster: Cluster, late):
    """Also where kube-scheduler's question about a pod comes when its deletion was seen already."""
    lifetimes = Lifetimes(cluster, late)
    lifetimes.play(LIFETIMES)
    before = sizes(cluster)
    lifetimes.play(LIFETIMES)
    grown = {name: (before[name], now) for name, now in sizes(cluster).items() if now > before[name] + BOUND // 2}
    assert grown == {}


def test_nor_with_those_that_an_api_server_which_was_away_does_not_list_any_more(cluster: Cluster):
    """Pods that were asked about before the first list, or that ended while nobody watched."""
    for at in range(LIFETIMES):
        want = cluster.wanted(pod(f"p{at}"))
        assert want is not None
        cluster.score(want, NODES)
    cluster.apply_pods(Changes(whole=True))
    assert cluster.picture().workloads == {}


class Namespaces:
    """Ever new ones, each with two workloads that talk, a Service and a NetworkPolicy: they go, and come never again."""

    def __init__(self) -> None:
        self.learning, self._now, self._lived = TrafficLearning(), 0.0, 0

    def play(self, count: int) -> None:
        for at in range(self._lived, self._lived + count):
            self._play(f"pr-{at}")
        self._lived += count

    def _play(self, namespace: str) -> None:
        learning, names = self.learning, ("web", "db")
        rows = [
            replace(pod(f"{name}-{namespace}", node="a"), namespace=namespace, owner=OwnerRow("Deployment", name))
            for name in names
        ]
        written = Amount(1000.0, 1.0)
        between = Key(rows[0].workload, rows[1].workload, "tcp")
        learning.restored(f"{namespace}/shop", LearnedGroup((), {between: written}), self._now)
        learning.priors.services(Changes(rows=(ServiceRow(namespace, "db", {"app": "db"}),)))
        learning.priors.policies(Changes(rows=(PolicyRow(namespace, "db"),)))
        learning.apply(Changes(rows=tuple(rows)), self._now)
        learning.receive("a", [Flow(rows[0].uid, rows[1].uid, "tcp", 1_000_000, 1000)], self._now)
        learning.used("a", {row.workload: 100 for row in rows}, self._now)
        learning.known(self._now)
        self._now += 2 * HALF_LIFE_S * FADED
        learning.known(self._now)
        learning.priors.services(Changes(gone=(f"{namespace}/db",)))
        learning.priors.policies(Changes(gone=(f"{namespace}/db",)))
        learning.apply(Changes(gone=tuple(row.uid for row in rows)), self._now)
        learning.known(self._now)
        self._now += 2 * REST_S
        learning.known(self._now)


def test_nor_does_what_is_learned_with_namespaces_that_have_come_and_gone():
    namespaces = Namespaces()
    namespaces.play(5)
    before = sizes(namespaces.learning)
    namespaces.play(20)
    grown = {name: (before[name], now) for name, now in sizes(namespaces.learning).items() if now > before[name]}
    assert grown == {}


def test_the_tables_are_found(cluster: Cluster):
    """Else the tests above would see nothing grow."""
    Lifetimes(cluster, lambda _cluster, _want: None).play(3)
    cluster.apply_pods(Changes(rows=(pod("waiting"),)))
    counted = sizes(cluster)
    assert (counted["BindingLedger.rows"], counted["History._uids"], counted["WaitingMembers._pods"]) == (1, 3, 1)
    assert {"WorkloadLocations._workloads", "NodeView.memo", "SlotMemo._answers", "RefusedPods._woken"} <= {*counted}
