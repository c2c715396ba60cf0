"""The node's traffic as JSON, for `numakin-enforcer top` and `record`: what `/api/v1/traffic` and `/api/v1/windows`
answer. Pure.
"""

from __future__ import annotations

from typing import Any

from enforcer.observer.traffic_loop import TrafficView
from numakin.placement.traffic.relays import relays

MOST_EDGES = 200
"""Edges in one answer, the heaviest first; their number is given besides."""


def traffic(view: TrafficView) -> dict[str, Any]:
    """Edges with their rates and weights (nanoseconds a second that a crossing would cost), heaviest first."""
    costs = view.graph.costs
    weighted = [(costs.weight(key.kind, rate), key, rate) for key, rate in view.graph.edges.items()]
    weighted.sort(key=lambda row: (-row[0], row[1]))
    return {
        "collector": view.collector,
        "programs": view.programs,
        "refusals": [{"way": way, "reason": reason} for way, reason in view.refusals],
        "edges": [
            {
                "source": view.names.get(key.source, key.source),
                "target": view.names.get(key.target, key.target),
                "kind": key.kind,
                "bytes_per_s": round(rate.bytes, 1),
                "messages_per_s": round(rate.messages, 2),
                "weight": round(weight, 1),
            }
            for weight, key, rate in weighted[:MOST_EDGES]
        ],
        "edges_in_all": len(weighted),
        "relays": sorted(view.names.get(relay, relay) for relay in relays(view.graph)),
        "dropped_edges": view.graph.dropped,
        "unattributed_bytes": view.unattributed_bytes,
        "lost_bytes": view.lost_bytes,
        "unseen": [{"reason": reason, "containers": containers} for reason, containers in view.unseen],
    }


def windows(view: TrafficView, since: int) -> dict[str, Any]:
    """The windows with a number over `since` that are still kept, as `record` writes them. Numbers are a session's."""
    newer = (window for window in view.windows if window.number > since)
    return {
        "session": view.session,
        "windows": [{"number": window.number, "line": window.line} for window in newer],
    }
