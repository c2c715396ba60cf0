"""Problems small enough for a proof. Same arguments, same problem."""

from __future__ import annotations

from random import Random

from benchmarks.graphs.shapes import SIZES
from numakin.placement.plan.partition import PartitionProblem


def sample(members: int, bins: int, fill: float, seed: int) -> PartitionProblem:
    """A power-law graph (each member joins with two edges to earlier ones drawn by degree), weights log-normal."""
    random = Random(f"{members}/{bins}/{fill}/{seed}")
    sizes = [random.choice(SIZES) for _ in range(members)]
    pulls: list[dict[int, float]] = [{} for _ in range(members)]
    ends = [0]
    for member in range(1, members):
        for other in {random.choice(ends), random.choice(ends)}:
            pulls[member][other] = pulls[other][member] = random.lognormvariate(0, 1)
            ends += [member, other]
    capacity = max(int(sum(sizes) / bins / fill), *sizes)
    return PartitionProblem(
        sizes=[(size, 0) for size in sizes],
        counts=[1] * members,
        pulls=pulls,
        capacity=[(capacity, 0)] * bins,
        nearness=[[float(a == b) for b in range(bins)] for a in range(bins)],
        pinned=[[0] * bins for _ in range(members)],
    )
