"""Scores of many nodes at once: placement's objective over arrays where it is simple, decide() itself everywhere else.

The simple and by far most common case is a pod that shares CPUs, is aligned as one, and finds a single NUMA node that
holds it. There a node's score is its best NUMA node's, by the same terms and in the same order as placement.room ranks
them. Whatever is special (own CPUs, hugepages, pressure, a demand for several NUMA nodes, a planned seat) is asked of
decide().

All NUMA nodes of all machines lie in one flat array, so that machines of any shape are weighed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.cluster.predict import Wanted, predict
from extender.cluster.table import Floats
from extender.cluster.view import NodeView
from placement.decide import Kin
from placement.kinship import peers_of, pulls
from placement.scoring import EMPTY_SHARE, KIN_SHARE, ROOM_SHARE
from placement.wishes import Pool

REMEMBERED = 64
"""Decisions remembered on one view."""

DIGITS = 9
"""To which placement.room rounds before it compares."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A node's decision in numbers. score: 0 to 1, as Decision has it. kin: the kin's part of the score, 0 to 1."""

    score: float
    kin: float


NOTHING = Weighed(0.0, 0.0)


def weigh(views: Sequence[NodeView], want: Wanted, kins: Sequence[Kin]) -> list[Weighed]:
    """Each node's, in their order; kins: as each node's enforcer would be told."""
    if not _simple(want):
        return [_decided(view, want, kin) for view, kin in zip(views, kins, strict=True)]
    uid = want.pod.uid
    many = [
        at
        for at, (view, kin) in enumerate(zip(views, kins, strict=True))
        if view.table is not None
        and uid not in view.pods
        and not kin.planned
        and (kin.room_milli or not want.opt_in.size)
    ]
    found: list[Weighed | None] = [None] * len(views)
    if many:
        results = _weighed([views[at] for at in many], want, [kins[at] for at in many])
        for at, one in zip(many, results, strict=True):
            found[at] = one
    return [
        one if one is not None else _decided(view, want, kin) for one, view, kin in zip(found, views, kins, strict=True)
    ]


def _simple(want: Wanted) -> bool:
    """Whether one NUMA node's free CPU and memory settle it."""
    first = want.requests[0]
    return (
        want.alone_decides
        and first.opt_in.pool is Pool.SHARED
        and not first.opt_in.alone
        and not first.devices
        and not any(first.seat_demand.hugepages.values())
    )


def _decided(view: NodeView, want: Wanted, kin: Kin) -> Weighed:
    """By decide() itself, which replicas of one workload share."""
    if want.pod.uid in view.pods:
        return _asked(view, want, kin)
    alone = not kin.weights and want.group not in view.group_seats
    key = (
        tuple((one.name, one.opt_in, one.demand, one.pod_demand) for one in want.requests),
        tuple(kin.weights.items()),
        0.0 if alone else kin.elsewhere,
        kin.planned,
        kin.room_milli,
    )
    found: Weighed | None = view.memo.get(key)
    if found is None:
        if len(view.memo) >= REMEMBERED:
            view.memo.clear()
        found = view.memo[key] = _asked(view, want, kin)
    return found


def _asked(view: NodeView, want: Wanted, kin: Kin) -> Weighed:
    prediction = predict(view.machine, view.occupancy, want, kin)
    if not prediction.score:
        return NOTHING
    pull = pulls(view.machine, peers_of(view.occupancy, want.requests[0], kin), kin)
    sizes = {one: len(view.machine.node(one).cpus) for one in prediction.numa_nodes}
    near = sum(pull[one] * size for one, size in sizes.items()) / sum(sizes.values())
    return Weighed(prediction.score, min(near, prediction.score / KIN_SHARE))


def _weighed(views: Sequence[NodeView], want: Wanted, kins: Sequence[Kin]) -> list[Weighed | None]:
    """None for a node where no single NUMA node will do. Views without a table must not be among them."""
    tables = [view.table for view in views if view.table is not None]
    request = want.requests[0]
    need, memory = request.seat_demand.cpu_milli, request.seat_demand.memory
    sizes = np.array([len(one) for one in tables])
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    numa_node, free, whole, used, account, real, seats = np.concatenate(tables).T
    left = free - need
    fits = ((left >= 0) | (need == 0)) & ((memory == 0) | ((account >= memory) & (real >= memory)))
    kin = _kin(views, tables, want, kins)
    rest = np.repeat(np.array([near.room_milli for near in kins], dtype=np.float64), sizes)
    room = np.where((rest <= 0) | (left >= rest), 1.0, np.maximum(0.0, left / np.maximum(rest, 1.0)))
    empty = np.maximum(0.0, np.minimum(left, whole - used) / whole)
    segment = np.repeat(np.arange(len(tables)), sizes)
    order = np.lexsort((numa_node, seats, *(-np.round(one, DIGITS) for one in (empty, room, kin)), ~fits, segment))
    best = order[starts]
    score = KIN_SHARE * kin[best] + ROOM_SHARE * room[best] + EMPTY_SHARE * empty[best]
    return [
        Weighed(one, near) if ok else None
        for one, near, ok in zip(score.tolist(), kin[best].tolist(), fits[best].tolist(), strict=True)
    ]


def _kin(views: Sequence[NodeView], tables: Sequence[Floats], want: Wanted, kins: Sequence[Kin]) -> Floats:
    """The kin share of each row of the tables."""
    share = np.zeros(sum(map(len, tables)))
    group, request, start = want.group, want.requests[0], 0
    for view, rows, kin in zip(views, tables, kins, strict=True):
        stop = start + len(rows)
        if kin.weights or group in view.group_seats:
            pull = pulls(view.machine, peers_of(view.occupancy, request, kin), kin)
            share[start:stop] = [pull[int(one)] for one in rows[:, 0]]
        start = stop
    return share
