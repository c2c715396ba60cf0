"""The best that a group which is cut could do, by `scipy.optimize.milp`: each member by itself, each pair of spots."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, product

import numpy as np
import scipy  # its part is loaded when it is used, which takes half a second

from extender.planning.regrouping import LEAST_GAIN, CutGroup, Spot
from extender.state.columns.free_room import FreeRoom, NumaPlace
from numakin.placement.model.cpuset import NumaSet

FAR = 0.5
"""How near the NUMA nodes of one node are to each other in these tests."""


def closeness(_node: str, a: int, b: int) -> float:
    return 1.0 if a == b else FAR


def near(a: Spot, b: Spot) -> float:
    if a.node != b.node:
        return 0.0
    pairs = [closeness(a.node, mine, theirs) for mine in a.numa_nodes for theirs in b.numa_nodes]
    return sum(pairs) / len(pairs)


def pull(cut: CutGroup, a: str, b: str) -> float:
    return cut.pulls.get((a, b), cut.pulls.get((b, a), 0.0)) if cut.pulls else 1.0


def value(cut: CutGroup, spots: Mapping[str, Spot]) -> float:
    """spots: by uid."""
    return sum(
        pull(cut, a.workload, b.workload) * near(spots[a.uid], spots[b.uid]) for a, b in combinations(cut.members, 2)
    )


def price(cut: CutGroup) -> float:
    """Of one restart."""
    total = sum(pull(cut, a.workload, b.workload) for a, b in combinations(cut.members, 2))
    return LEAST_GAIN * total / len(cut.members)


def net(cut: CutGroup, moved: Mapping[str, NumaPlace]) -> float:
    """What is left of a plan's gain once its restarts are paid for."""
    before = {member.uid: member.spot for member in cut.members}
    after = before | {uid: Spot(place.node, NumaSet.of((place.numa_node,))) for uid, place in moved.items()}
    return value(cut, after) - value(cut, before) - price(cut) * len(moved)


def optimum(cut: CutGroup, rooms: FreeRoom, seconds: float = 20.0) -> float:
    """The most that `net` can be, over all NUMA nodes of all nodes."""
    columns: list[tuple[int, Spot, bool]] = []
    for number, member in enumerate(cut.members):
        columns.append((number, member.spot, False))
        for at in range(rooms.cpu.size if member.movable else 0):
            place = rooms.place(at)
            if place.numa_node >= 0 and place.node != member.spot.node:
                columns.append((number, Spot(place.node, NumaSet.of((place.numa_node,))), True))
    gains = [-price(cut) if moves else 0.0 for _, _, moves in columns]
    pairs = [
        (a, b, weight)
        for a, b in product(range(len(columns)), repeat=2)
        if columns[a][0] < columns[b][0]
        and (weight := pull(cut, *(cut.members[columns[at][0]].workload for at in (a, b))) * near(columns[a][1], columns[b][1]))
    ]  # fmt: skip
    count, both = len(columns), len(pairs)
    rows, upper, lower = [], [], []
    for number in range(len(cut.members)):
        rows.append([float(column[0] == number) for column in columns] + [0.0] * both)
        lower.append(1.0), upper.append(1.0)
    for at in range(rooms.cpu.size):
        place = rooms.place(at)
        spot = Spot(place.node, NumaSet.of((place.numa_node,))) if place.numa_node >= 0 else None
        taken = [cut.members[n].demand.cpu_milli if moves and where == spot else 0 for n, where, moves in columns]
        rows.append([float(milli) for milli in taken] + [0.0] * both)
        lower.append(-np.inf), upper.append(max(0.0, float(rooms.cpu.flat[at])))
    for name, (milli, _, pods) in zip(rooms.nodes, rooms.left.T.tolist(), strict=True):
        there = [moves and where.node == name for _, where, moves in columns]
        taken = [cut.members[n].demand.cpu_milli if comes else 0 for (n, *_), comes in zip(columns, there, strict=True)]
        for each, left in ((taken, milli), (there, pods)):
            rows.append([float(amount) for amount in each] + [0.0] * both)
            lower.append(-np.inf), upper.append(max(0.0, left))
    for number, (a, b, _) in enumerate(pairs):
        for end in (a, b):
            row = [0.0] * (count + both)
            row[count + number], row[end] = 1.0, -1.0
            rows.append(row), lower.append(-np.inf), upper.append(0.0)
    answer = scipy.optimize.milp(
        -np.array(gains + [weight for *_, weight in pairs]),
        constraints=scipy.optimize.LinearConstraint(np.array(rows), np.array(lower), np.array(upper)),
        integrality=np.array([1] * count + [0] * both),
        bounds=scipy.optimize.Bounds(0, 1),
        options={"time_limit": seconds},
    )
    before = value(cut, {member.uid: member.spot for member in cut.members})
    return float(-answer.fun) - before
