"""Where pods would go, one after the other, if they were created now: tried on a draft of the cluster.

It is the extender's part alone: what kube-scheduler's own filters and plugins make of it is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from extender.cluster import Cluster
from extender.scoring.predict import Wanted
from extender.state.pods import Changes, PodRow
from extender.views.explain import weighed
from numakin.placement.model.errors import PlacementError
from numakin.placement.optin.parsing import problems

MOST_PODS = 100
"""Of one question. At 5,000 nodes each takes as long as a call of kube-scheduler, some 15 ms."""

ALTERNATIVES = 3
"""Nodes that are listed besides the best one."""


def plan(cluster: Cluster, questions: Iterable[tuple[Sequence[PodRow], Sequence[str] | None]]) -> dict[str, Any]:
    """Pod by pod the node that scores best, and what else was weighed, as if all were created before the first is
    scheduled.

    questions: pods, and the nodes that they may go to; None: all that are known.
    """
    draft, asked = cluster.draft(), [(pod, names) for pods, names in questions for pod in pods]
    known = tuple(state.view.name for state in draft.picture().nodes)
    draft.apply_pods(Changes(rows=tuple(pod for pod, _ in asked)))
    draft.reserve()
    return {"pods": [_planned(draft, pod, known if names is None else names) for pod, names in asked]}


def _planned(draft: Cluster, pod: PodRow, names: Sequence[str]) -> dict[str, Any]:
    bad = problems(pod.namespace, pod.annotations, [container.name for container in pod.containers])
    name = f"{pod.namespace}/{pod.name}"
    answer: dict[str, Any] = {"pod": name, "workload": pod.workload, "annotations_not_taken": list(bad.lines)}
    try:
        want = draft.wanted(pod)
    except PlacementError as error:
        return {**answer, "opted_in": True, "node": None, "why": str(error), "weighed": []}
    if want is None:
        return {
            **answer,
            "opted_in": False,
            "node": None,
            "why": "it has no annotation group.numakin.io that counts",
            "weighed": [],
        }
    return {**answer, "opted_in": True, "group": want.group, **_best(draft, want, names)}


def _best(draft: Cluster, want: Wanted, names: Sequence[str]) -> dict[str, Any]:
    """The pod then counts as bound there, so that the next one finds it."""
    offer = draft.score(want, names)
    rows = [weighed(row, want, offer.beside(row.node)) for row in offer.best(1 + ALTERNATIVES)]
    refused = draft.refusals(want, names) if want.strict else {}
    rows = [row | ({"refused": refused[row["node"]].why} if row["node"] in refused else {}) for row in rows]
    best = next((row for row in rows if row.get("fits") and "refused" not in row), None)
    if best is None:
        return {"node": None, "why": "no node's enforcer would place it", "weighed": rows}
    draft.apply_pods(Changes(rows=(replace(want.pod, node=best["node"]),)))
    return {"node": best["node"], "numa_nodes": best["numa_nodes"], "why": "", "weighed": rows}
