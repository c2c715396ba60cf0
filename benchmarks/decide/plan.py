"""How long a first plan takes on a large machine."""

from __future__ import annotations

import time
from random import Random

from benchmarks.decide.situation import machine
from numakin.placement.model.demand import Demand
from numakin.placement.plan.planner import AT_ONCE, make_plan
from numakin.placement.plan.problem import Workload
from numakin.placement.state.occupancy import Occupancy

FILL = 0.7


def seconds(seed: int, numa_nodes: int = 64, members: int = 500, effort: int = AT_ONCE) -> float:
    """CPU seconds. Workloads of two replicas; each talks with two that came before it, drawn by what those have."""
    random, there = Random(seed), machine(numa_nodes)
    names = [f"shop/Deployment/app-{number}" for number in range(members // 2)]
    milli = int(FILL * 1000 * len(there.cpus) / members)
    workloads = [Workload(name, Demand(milli, 1 << 30, 1 << 30), 2) for name in names]
    weights: dict[tuple[str, str], float] = {}
    ends = [0]
    for at in range(1, len(names)):
        for other in {random.choice(ends), random.choice(ends)}:
            weights[names[other], names[at]] = random.lognormvariate(0, 1)
            ends += [at, other]
    begin = time.process_time()
    make_plan(there, Occupancy().on(there), {}, workloads, weights, effort=effort)
    return time.process_time() - begin
