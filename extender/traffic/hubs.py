"""Hubs: workloads that serve many applications (DNS, a collector of metrics, an ingress, a shared database). Pure.

Through a hub strangers look like one group. Volumes alone do not distinguish a hub from the front end of a group:
both have peers that do not talk with each other. What does is whom the peers talk with otherwise. Nearly all that a hub
exchanges is with several other namespaces, none of which has all but a little of it, and apart from hubs those peers
talk within their namespaces. Where each service has a namespace of its own they do not, and nobody is a hub.

Not recognised: a hub of applications that share one namespace, or that are only two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from extender.traffic.exchanged import Traffic

NAMESPACES = 3
"""That a shared hub serves at the least: two with one workload in common are no strangers."""

MATTERS = 0.02
"""Share of what it exchanges that a namespace must have to be one that it serves."""

OWN, ONE = 0.25, 0.8
"""Share of what a shared hub exchanges that its own namespace may have, and any single other."""

MOSTLY = 0.5
"""Share of what a shared hub exchanges that must be with workloads which otherwise talk within their namespace for as
large a part."""

LENIENT = 1.2
"""Times which what was a hub before may have more, or less, before it is one no longer."""


def hubs(traffic: Traffic, before: Collection[str] = ()) -> frozenset[str]:
    """before: those of the last time. Same arguments, same answer."""

    def lenient(workload: str) -> float:
        return LENIENT if workload in before else 1.0

    spread = {workload for workload in traffic.peers if _spread(traffic, workload, lenient(workload))}
    own = _within_namespaces(traffic, spread)
    return frozenset(workload for workload in spread if _among_strangers(traffic, workload, own, lenient(workload)))


def _namespace(workload: str) -> str:
    return workload.partition("/")[0]


def _spread(traffic: Traffic, workload: str, lenient: float) -> bool:
    """Whether several namespaces have a part in what it exchanges, and none has most of it."""
    drawn: dict[str, float] = defaultdict(float)
    for peer, weight in traffic.peers[workload].items():
        drawn[_namespace(peer)] += weight
    total = traffic.strength[workload]
    own = drawn.pop(_namespace(workload), 0.0)
    least = MATTERS * total / lenient
    served = sum(weight >= least for weight in drawn.values())
    return served >= NAMESPACES and own <= OWN * lenient * total and max(drawn.values()) <= ONE * lenient * total


def _within_namespaces(traffic: Traffic, but: Collection[str]) -> dict[str, float]:
    """Of each workload, the share of its traffic with its own namespace, `but` left out; without any: 1."""
    shares = {}
    for workload, peers in traffic.peers.items():
        rest = {peer: weight for peer, weight in peers.items() if peer not in but}
        inside = sum(weight for peer, weight in rest.items() if _namespace(peer) == _namespace(workload))
        shares[workload] = inside / sum(rest.values()) if rest else 1.0
    return shares


def _among_strangers(traffic: Traffic, workload: str, own: dict[str, float], lenient: float) -> bool:
    """Whether its peers talk within their namespaces otherwise."""
    strangers = sum(weight for peer, weight in traffic.peers[workload].items() if own[peer] >= MOSTLY)
    return strangers * lenient >= MOSTLY * traffic.strength[workload]
