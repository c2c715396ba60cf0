"""What an earlier life of the same services has taught: flows, seen by probes that are on for a tenth of the time,
through `numakin.placement.traffic.graph`.

Nothing else reaches the planner: not the call graph, not which services belong together. The flows are those between
single replicas, each pair's share a little uneven, the mix of requests not quite today's, and every window's counts
are what a sample of its messages gives, scaled up as the collector does.
"""

from __future__ import annotations

from math import sqrt
from random import Random

from benchmarks.quality.scenario import Pair, Scenario
from numakin.placement.traffic.graph import Flow, TrafficTally

WINDOWS, WINDOW_S = 10, 60.0
DUTY_CYCLE = 0.1

DRIFT = 0.3
"""Sigma of the log-normal factor between an edge's traffic then and now: two thirds of the edges are within 1/1.35 to
1.35 of what they were.
"""

UNEVEN = 0.2
"""Sigma of the log-normal factor between the replicas of one workload."""


def learned(then: Scenario, seed: int = 0) -> dict[Pair, float]:
    """Weights between workloads, as the graph has them after that life. then: the services with the replicas that
    they had.
    """
    random = Random(f"{then.name}/{seed}")
    replicas = {service.name: service.replicas for service in then.services if service.replicas}
    owners = {f"{name}#{index}": name for name, count in replicas.items() for index in range(count)}
    pods = {name: [f"{name}#{index}" for index in range(count)] for name, count in replicas.items()}
    rates = []
    for (a, b), rate in then.traffic.items():
        pairs = [(x, y) for x in pods.get(a, ()) for y in pods.get(b, ()) if x < y or a != b]
        drift = random.lognormvariate(0, DRIFT)
        for x, y in pairs:
            share = drift * random.lognormvariate(0, UNEVEN) / len(pairs)
            rates.append((x, y, rate.messages * share, rate.bytes / rate.messages))
    tally = TrafficTally()
    for window in range(WINDOWS):
        flows = []
        for x, y, messages, size in rates:
            for source, target in ((x, y), (y, x)):
                seen = sampled(messages / 2 * WINDOW_S * DUTY_CYCLE, random)
                if seen:
                    flows.append(Flow(source, target, "tcp", int(seen * size), seen))
        tally.add(flows, now=window * WINDOW_S, scale=1 / DUTY_CYCLE)
    return tally.graph((WINDOWS - 1) * WINDOW_S).rolled_up(owners).weights()


def sampled(expected: float, random: Random) -> int:
    """A count whose mean and spread are those of a Poisson process."""
    return max(0, round(random.gauss(expected, sqrt(expected))))
