"""The numbers that a decision is weighed by: pure functions of a few scalars, each between 0 and 1.

    kin     sum over peers of weight x closeness / sum of weights, closeness = 10 / SLIT distance (1 at home)
    room    how much of what the rest of the group (and others that gave their size) will ask for is still free
    empty   the share of the CPUs that are neither requested nor used, the newcomer counted in
    span    mean closeness among the NUMA nodes of a wide set: 1 for a single one
    score   (0.7 kin + 0.2 room + 0.1 empty) x span, and 0 where the demand does not fit or the policy does not admit it

The extender computes these same terms over arrays, for thousands of machines at once.
"""

from __future__ import annotations

KIN_SHARE, ROOM_SHARE, EMPTY_SHARE = 0.7, 0.2, 0.1
"""What kin, room and emptiness add to a score: kin lead however the others stand, the others still use the range."""


SHARES_INSTEAD = 0.1
"""What is left of a score where a pod that asks for CPUs of its own would have none: any node that gives them leads."""


def kin_share(near: float, total: float) -> float:
    """near: the sum of weight x closeness; total: the sum of weights, of peers on other machines too."""
    return near / total if total > 0 else 0.0


def room_share(left_milli: float, wanted_milli: float) -> float:
    """left_milli: free CPU beside the newcomer; wanted_milli: what is yet to come will ask for."""
    if wanted_milli <= 0 or left_milli >= wanted_milli:
        return 1.0
    return max(0.0, left_milli / wanted_milli)


def empty_share(left_milli: float, used_milli: float, capacity_milli: float) -> float:
    """Of the smaller of what is not requested and what is not used."""
    if capacity_milli <= 0:
        return 0.0
    return max(0.0, min(left_milli, capacity_milli - used_milli) / capacity_milli)


def score(kin: float, room: float, empty: float, span: float) -> float:
    """Of a set of NUMA nodes on which the demand fits."""
    return (KIN_SHARE * kin + ROOM_SHARE * room + EMPTY_SHARE * empty) * span
