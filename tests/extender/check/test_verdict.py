"""What `helm test` says of what the replicas answer."""

from __future__ import annotations

import pytest

from extender.check.replicas import ReplicaAnswer
from extender.check.verdict import verdicts


def node(name: str, *, live: bool = True, registered: bool = True) -> dict:
    return {"node": name, "live": live, "registered": registered}


def replica(
    *nodes: dict, unreported: tuple[str, ...] = (), missing: str = "", calls: float = 1, refused: float = 0
) -> ReplicaAnswer:
    return ReplicaAnswer("10.0.0.1:8080", missing, calls, refused, nodes, unreported)


def bad(*replicas: ReplicaAnswer) -> list[str]:
    return [each.text for each in verdicts(replicas) if not each.good]


def test_all_is_well():
    found = verdicts([replica(node("n1"), node("n2"), calls=3), replica(node("n1"), node("n2"), calls=0)])
    assert [each.text for each in found] == [
        "replicas of the extender that are ready, over TLS: 2",
        "nodes whose enforcers report to every replica: 2",
        "calls of kube-scheduler since the replicas began: 3",
    ]
    assert all(each.good for each in found)


CASES = {
    "a replica that is not ready": (
        [replica(node("n1"), missing="the gRPC port is not open yet")],
        "the replica 10.0.0.1:8080 is not ready: the gRPC port is not open yet",
    ),
    "a node that never reported": (
        [replica(node("n1"), unreported=("n2",))],
        "no enforcer has reported from n2: see the log of its pod, and kubectl numakin doctor",
    ),
    "a node that reports to one replica alone": (
        [replica(node("n1"), node("n2")), replica(node("n1"))],
        "no enforcer has reported from n2: see the log of its pod, and kubectl numakin doctor",
    ),
    "a node that went silent": (
        [replica(node("n1", live=False))],
        "the enforcer no longer reports from n1: see the log of its pod, and kubectl numakin doctor",
    ),
    "an enforcer without its runtime": (
        [replica(node("n1", registered=False))],
        (
            "the enforcer is not registered with the container runtime on n1: see the log of its pod, and kubectl numakin "
            "doctor"
        ),
    ),
    "no enforcer at all": ([replica()], "no enforcer has a pod on any node: see its DaemonSet"),
    "a scheduler that does not call": (
        [replica(node("n1"), node("n2"), calls=0)],
        (
            "kube-scheduler, which placed this pod, has called no replica: give it "
            "scheduler-config/kube-scheduler-config.yaml, and see docs/scheduler.md, Reaching the extender; "
            "where the replicas became ready only after that, test again; where one node alone could take this pod, "
            "no call was to be made"
        ),
    ),
    "a scheduler without its certificate": (
        [replica(node("n1"), calls=0, refused=2)],
        (
            "kube-scheduler, which placed this pod, has called no replica: somebody was not let in, most often without "
            "its certificate (the extender's log says why): copy the Secret numakin-kube-scheduler to kube-scheduler's files"
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_line_says_what_is_wrong(case):
    replicas, text = CASES[case]
    assert bad(*replicas) == [text]


def test_no_call_is_expected_where_there_is_one_node():
    """kube-scheduler asks for scores where it has a choice."""
    assert bad(replica(node("n1"), calls=0)) == []


def test_what_is_wrong_comes_first_and_ten_nodes_are_named():
    names = tuple(f"n{number:02}" for number in range(12))
    found = verdicts([replica(unreported=names)])
    assert [each.good for each in found] == [False, True, True]
    assert "from n00, n01" in found[0].text
    assert "n09 and 2 more:" in found[0].text


def test_only_what_takes_its_time_is_waited_for():
    found = verdicts([replica(unreported=("n1", "n2"), missing="no enforcer runs yet", calls=0)])
    assert [each.passing for each in found if not each.good] == [True, True, False]
