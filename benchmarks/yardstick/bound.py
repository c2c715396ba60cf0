"""Locality that no placement can exceed, proven."""

from __future__ import annotations

from numakin.placement.plan.partition import PartitionProblem


def upper_bound(problem: PartitionProblem) -> float:
    """Share of all traffic that could be local at most.

    A replica's local peers sit in one bin with it, so their CPU is at most what the largest bin has beside it: taking
    its peers in order of traffic per CPU, the last one in part (the fractional knapsack's optimum), bounds its own
    local traffic. Half of the sum over all replicas bounds the whole.
    """
    roomiest = max(cpu for cpu, _ in problem.capacity)
    inside = 0.0
    for kind, count in enumerate(problem.counts):
        left: float = roomiest - problem.sizes[kind][0]
        if left < 0:
            continue
        peers = [
            (pull, problem.sizes[other][0], problem.counts[other] - (other == kind))
            for other, pull in problem.pulls[kind].items()
        ]
        peers.sort(key=lambda peer: -peer[0] / max(1, peer[1]))
        for pull, size, replicas in peers:
            taken = min(replicas, left / size) if size else replicas
            inside += count * pull * taken / 2
            left -= taken * size
    return min(1.0, inside / problem.traffic) if problem.traffic else 1.0
