"""The nodes that kube-scheduler's own filters would leave to a pod, as far as taints and selectors decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numakin.kubectl.errors import UsageError
from numakin.placement.model.errors import BadTerms
from numakin.placement.model.node_terms import KEPT_OUT, NodeTerms, Taint

Object = Mapping[str, Any]

CORDONED = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""As which kube-scheduler takes a cordoned node: a pod may tolerate it."""


def feasible(pod: Object, nodes: Iterable[Object]) -> list[str]:
    """Names. What else kube-scheduler filters by (ports, volumes, spreading, pod affinity, room) is left out.

    UsageError when what the pod says of nodes can't be read.
    """
    try:
        terms = _terms(pod["spec"])
    except BadTerms as bad:
        rules = "its node selector, node affinity or tolerations can't be read"
        raise UsageError(f"pod {pod['metadata']['name']}: {rules}: {bad}") from bad
    bound = pod["spec"].get("nodeName")
    return [
        name for node in nodes if bound in (None, "", name := node["metadata"]["name"]) and _admits(terms, name, node)
    ]


def _terms(spec: Object) -> NodeTerms:
    try:
        node_affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    except AttributeError as bad:
        raise BadTerms("a field has another type than it should") from bad
    return NodeTerms.of(spec.get("nodeSelector"), required, spec.get("tolerations"))


def _admits(terms: NodeTerms, name: str, node: Object) -> bool:
    own = node.get("spec") or {}
    taints = tuple(
        Taint(taint["key"], taint.get("value") or "", taint["effect"])
        for taint in own.get("taints") or ()
        if taint.get("effect") in KEPT_OUT
    )
    taints += (CORDONED,) if own.get("unschedulable") else ()
    return terms.admits(name, node["metadata"].get("labels") or {}, taints)
