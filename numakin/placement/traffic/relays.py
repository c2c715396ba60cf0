"""Workloads that pass on what they receive: proxies, meshes' node proxies, kube-proxy in user space. Pure.

Through a relay who talks to whom is hidden: only client - relay and relay - server are seen, so that all its clients
and servers look like one group. A relay is recognised by its volumes:

  - its peers fall into two sides, those that it sends more to than it receives from, and the others: of a relay these
    are clients and servers, whichever is which;
  - on each side are at least two that matter, else what passes joins those that do belong together;
  - what one side sends it, the other side receives from it, both ways, in bytes and in messages.

An application between two tiers is taken for one only if it answers with as many bytes as it fetches, and fetches as
often as it is asked. Not recognised are a relay that changes what passes (compression, caching), one whose other side
has not opted in or is outside the cluster, and one whose peers send as much as they receive, of which no volume shows
that it passes anything on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

from numakin.placement.traffic.graph import Amount, Graph, Key

KINDS = frozenset({"tcp", "udp", "unix"})

MOST_OF_IT = 0.1
"""By which the larger of both directions may differ: headers, encryption."""

THE_REST = 0.35
"""By which the smaller direction and the numbers of messages may: headers weigh more on requests, and segments are cut
and joined."""

LENIENT = 1.5
"""What a workload that was a relay may differ more before it is one no longer."""

MATTERS = 0.01
"""Share of its side that a peer has to have."""

SYMMETRIC = 0.05
"""By which the directions with a peer must differ to show its side; those of which no side is known may have
`MOST_OF_IT` of all together."""

SIDE = 2
"""Peers on each side, at least."""


class _Exchange(NamedTuple):
    """received and sent: by the workload in question."""

    received: Amount = Amount()
    sent: Amount = Amount()


def relays(graph: Graph, before: Collection[str] = ()) -> frozenset[str]:
    """before: those of the last time. Same arguments, same answer."""
    exchanges: dict[str, dict[str, _Exchange]] = defaultdict(dict)
    for key, rate in graph.edges.items():
        if key.kind in KINDS and key.source != key.target:
            _add(exchanges, key, rate)
    return frozenset(
        workload for workload, peers in exchanges.items() if _passes_on(peers, LENIENT if workload in before else 1.0)
    )


def _add(exchanges: Mapping[str, dict[str, _Exchange]], key: Key, rate: Amount) -> None:
    out = exchanges[key.source].get(key.target, _Exchange())
    exchanges[key.source][key.target] = out._replace(sent=out.sent.plus(rate))
    came = exchanges[key.target].get(key.source, _Exchange())
    exchanges[key.target][key.source] = came._replace(received=came.received.plus(rate))


def _passes_on(peers: Mapping[str, _Exchange], lenient: float) -> bool:
    given, taken = _Exchange(), _Exchange()
    receivers, senders, neither = [], [], 0.0
    for peer in peers.values():
        balance = peer.sent.bytes - peer.received.bytes
        if abs(balance) <= SYMMETRIC * max(peer.sent.bytes, peer.received.bytes):
            neither += _size(peer)
        elif balance > 0:
            given = _together(given, peer)
            receivers.append(_size(peer))
        else:
            taken = _together(taken, peer)
            senders.append(_size(peer))
    if min(_that_matter(receivers), _that_matter(senders)) < SIDE:
        return False
    if neither > MOST_OF_IT * (sum(receivers) + sum(senders)):
        return False
    # Down: what it sends to the one side and receives from the other, by far the most; up: the other way.
    down, up = (given.sent, taken.received), (given.received, taken.sent)
    return (
        _alike(down[0].bytes, down[1].bytes, MOST_OF_IT * lenient)
        and _alike(up[0].bytes, up[1].bytes, THE_REST * lenient)
        and _alike(down[0].messages, down[1].messages, THE_REST * lenient)
        and _alike(up[0].messages, up[1].messages, THE_REST * lenient)
    )


def _that_matter(sizes: list[float]) -> int:
    return sum(1 for size in sizes if size >= MATTERS * sum(sizes))


def _alike(amount: float, other: float, tolerance: float) -> bool:
    return abs(amount - other) <= tolerance * max(amount, other)


def _size(exchange: _Exchange) -> float:
    return exchange.received.bytes + exchange.sent.bytes


def _together(exchange: _Exchange, other: _Exchange) -> _Exchange:
    return _Exchange(exchange.received.plus(other.received), exchange.sent.plus(other.sent))
