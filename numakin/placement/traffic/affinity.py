"""From a graph's weights to whom a pod is drawn: the peers of each end, and what a replica that comes is expected to
exchange with each pod.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping


def neighbours(weights: Mapping[tuple[str, str], float]) -> dict[str, dict[str, float]]:
    """The peers of each end with their weights. weights: of each pair once (`Graph.weights`)."""
    peers: dict[str, dict[str, float]] = defaultdict(dict)
    for (end, other), weight in weights.items():
        peers[end][other] = peers[other][end] = weight
    return dict(peers)


def with_replicas(
    peers: Mapping[str, float], replicas: Callable[[str], Collection[str]], but: str = ""
) -> dict[str, float]:
    """Weights by pod of one more replica, of which nothing else is known: it talks with every replica of its workload's
    peers alike.

    peers: weights by workload. replicas: the pods of a workload; the pod `but`, the newcomer itself, is none of them.
    """
    by_pod: dict[str, float] = {}
    for workload, weight in peers.items():
        pods = [pod for pod in replicas(workload) if pod != but] if weight > 0 else []
        by_pod |= dict.fromkeys(pods, weight / max(1, len(pods)))
    return by_pod
