"""Groups that are cut over nodes, and what would bring them together again, as people, tools and Prometheus read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from extender.cluster import Cluster
from extender.planning.regrouping import Apart, Regrouping, Regroupings, RegroupStep
from extender.views.readout import Gauge, single


def regroup(found: Regroupings, now: float, group: str = "") -> dict[str, Any]:
    """now: seconds, of the cluster's clock. group: this one alone."""
    names = sorted(found.plans.keys() | found.apart.keys())
    return {
        "searched_seconds_ago": None if found.at is None else round(now - found.at, 3),
        "groups": [row for name in names if group in ("", name) and (row := of_group(found, name)) is not None],
    }


def of_group(found: Regroupings, group: str) -> dict[str, Any] | None:
    """None for one that is not cut."""
    if (planned := found.plans.get(group)) is not None:
        return {"group": group, "nodes": _ranked(planned.before), "plan": _plan(planned), "why": sentence(planned)}
    if (apart := found.apart.get(group)) is not None:
        return {"group": group, "nodes": _ranked(apart.before), "plan": None, "why": sentence(apart)}
    return None


def sentence(found: Regrouping | Apart) -> str:
    """What could be done of a group that is cut, or why nothing can."""
    over = f"cut over {len(found.before)} nodes"
    if isinstance(found, Apart):
        return f"{over}: {found.why}"
    pods = "1 pod" if found.restarts == 1 else f"{found.restarts} pods"
    nodes = "one node" if found.whole else f"{len(found.after)} nodes"
    return f"{over}: {pods} evicted would have it on {nodes}"


def evictions(cluster: Cluster, group: str) -> dict[str, Any]:
    """For who carries the group's plan out by hand: how each of its steps is written down on the group's object, but
    for who writes it, and why it would not be begun now; and whose place room is held for.
    """
    planned = cluster.regroupings.plans.get(group)
    held = cluster.promises.held_for(group)
    return {
        "steps": [_eviction(cluster, group, step) for step in (planned.steps if planned is not None else ())],
        "held_in_place_of": held.gone if held is not None else "",
    }


def _eviction(cluster: Cluster, group: str, step: RegroupStep) -> dict[str, Any]:
    written = asdict(cluster.promises.step(step, "-"))
    del written["by"]
    return {"step": written, "obstacle": cluster.promises.obstacle(group, step.uid, step.origin.node, consent=False)}


def gauges(found: Regroupings) -> Iterator[Gauge]:
    yield (
        "numakin_extender_cut_groups",
        "Groups over several nodes, by whether some of their pods evicted would bring more of them together.",
        "plan",
        {"true": len(found.plans), "false": len(found.apart)},
    )
    yield single(
        "numakin_extender_regroup_restarts",
        "Pods whose eviction would bring groups together again, as far as there is room.",
        sum(planned.restarts for planned in found.plans.values()),
    )


def _plan(planned: Regrouping) -> dict[str, Any]:
    """gain: of the group's traffic, or of its pairs of pods where none is known, by how near they come. locality,
    reached: the share inside one NUMA node.
    """
    return {
        "restarts": planned.restarts,
        "whole": planned.whole,
        "gain": round(planned.gain, 4),
        "locality": round(planned.locality, 4),
        "reached": round(planned.reached, 4),
        "nodes": _ranked(planned.after),
        "steps": [_step(step) for step in planned.steps],
    }


def _step(step: RegroupStep) -> dict[str, Any]:
    return {
        "pod": f"{step.namespace}/{step.name}",
        "uid": step.uid,
        "workload": step.workload,
        "node": step.origin.node,
        "numa_nodes": str(step.origin.numa_nodes),
        "to_node": step.to.node,
        "to_numa_node": step.to.numa_node,
        "gain": round(step.gain, 4),
    }


def _ranked(members: Mapping[str, int]) -> dict[str, int]:
    """The most first."""
    return dict(sorted(members.items(), key=lambda row: (-row[1], row[0])))
