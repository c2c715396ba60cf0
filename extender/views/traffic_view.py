"""The cluster graph as people, tools and Prometheus read it."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nlargest
from typing import Any

from extender.traffic.known import ClusterTraffic
from extender.views.readout import Gauge, single

MOST_EDGES = 2_000
"""Edges of one answer, the heaviest; `edges_known` says how many there are."""


def graph(known: ClusterTraffic, namespace: str = "") -> dict[str, Any]:
    """Workloads, who of them talks to whom, and the groups found, each membership with its reason.

    namespace: the edges with an end in it, and its own workloads and these ends; empty: all.
    """
    weigh = known.graph.costs.weight
    edges = known.graph.edges
    start = f"{namespace}/" if namespace else ""
    told = [key for key in edges if key.source.startswith(start) or key.target.startswith(start)]
    expected = [pair for pair in known.expected if any(end.startswith(start) for end in pair)]
    heaviest = nlargest(MOST_EDGES, told, key=lambda key: (weigh(key.kind, edges[key]), key))
    own = (name for name in known.declared if name.startswith(start))
    return {
        "workloads": [_workload(name, known) for name in sorted({*own, *(end for key in told for end in key[:2])})],
        "edges": [
            {
                "source": key.source,
                "target": key.target,
                "kind": key.kind,
                "bytes_per_second": round(edges[key].bytes, 3),
                "messages_per_second": round(edges[key].messages, 3),
                "weight": round(weigh(key.kind, edges[key]), 3),
            }
            for key in heaviest
        ],
        "expected": [
            {"source": pair[0], "target": pair[1], "weight": round(known.expected[pair], 3)}
            for pair in nlargest(MOST_EDGES, expected, key=lambda pair: (known.expected[pair], pair))
        ],
        "edges_known": len(edges),
        "edges_dropped": known.dropped,
        "groups": [{"group": group, "workloads": members} for group, members in sorted(known.members.items())],
        "relays": sorted(known.relays),
        "bytes": {**known.fates, "waiting": known.waiting},
    }


def gauges(known: ClusterTraffic, dropped_flows: int) -> Iterator[Gauge]:
    yield (
        "numakin_extender_traffic_bytes_total",
        "Bytes that enforcers reported, by what became of them.",
        "fate",
        {fate: float(size) for fate, size in known.fates.items()},
    )
    yield single(
        "numakin_extender_graph_edges", "Directed edges between workloads, remembered ones too.", len(known.graph.edges)
    )
    yield single(
        "numakin_extender_graph_dropped_edges_total",
        "Edges that the caps have cost, the lightest first.",
        float(known.dropped),
    )
    yield single(
        "numakin_extender_graph_dropped_flows_total",
        "Flows that came faster than they could be taken in.",
        float(dropped_flows),
    )
    yield single(
        "numakin_extender_expected_edges",
        "Pairs of workloads that are expected to talk by Services' names, NetworkPolicies and groups' objects.",
        len(known.expected),
    )
    yield (
        "numakin_extender_expected_left_out",
        "What is written down about who talks to whom and exceeds a limit (docs/limits.md), by the limit.",
        "limit",
        {limit: float(count) for limit, count in known.left_out.items()},
    )
    yield single(
        "numakin_extender_found_groups",
        "Groups found for pods that say auto.",
        len({member.group for member in known.found.members.values()}),
    )

    yield single(
        "numakin_extender_relays",
        "Workloads that pass on what they receive: who talks to whom through them is not seen.",
        len(known.relays),
    )


def _workload(name: str, known: ClusterTraffic) -> dict[str, Any]:
    """learned: the group was found from traffic, not named by its pods. used_cpu_milli: what one pod uses, None while
    not known.
    """
    membership = known.found.members.get(name)
    return {
        "workload": name,
        "replicas": known.replicas.get(name, 0),
        "used_cpu_milli": known.uses.get(name),
        "group": known.group_of(name) or None,
        "learned": membership is not None,
        "reason": membership.reason if membership else None,
    }
