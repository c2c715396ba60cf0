"""What it costs by itself that a pool of CPUs is divided in two: pieces of work of one length come at random moments.
Each waits for a free CPU of its pool.
"""

from __future__ import annotations

import heapq
from random import Random

PIECES = 200_000
CPUS = (1, 2, 4, 8, 16, 32, 64)
LOADS = (0.3, 0.5, 0.7, 0.9)


def p99(cpus: int, load: float, seed: int = 1) -> float:
    """Of the time from coming to done, in lengths of a piece."""
    random, now = Random(seed), 0.0
    free, took = [0.0] * cpus, list[float]()
    for _ in range(PIECES):
        now += random.expovariate(load * cpus)
        done = max(now, heapq.heappop(free)) + 1
        heapq.heappush(free, done)
        took.append(done - now)
    return sorted(took)[int(0.99 * PIECES)]


def table() -> str:
    head = f"{'CPUs of a NUMA node':>20}" + "".join(f"{load:>10.0%}" for load in LOADS)
    rows = (
        f"{cpus:>20}" + "".join(f"{p99(2 * cpus, load) / p99(cpus, load):>10.2f}" for load in LOADS) for cpus in CPUS
    )
    return "\n".join(("1 / p99 of pods that keep to one NUMA node of two, over what they have on both", head, *rows))
