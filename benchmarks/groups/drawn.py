"""The groups: applications drawn anew for each seed, of 5 to 40 pods that ask for 50 millicores to 6 CPUs each."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from benchmarks.cluster.load import Instance, Replica
from benchmarks.cluster.nodes.population import NodeSpec
from benchmarks.graphs.app import App, app

PODS = (5, 40)

MILLI = (50, 6000)
"""What a pod asks for, each magnitude as likely as another."""

REPLICAS = (1, 1, 2, 2, 3, 4)

MORE_CALLS = 0.4
"""Calls beside those that make a tree of the services, as a share of them."""


def groups(specs: Sequence[NodeSpec], fill: float, random: Random) -> list[Instance]:
    """As many as ask for this share of the CPUs that the nodes have for pods."""
    left = fill * sum(spec.allocatable_milli for spec in specs)
    drawn: list[Instance] = []
    while left > 0:
        group = Instance(f"team-{len(drawn):03}", _app(random))
        left -= sum(replica.cpu_milli for replica in group.replicas())
        drawn.append(group)
    return drawn


def milli(random: Random) -> int:
    """What a pod asks for."""
    return 50 * round(MILLI[0] * (MILLI[1] / MILLI[0]) ** random.random() / 50)


def calls(services: int, random: Random) -> list[tuple[str, str, float]]:
    pairs = [(random.randrange(at), at) for at in range(1, services)]
    pairs += [tuple(sorted(random.sample(range(services), 2))) for _ in range(int(MORE_CALLS * len(pairs)))]
    return [(f"s{a:02}", f"s{b:02}", 100 * random.lognormvariate(0, 1)) for a, b in dict.fromkeys(pairs)]


def _app(random: Random) -> App:
    pods, services = random.randint(*PODS), list[tuple[str, int, int]]()
    while pods > 0:
        replicas = min(pods, random.choice(REPLICAS))
        services.append((f"s{len(services):02}", milli(random), replicas))
        pods -= replicas
    return app("drawn", services, calls(len(services), random))


def mixed(drawn: Sequence[Instance], random: Random) -> list[list[Replica]]:
    """All pods are created before the first is scheduled, in any order. Each list is created at once."""
    replicas = [replica for group in drawn for replica in group.replicas()]
    random.shuffle(replicas)
    return [replicas]


def in_turn(drawn: Sequence[Instance], _random: Random) -> list[list[Replica]]:
    """All pods are created before the first is scheduled, one group after the other."""
    return [[replica for group in drawn for replica in group.replicas()]]


def waves(drawn: Sequence[Instance], random: Random) -> list[list[Replica]]:
    """A fifth of the groups at a time, mixed."""
    size = -(-len(drawn) // 5)
    return [mixed(drawn[at : at + size], random)[0] for at in range(0, len(drawn), size)]


def trickled(drawn: Sequence[Instance], random: Random) -> list[list[Replica]]:
    """As controllers create them: one of each Deployment, then two, then four."""
    result: list[list[Replica]] = []
    for begin, end in ((0, 1), (1, 3), (3, 7)):
        created = [replica for group in drawn for replica in group.replicas() if begin <= replica.index < end]
        random.shuffle(created)
        result.append(created)
    return result


ORDERS = {"mixed": mixed, "one after another": in_turn, "waves": waves, "trickled": trickled}
