"""Generated call graphs: cliques, stars, power laws. Same random source, same graph."""

from __future__ import annotations

from random import Random

from benchmarks.graphs.app import App, Call, Service

SIZES = (250, 500, 500, 1000, 1000, 2000)
"""Milli-CPU of members: the requests that people write most."""


def clique(random: Random) -> App:
    """Four to thirty members that all talk with each other: a Raft or Kafka cluster, a worker pool that shuffles."""
    members = [Service(f"m{number}", random.choice(SIZES)) for number in range(random.randint(4, 30))]
    calls = [
        Call(a.name, b.name, random.uniform(50, 150), 800) for number, a in enumerate(members) for b in members[:number]
    ]
    return App("clique", tuple(members), tuple(calls))


def star(random: Random) -> App:
    """A hub, such as a database or a broker, and six to forty members that talk with it alone."""
    leaves = [Service(f"leaf{number}", random.choice(SIZES)) for number in range(random.randint(6, 40))]
    calls = [Call(leave.name, "hub", 100 * random.lognormvariate(0, 0.8), 800) for leave in leaves]
    return App("star", (Service("hub", 2000), *leaves), tuple(calls))


def power_law(random: Random) -> App:
    """Twenty to eighty members; each joins with two edges to members drawn by their degree (Barabasi and Albert
    1999), weights log-normal.
    """
    members = [Service(f"s{number}", random.choice(SIZES)) for number in range(random.randint(20, 80))]
    calls = [Call("s1", "s0", 100, 800)]
    ends = [0, 1]
    for member in range(2, len(members)):
        drawn = {random.choice(ends), random.choice(ends)}
        for other in sorted(drawn):
            calls.append(Call(f"s{member}", f"s{other}", 100 * random.lognormvariate(0, 1), 800))
            ends += [member, other]
    return App("power-law", tuple(members), tuple(calls))
