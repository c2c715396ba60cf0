"""From decisions' scores, 0 to 1, to kube-scheduler's integers from 0 to 10, of which one leads.

kube-scheduler draws lots among the nodes with the best total, and scores the next pod before it is seen where this
one went. So the scores themselves say where the pod will be: one node, the leader, is ahead of all others by so much
that kube-scheduler's own plugins hardly change it, and its room is held.

A group spread over three nodes gives none of them a kin share over a half, and a first member has no kin at all:
written out as they are, such scores would leave the upper end unused. So the kin's part, those on nodes near by
included, is taken relative to the best of the offered nodes, and where none has any, the rest has the whole range.
Where a group of unknown size begins, it is how much of it can follow (`following`).
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from extender.scoring.single import DIGITS, NodeScores
from extender.state.columns.arrays import Bools, Floats, Positions
from extender.state.columns.candidates import Candidates
from numakin.placement.decide.scoring import EMPTY_SHARE, KIN_SHARE, ROOM_SHARE

BEST = 10
"""kube-scheduler's MaxExtenderPriority."""

LEAD = 4
"""Points by which the leader is ahead at least. With weight 5 they are 200 of kube-scheduler's: more than its plugins
for resources and images set an emptier node back by.
"""

FAR = 0.25
"""What is left of a node's score where more devices would be far from the pod than elsewhere, as a share of the best
one there: however much kin it has, it comes after that.
"""

SLOT = 1.0
"""What a slot that the group's plan keeps on a node adds to its score: as much as all other terms together, so that the
node leads by more than kube-scheduler's own plugins give for spreading.
"""


@dataclass(frozen=True, slots=True)
class Points:
    """scores: integers, node by node, a byte each. leader: the place of the node that is ahead; None where no node
    would take the pod.
    """

    scores: bytes
    leader: int | None


def points(candidates: Candidates, scores: NodeScores, factors: Floats, group: str) -> Points:
    """scores, factors (by age): in the candidates' order. group: by its name one of equal nodes is chosen."""
    exact = np.round(_stretched(scores, candidates) * factors, DIGITS)
    if scores.following is not None and (most := float(scores.following[exact > 0].max(initial=0.0))):
        exact = np.round(np.where(exact > 0, scores.following / most, 0.0) * factors, DIGITS)
    if scores.lacking is not None:
        far = scores.lacking > scores.lacking[exact > 0].min(initial=np.inf)
        most = float(exact[~far].max(initial=0.0))
        exact = np.where(far, np.round(FAR * min(1.0, most) * exact, DIGITS), exact)
    best = float(exact.max(initial=0.0))
    if not best:
        return Points(bytes(len(exact)), None)
    leader = _chosen(candidates, np.flatnonzero(exact == best), group)
    # However little room is left beside its kin: there kube-scheduler's own plugins are for an empty node most.
    whole_range = float(factors[leader]) if scores.kin[leader] > 0 else 0.0
    most = max(LEAD, round(BEST * min(1.0, max(best, whole_range))))
    whole = np.rint((most - LEAD) * exact / best)
    whole[leader] = most
    return Points(whole.astype(np.uint8).tobytes(), leader)


def _stretched(scores: NodeScores, candidates: Candidates) -> Floats:
    drawn, slot = scores.kin, candidates.slot
    if candidates.nearness is not None:
        drawn = drawn + np.where(_taking(scores), candidates.nearness, 0.0)
    most = float(drawn.max(initial=0.0))
    stretched: Floats = scores.score / (ROOM_SHARE + EMPTY_SHARE)
    if most:
        stretched = scores.score + KIN_SHARE * (drawn / most - scores.kin)
    if slot is not None and scores.score[slot] > 0:
        stretched[slot] += SLOT
    return stretched


def _taking(scores: NodeScores) -> Bools:
    """Where the pod would go for kin near by."""
    takes: Bools = scores.score > 0
    return takes if scores.calm is None else takes & scores.calm


def _chosen(candidates: Candidates, equal: Positions, group: str) -> int:
    """The emptiest node as a whole, so that groups spread; of those alike always the same one for the same group, in
    whatever order they are offered.
    """
    if len(equal) > 1:
        free = np.round(candidates.free_share[equal], DIGITS)
        equal = equal[free == free.max()]
    names, seed = candidates.names, crc32(group.encode())
    chosen: int = min(equal.tolist(), key=lambda at: (crc32(names[at].encode(), seed), names[at]))
    return chosen
