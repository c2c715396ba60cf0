"""Whom a pod is drawn to: both halves go by the same rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.traffic.affinity import neighbours, with_replicas

PODS = {"db": ["db-0", "db-1"], "cache": ["cache-0"], "web": ["web-0", "web-1", "web-2"]}


def test_each_end_of_a_pair_has_the_other_as_its_peer():
    assert neighbours({("a", "b"): 2.0, ("b", "c"): 3.0, ("d", "d"): 1.0}) == {
        "a": {"b": 2.0},
        "b": {"a": 2.0, "c": 3.0},
        "c": {"b": 3.0},
        "d": {"d": 1.0},
    }


def test_a_new_replica_talks_with_every_replica_of_its_peers_alike():
    assert with_replicas({"db": 6.0, "cache": 1.0}, PODS.__getitem__) == {"db-0": 3.0, "db-1": 3.0, "cache-0": 1.0}


def test_it_is_no_peer_of_its_own():
    assert with_replicas({"web": 4.0}, PODS.__getitem__, but="web-1") == {"web-0": 2.0, "web-2": 2.0}


def test_a_peer_that_exchanges_nothing_or_has_no_pod_draws_nobody():
    assert with_replicas({"db": 0.0, "gone": 5.0}, lambda workload: PODS.get(workload, [])) == {}


@given(st.dictionaries(st.sampled_from(sorted(PODS)), st.floats(1e-3, 1e9)))
def test_all_that_a_workload_exchanges_is_spread(peers):
    assert sum(with_replicas(peers, PODS.__getitem__).values()) == pytest.approx(sum(peers.values()))
