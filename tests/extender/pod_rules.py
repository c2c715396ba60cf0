"""Where kube-scheduler lets a pod go by what pods say of each other: a reading of its documentation of its own, over
objects as the API server has them.

https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/ and
https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Object = dict[str, Any]

Bound = Sequence[tuple[Object, str]]
"""Pods, and the nodes that they are on."""


def labels(thing: Object) -> dict[str, str]:
    return thing["metadata"].get("labels", {})


def selects(selector: Object, pod: Object) -> bool:
    has = labels(pod)

    def holds(expression: Object) -> bool:
        key, values = expression["key"], expression.get("values", [])
        return {
            "In": key in has and has[key] in values,
            "NotIn": key not in has or has[key] not in values,
            "Exists": key in has,
            "DoesNotExist": key not in has,
        }[expression["operator"]]

    return all(has.get(key) == value for key, value in selector.get("matchLabels", {}).items()) and all(
        holds(expression) for expression in selector.get("matchExpressions", [])
    )


def required(pod: Object, name: str) -> list[Object]:
    return pod["spec"].get("affinity", {}).get(name, {}).get("requiredDuringSchedulingIgnoredDuringExecution", [])


def spreads(pod: Object) -> list[Object]:
    every = pod["spec"].get("topologySpreadConstraints", [])
    return [spread for spread in every if spread["whenUnsatisfiable"] == "DoNotSchedule"]


def lets(pod: Object, node: str, nodes: Sequence[Object], bound: Bound) -> bool:
    by_name = {each["metadata"]["name"]: each for each in nodes}
    return all(
        (
            all(not _alike(term, node, by_name, bound) for term in required(pod, "podAntiAffinity")),
            not any(
                selects(term["labelSelector"], pod) and _together(term, node, other, by_name)
                for there, other in bound
                for term in required(there, "podAntiAffinity")
            ),
            _beside(pod, node, by_name, bound),
            all(_spread(pod, spread, node, by_name, bound) for spread in spreads(pod)),
        )
    )


def _together(term: Object, node: str, other: str, nodes: dict[str, Object]) -> bool:
    key = term["topologyKey"]
    here, there = labels(nodes[node]).get(key), labels(nodes[other]).get(key)
    return here is not None and here == there


def _alike(term: Object, node: str, nodes: dict[str, Object], bound: Bound) -> Iterator[Object] | list[Object]:
    """Those that the term selects in the node's domain."""
    return [
        there for there, other in bound
        if selects(term["labelSelector"], there) and _together(term, node, other, nodes)
    ]  # fmt: skip


def _beside(pod: Object, node: str, nodes: dict[str, Object], bound: Bound) -> bool:
    """Of several terms the pods that are there have to match all. The first of those that select themselves goes to
    any node with the labels.
    """
    terms = required(pod, "podAffinity")
    if any(term["topologyKey"] not in labels(nodes[node]) for term in terms):
        return False

    def chosen(there: Object) -> bool:
        return all(selects(term["labelSelector"], there) for term in terms)

    mates = [other for there, other in bound if chosen(there)]
    if all(any(_together(term, node, other, nodes) for other in mates) for term in terms):
        return True
    found = any(term["topologyKey"] in labels(nodes[other]) for other in mates for term in terms)
    return not found and chosen(pod)


def _spread(pod: Object, spread: Object, node: str, nodes: dict[str, Object], bound: Bound) -> bool:
    """maxSkew: how many more pods there may be in the domain than in the eligible one with the fewest."""
    keys, key = [each["topologyKey"] for each in spreads(pod)], spread["topologyKey"]
    eligible = {
        name
        for name, each in nodes.items()
        if all(other in labels(each) for other in keys)
        and (spread.get("nodeAffinityPolicy") == "Ignore" or selected(pod, each))
        and (spread.get("nodeTaintsPolicy") != "Honor" or not each["spec"].get("taints"))
    }
    if any(other not in labels(nodes[node]) for other in keys):
        return False
    domains = {labels(nodes[name])[key] for name in eligible}
    counts = dict.fromkeys(domains, 0)
    for there, other in bound:
        if other in eligible and selects(spread["labelSelector"], there) and not _ending(there):
            counts[labels(nodes[other])[key]] += 1
    least = min(counts.values(), default=0) if len(domains) >= spread.get("minDomains", 1) else 0
    return counts.get(labels(nodes[node])[key], 0) + 1 - least <= spread["maxSkew"]


def selected(pod: Object, node: Object) -> bool:
    return pod["spec"].get("nodeSelector", {}).items() <= labels(node).items()


def admits(pod: Object, node: Object) -> bool:
    """By what the pod says of the node alone; it tolerates no taints."""
    return selected(pod, node) and not node["spec"].get("taints")


def _ending(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]
