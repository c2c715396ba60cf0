"""One replica of the extender says where a node's newcomers go; what the others know of them is taken all the same."""

from __future__ import annotations

import pytest

from enforcer.report.nominating_replica import NominatingReplica
from numakin.wire import report_pb2 as pb

A, B = "10.0.0.1:50051", "10.0.0.2:50051"


@pytest.fixture
def nominating() -> NominatingReplica:
    return NominatingReplica()


def told(nominating: NominatingReplica, by: str, numa: str, *, scored: bool = False) -> str:
    """Which NUMA nodes are left of a nomination, whose facts stay."""
    expect = pb.Expect(pod="web-1", workload="default/Deployment/web", numa_nodes=numa, planned=numa, scored=scored)
    nominating.heed(by, expect)
    assert expect.planned == expect.numa_nodes
    assert expect.workload == "default/Deployment/web"
    return expect.numa_nodes


def test_of_two_the_first_names_all_places_of_pods_that_none_scored(nominating: NominatingReplica):
    assert [told(nominating, *each) for each in ((A, "0"), (B, "1"), (B, "1"), (A, "0"))] == ["0", "", "", "0"]


def test_the_one_that_gave_scores_names_them_from_then_on(nominating: NominatingReplica):
    told(nominating, A, "0")
    assert told(nominating, B, "1", scored=True) == "1"
    assert told(nominating, A, "0") == ""
    assert told(nominating, B, "1") == "1"


def test_where_its_stream_ends_another_does(nominating: NominatingReplica):
    told(nominating, A, "0", scored=True)
    nominating.lost(B)
    assert told(nominating, B, "1") == ""
    nominating.lost(A)
    assert told(nominating, B, "1") == "1"


def test_facts_alone_make_none_the_one(nominating: NominatingReplica):
    told(nominating, A, "")
    assert told(nominating, B, "1") == "1"
