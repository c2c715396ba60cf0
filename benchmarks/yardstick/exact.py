"""The optimum, by mixed-integer programming (HiGHS through scipy), and the bound that was proven when time ran out.

Quadratic assignment with capacities, linearised (Adams and Johnson's simple form suffices, since weights are not
negative): x is which replica is in which bin, y for each pair that talks and each bin is at most both x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded when they are used, which takes half a second

from numakin.placement.plan.partition import PartitionProblem


@dataclass(frozen=True, slots=True)
class Optimum:
    """Shares of all traffic. proven: whether `locality` is the optimum; else it is the best found (0: none), and
    `bound` what it can't exceed.
    """

    locality: float
    bound: float
    proven: bool


def optimum(problem: PartitionProblem, time_limit: float) -> Optimum:
    """time_limit: seconds."""
    members = [kind for kind, count in enumerate(problem.counts) for _ in range(count)]
    pairs = [
        (i, j, pull)
        for i, kind in enumerate(members)
        for j in range(i)
        if (pull := problem.pulls[kind].get(members[j], 0.0)) > 0
    ]
    if not pairs:
        return Optimum(1.0, 1.0, proven=True)
    traffic = sum(pull for *_, pull in pairs)
    bins = problem.bins
    reservations = len(members) * bins
    rows, width = _Rows(), reservations + len(pairs) * bins
    for i in range(len(members)):
        rows.add([(i * bins + b, 1.0) for b in range(bins)], 1, 1)
    for b, capacity in enumerate(problem.capacity):
        for dimension in (0, 1):
            scale = max(1, capacity[dimension])
            rows.add(
                [(i * bins + b, problem.sizes[kind][dimension] / scale) for i, kind in enumerate(members)],
                -np.inf,
                capacity[dimension] / scale,
            )
    for number, (i, j, _) in enumerate(pairs):
        for b in range(bins):
            y = reservations + number * bins + b
            rows.add([(y, 1.0), (i * bins + b, -1.0)], -np.inf, 0)
            rows.add([(y, 1.0), (j * bins + b, -1.0)], -np.inf, 0)
    cost = np.zeros(width)
    for number, (*_, pull) in enumerate(pairs):
        cost[reservations + number * bins : reservations + (number + 1) * bins] = -pull / traffic
    integer = np.zeros(width)
    integer[:reservations] = 1
    upper = np.ones(width)
    if len(set(problem.capacity)) == 1:
        # Equal bins are interchangeable: the i-th replica needs none beyond the i-th.
        for i in range(min(len(members), bins)):
            upper[i * bins + i + 1 : (i + 1) * bins] = 0
    solution = scipy.optimize.milp(
        cost,
        integrality=integer,
        bounds=scipy.optimize.Bounds(np.zeros(width), upper),
        constraints=rows.constraint(width),
        options={"time_limit": time_limit, "mip_rel_gap": 1e-6},
    )
    locality = -float(solution.fun) if solution.fun is not None else 0.0
    bound = -float(solution.mip_dual_bound) if solution.mip_dual_bound is not None else 1.0
    return Optimum(locality, min(1.0, bound), proven=solution.status == 0)


class _Rows:
    """A sparse constraint matrix, row by row."""

    def __init__(self) -> None:
        self._at: list[tuple[int, int]] = []
        self._value: list[float] = []
        self._low: list[float] = []
        self._high: list[float] = []

    def add(self, entries: list[tuple[int, float]], low: float, high: float) -> None:
        for column, value in entries:
            self._at.append((len(self._low), column))
            self._value.append(value)
        self._low.append(low)
        self._high.append(high)

    def constraint(self, width: int) -> scipy.optimize.LinearConstraint:
        rows, columns = zip(*self._at, strict=True)
        matrix = scipy.sparse.coo_array((self._value, (rows, columns)), shape=(len(self._low), width)).tocsr()
        return scipy.optimize.LinearConstraint(matrix, self._low, self._high)
