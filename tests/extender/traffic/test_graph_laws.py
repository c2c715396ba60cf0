"""Whatever is told in whatever order, no byte is counted twice, and each has one fate."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.state.pod_index import address
from extender.state.pods import Changes, PodRow
from extender.traffic.graph import ClusterGraph
from numakin.placement.traffic.graph import Amount
from tests.extender.traffic.graphs import NOW, bytes_between
from tests.extender.traffic.talking import flow, pod

PODS = [pod(f"p{at}", f"w{at % 3}", node=f"n{at % 2}", ip=f"10.0.{at % 2}.{at}") for at in range(6)]


@st.composite
def conversations(draw):
    """What both ends' nodes tell of some conversations, each with its time."""
    received = []
    for _ in range(draw(st.integers(1, 12))):
        client, server = draw(st.permutations(PODS))[:2]
        size, port = draw(st.integers(1, 1 << 30)), draw(st.sampled_from([80, 443]))
        at = NOW + draw(st.integers(0, 20))
        if client.node == server.node:
            received.append((client.node, at, flow(client.uid, server.uid, size, 1)))
            continue
        received.append((server.node, at, flow(f"{client.ip}:{port}", server.uid, size, 1, server=True)))
        if draw(st.booleans()):
            received.append((client.node, at, flow(client.uid, f"{server.ip}:{port}", size, 1)))
    return received


def joined(steps) -> ClusterGraph:
    graph = ClusterGraph()
    for step in steps:
        if isinstance(step, PodRow):
            graph.apply(Changes(rows=(step,)), NOW)
        else:
            node, at, first = step
            graph.add(node, [first], at)
    return graph


@given(conversations(), st.randoms(use_true_random=False))
def test_the_order_in_which_nodes_and_the_api_server_tell_does_not_matter(received, random):
    steps = [*PODS, *received]
    expected = joined(steps).pods(NOW + 20).edges
    random.shuffle(steps)
    assert joined(steps).pods(NOW + 20).edges == {
        key: Amount(pytest.approx(rate.bytes), pytest.approx(rate.messages)) for key, rate in expected.items()
    }


@given(conversations())
def test_no_conversation_is_counted_twice(received):
    """Both nodes tell, and the sum is what the conversations were."""
    graph = joined([*PODS, *((node, NOW, entry) for node, _, entry in received)])
    truth = sum(
        entry.bytes
        for _, _, entry in received
        if entry.by_server or (not address(entry.source) and not address(entry.target))
    )
    assert sum(bytes_between(graph).values()) == pytest.approx(truth, abs=len(received))


@given(conversations(), st.sets(st.sampled_from(range(6))))
def test_every_byte_told_has_one_fate(received, known):
    graph = joined([*(PODS[at] for at in known), *received])
    assert sum(asdict(graph.fates).values()) + graph.waiting_bytes == sum(entry.bytes for _, _, entry in received)
    graph.tidy(NOW + 60)
    assert sum(asdict(graph.fates).values()) == sum(entry.bytes for _, _, entry in received)
