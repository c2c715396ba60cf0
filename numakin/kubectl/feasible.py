"""The nodes that kube-scheduler's own filters would leave to a pod, as far as taints and selectors decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numakin.kubectl.errors import UsageError

Object = Mapping[str, Any]

KEPT_OUT = ("NoSchedule", "NoExecute")


def feasible(pod: Object, nodes: Iterable[Object]) -> list[str]:
    """Names. What else kube-scheduler filters by (ports, volumes, spreading, pod affinity, room) is left out.

    UsageError when what the pod says of nodes can't be read.
    """
    try:
        return [node["metadata"]["name"] for node in nodes if _may_go(pod["spec"], node)]
    except (KeyError, TypeError, AttributeError) as bad:
        missing = f"an expression has no {bad.args[0]}" if isinstance(bad, KeyError) else ""
        wrong = missing or "a field has another type than it should"
        rules = "its node selector, node affinity or tolerations can't be read"
        raise UsageError(f"pod {pod['metadata']['name']}: {rules}: {wrong}") from bad


def _may_go(spec: Object, node: Object) -> bool:
    labels = node["metadata"].get("labels") or {}
    own = node.get("spec") or {}
    taints = [taint for taint in own.get("taints") or () if taint.get("effect") in KEPT_OUT]
    tolerations = spec.get("tolerations") or ()
    return (
        not own.get("unschedulable")
        and spec.get("nodeName") in (None, "", node["metadata"]["name"])
        and (spec.get("nodeSelector") or {}).items() <= labels.items()
        and all(any(_tolerates(toleration, taint) for toleration in tolerations) for taint in taints)
        and _required(spec, node["metadata"]["name"], labels)
    )


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return toleration.get("key") == taint["key"] and (toleration.get("value") or "") == (taint.get("value") or "")


def _required(spec: Object, name: str, labels: Mapping[str, str]) -> bool:
    """The required node affinity: one of its terms, each with all that it says."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(_term(term, name, labels) for term in required.get("nodeSelectorTerms") or ())


def _term(term: Object, name: str, labels: Mapping[str, str]) -> bool:
    by_label, by_field = term.get("matchExpressions") or (), term.get("matchFields") or ()
    return bool(by_label or by_field) and (
        all(_matches(expression, labels) for expression in by_label)
        and all(_matches(expression, {"metadata.name": name}) for expression in by_field)
    )


def _matches(expression: Object, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    there = labels.get(key)
    match expression["operator"]:
        case "In":
            return there in values
        case "NotIn":
            return there not in values
        case "Exists":
            return there is not None
        case "DoesNotExist":
            return there is None
        case _:
            return _compares(expression["operator"], there, values)


def _compares(operator: str, there: str | None, values: Any) -> bool:
    """Gt and Lt, of whole numbers."""
    try:
        label, bound = int(there or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return label > bound if operator == "Gt" else label < bound
