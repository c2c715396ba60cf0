"""Applications that say no more than `auto` are whole from their first pods on, by the Services that they name or by
their NetworkPolicies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tests.cluster.workloads import Deployment, Namespace, deployment

APPLICATIONS = 6
TIERS: tuple[dict[str, tuple[str, ...]], ...] = (
    {"web": ("cart", "mail")},
    {"cart": ("redis",), "mail": ()},
    {"redis": ()},
)
"""Of each application: the Services that the environment of each Deployment names, callers first: what a pod that has
not come yet would name is known to nobody.
"""

REPLICAS = {"web": 1, "cart": 2, "mail": 2, "redis": 2}
"""Replicas of a workload that nobody is known to talk with are kin of nobody, not of each other either."""


def named(name: str, number: int, services: Iterable[str]) -> Deployment:
    made = deployment(f"{name}-{number}", REPLICAS[name], cpu="2", annotations={"group.numakin.io": "auto"})
    (container,) = made["spec"]["template"]["spec"]["containers"]
    container["env"] = [{"name": f"{each.upper()}_ADDR", "value": f"{each}-{number}:7070"} for each in services]
    return made


def test_applications_are_on_one_node_each_before_any_packet(namespace: Namespace):
    running = 0
    for tier in TIERS:
        namespace.serve(*(f"{name}-{number}" for name in tier for number in range(APPLICATIONS)))
        namespace.deploy(*(named(name, number, tier[name]) for name in tier for number in range(APPLICATIONS)))
        running += sum(REPLICAS[name] for name in tier) * APPLICATIONS
        namespace.until_running(running)
    # Where this machine is so busy that a pod is scheduled before the extender knows what it names, it goes anywhere.
    assert len(split := divided(namespace)) <= 1, split


def divided(namespace: Namespace) -> dict[str, set[str]]:
    """The nodes of each application that is on several."""
    nodes = defaultdict(set)
    for pod in namespace.pods():
        nodes[pod["metadata"]["labels"]["app"].rpartition("-")[2]].add(pod["spec"]["nodeName"])
    return {number: names for number, names in nodes.items() if len(names) > 1}


CALLERS = {"cart": "web", "mail": "web", "redis": "cart"}


def test_they_are_by_their_network_policies_alone(namespace: Namespace):
    """Which are there before the pods, as where they are part of the application's own manifests."""
    for number in range(APPLICATIONS):
        for server, client in CALLERS.items():
            namespace.permit(f"{client}-{number}", f"{server}-{number}")
    for running, name in enumerate(REPLICAS, 1):
        namespace.deploy(*(named(name, number, ()) for number in range(APPLICATIONS)))
        namespace.until_running(sum([*REPLICAS.values()][:running]) * APPLICATIONS)
    assert len(split := divided(namespace)) <= 1, split
