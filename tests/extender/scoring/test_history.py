"""What is remembered for explain, and how much of it."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from extender.cluster import Cluster
from extender.scoring import history
from extender.scoring.history import DECISIONS_OF_POD, History
from extender.state.node_report import DecisionRow
from numakin.placement.decide.decide import Reason
from tests.extender.machines import want
from tests.extender.told import tell

ROW = DecisionRow("uid-0", "shop", "web", "app", "create", "0", "0-3", "0", 1.0, (), "unpromised", "", 1)


def rows(pod: str, count: int, reasons: tuple[Reason, ...] = ()) -> list[DecisionRow]:
    return [replace(ROW, pod=pod, name=f"name-{pod}", generation=at, reasons=reasons) for at in range(count)]


def test_the_latest_decisions_of_a_pod_are_remembered():
    made = History()
    made.decided(rows("a", DECISIONS_OF_POD + 5))
    assert [row.generation for row in made.decisions("a")] == [*range(5, DECISIONS_OF_POD + 5)]


def test_what_was_decided_before_takes_no_place_of_what_was_decided_since():
    """As of a container that was placed long ago, whose pod's other one has come and gone since."""
    made = History()
    first, *later = rows("a", DECISIONS_OF_POD + 1)
    made.decided(later)
    made.remembered([replace(first, container="other")])
    assert list(made.decisions("a")) == later


def test_what_was_decided_before_is_in_its_order():
    made = History()
    made.remembered(rows("a", 3))
    assert list(made.decisions("a")) == rows("a", 3)


def test_decisions_at_length_push_out_the_oldest_pods_not_the_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(history, "DECISION_BYTES", 120_000)
    made, long = History(), (Reason("x" * 1024, "y" * 1024, "z" * 1024),)
    for pod in range(200):
        made.decided(rows(f"pod-{pod}", 2 * DECISIONS_OF_POD, long))
        made.remembered(rows(f"pod-{pod}", 1, long))
    kept = [pod for pod in range(200) if made.decisions(f"pod-{pod}")]
    assert kept == [198, 199], "what two pods with 16 decisions of 3 KiB take"
    assert sum(row.size for pod in kept for row in made.decisions(f"pod-{pod}")) <= 120_000


def test_remembered_answers_are_nothing_that_the_garbage_collector_goes_through(cluster: Cluster):
    """It stops every thread meanwhile: with hundreds of answers for 5,000 nodes each 20 to 80 ms."""
    names = tuple(f"n{number}" for number in range(40))
    for name in names:
        tell(cluster, name)

    def gone_through() -> int:
        return sum(len(held) >= len(names) for held in gc.get_objects() if type(held) in (tuple, list))

    cluster.score(want("first", cpu="1"), names)
    gc.collect()
    before = gone_through()
    for pod in range(30):
        cluster.score(want(f"p{pod}", cpu="1"), names)
    gc.collect()
    assert gone_through() - before < 10
