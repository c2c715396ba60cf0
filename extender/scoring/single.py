"""Placement's objective over arrays: of many machines at once the single NUMA node on which a pod would be.

The simple and by far most common case: a pod that is aligned as one and finds a NUMA node that holds it. There its
score is that of its best NUMA node, by the same terms and in the same order as numakin.placement.decide.room ranks
them. Its first container settles the place; the others must fit there too, beside the exclusive CPUs of those before
them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from extender.scoring import following
from extender.scoring.predict import Wanted
from extender.state.columns.arrays import Bools, Floats, Positions
from extender.state.columns.cells import Cells
from extender.state.columns.needs import ContainerNeed, Needs
from extender.state.kins import Kins
from numakin.placement.decide.request import Request
from numakin.placement.decide.scoring import EMPTY_SHARE, KIN_SHARE, ROOM_SHARE
from numakin.placement.optin.options import Cpus, Pool

Number = Floats | np.float64
"""Of each cell, or the same for all."""

NONE: Number = np.float64(0)

DIGITS = 9
"""To which numakin.placement.decide.room rounds before it compares."""


@dataclass(frozen=True, slots=True)
class NodeScores:
    """Decisions in numbers, node by node. score: 0 to 1, as Decision has it. kin: the kin's part of the score, 0 to 1.

    sure: whether these are known to be decide()'s; elsewhere it is to be asked, and the other values mean nothing.
    following: where a group begins, what can follow the pod on its NUMA node in millicores; else None. homes: the ids
    of the NUMA nodes that decide() would choose; None where it was asked. lacking: as `devices.lacking` has it; None
    where no devices are asked for. calm: where the pod would be on no hot NUMA node, nor on one of which more would be
    used than there is: elsewhere no kin count. None: everywhere.
    """

    score: Floats
    kin: Floats
    sure: Bools
    following: Floats | None = None
    homes: Floats | None = None
    lacking: Floats | None = None
    calm: Bools | None = None

    @classmethod
    def unknown(cls, count: int) -> NodeScores:
        return cls(np.zeros(count), np.zeros(count), np.zeros(count, dtype=np.bool_))

    @property
    def rows(self) -> Floats:
        """All but the kin's part."""
        nothing = np.zeros(len(self.score))
        optional = (nothing if values is None else values for values in (self.following, self.homes))
        return np.array([self.score, self.sure, *optional, np.ones(len(nothing)) if self.calm is None else self.calm])

    @classmethod
    def of_rows(cls, rows: Floats, kin: Floats, *, begins: bool) -> NodeScores:
        """begins: whether `following` is there."""
        score, sure, following, homes, calm = rows
        return cls(score, kin, sure > 0, following if begins else None, homes, calm=calm > 0)


@dataclass(frozen=True, slots=True)
class _Terms:
    """What one container finds, of the shape of the cells."""

    fits: Bools
    crowded: Bools
    room: Floats
    empty: Floats

    def score(self, kin: Floats) -> Floats:
        return KIN_SHARE * kin + ROOM_SHARE * self.room + EMPTY_SHARE * self.empty


def covered(want: Wanted) -> bool:
    """Whether such a pod's place can be computed here."""
    first = want.whole[0]
    deciding = want.whole[:1] if want.alone_decides else want.whole
    own = {request.opt_in.cpus for request in deciding if request.wants_exclusive}
    alike = {replace(request.opt_in, cpus=first.opt_in.cpus, cpus_named=False) for request in deciding}
    stable = any(request.wants_stable for request in want.whole)
    return (
        len(own) < 2
        and not stable
        and len(alike) == 1
        and not first.opt_in.alone
        and (first.budget is None or want.alone_decides)
        and not any(request.pool is not Pool.SHARED or request.devices or _hugepages(request) for request in deciding)
    )


def needs_of(want: Wanted, kins: Kins) -> Needs | None:
    """None where such a pod's place can't be computed here."""
    rest = kins.no_kin.room_milli
    if not covered(want) or (want.opt_in.size and not rest):
        return None
    deciding = want.whole[:1] if want.alone_decides else want.whole
    leaves = want.whole[0].pod_demand.expected_milli if following.begins(want, kins) else None
    return Needs(tuple(_need(request) for request in deciding), rest, leaves)


def _need(request: Request) -> ContainerNeed:
    demand = request.reservation_demand
    own = request.demand.whole_cpus if request.wants_exclusive else 0
    cores = request.opt_in.cpus is Cpus.EXCLUSIVE_CORES
    asked = request.demand.cpu_milli if own else 0
    return ContainerNeed(demand.cpu_milli, demand.expected_milli, demand.memory, own, cores, asked, request.lasts)


def best(cells: Cells, needs: Needs, kin: Floats, planned: Bools | None = None) -> NodeScores:
    """cells, kin, planned: NUMA nodes x nodes; kin: each one's share of the kin. planned: the place that is planned for
    the pod, which goes first unless more would be used there than there is while another NUMA node will do.
    """
    first, *later = needs.containers
    rest = needs.rest
    terms = _terms(cells, first, NONE, NONE, rest)
    fits = terms.fits & ((first.memory == 0) | ((cells.account >= first.memory) & (cells.real >= first.memory)))
    ranked = (
        (-cells.hot, cells.hot.any()),
        (-terms.crowded.astype(np.float64), terms.crowded.any()),
        (kin, kin.any()),
        (terms.room, rest > 0),
        (terms.empty, True),
    )
    telling = [term for term, differs in ranked if differs]
    chosen = _chosen(fits, *(np.round(term, DIGITS) for term in telling), -cells.reservations)
    if planned is not None and planned.any():
        _take_planned(chosen, planned, fits, cells.hot > 0, terms.crowded)
    rows = chosen, np.arange(len(chosen))
    counts = ~(terms.crowded | (cells.hot > 0))
    counted = np.where(counts, kin, 0.0)
    sure, near, score, calm = fits[rows], counted[rows], terms.score(counted)[rows], counts[rows]
    if later:
        there, taken, rounded_up = cells.at(rows), NONE, NONE
        for before, need in zip(needs.containers, later, strict=False):
            taken, rounded_up = taken + _kept(there, before), rounded_up + _rounded_up(there, before)
            terms = _terms(there, need, taken, rounded_up, rest)
            sure &= terms.fits
            score += terms.score(np.where(terms.crowded, 0.0, near))
        score /= len(needs.containers)
    follow = None if needs.leaves is None else following.of_cells(cells.at(rows), needs.leaves)
    return NodeScores(score, near, sure, follow, homes=cells.numa_node[rows], calm=calm)


def _terms(cells: Cells, need: ContainerNeed, taken: Number, rounded_up: Number, rest: int) -> _Terms:
    """taken: CPUs there that the pod's other containers have for themselves by now. rounded_up: by how many millicores
    these are more than was asked for.
    """
    asked: Number | int = need.cpu_milli
    if need.own:
        asked = np.maximum(asked + rounded_up + _rounded_up(cells, need), 1000 * need.own)
    left, unused = cells.free - asked, cells.unused - np.maximum(need.expected, asked)
    spare = np.minimum(left, unused)
    usable = _can_have_exclusive(cells, need, taken) if need.own else cells.spare > taken
    room = np.clip(spare / rest, 0.0, 1.0) if rest > 0 else np.ones_like(spare)
    empty = np.maximum(0.0, np.minimum(spare, cells.whole - cells.used) / cells.whole)
    crowded = unused < np.minimum(0.0, left)
    return _Terms(usable & ((left >= 0) | (not need.own and not need.cpu_milli)), crowded, room, empty)


def _can_have_exclusive(cells: Cells, need: ContainerNeed, taken: Number) -> Bools:
    """Whether so many CPUs may become the container's own: as numakin.placement.decide.survey's `takeable` and
    `own.most` have it.
    """
    spare, wanted = cells.spare - taken, need.own
    budget = np.floor(cells.free / 1000) - taken
    size = np.maximum(1.0, cells.core)
    takes = np.ceil(wanted / size) * size if need.cores else wanted
    tight = spare <= takes
    last = cells.unowned - taken <= takes
    budget = np.where(last | (tight & (cells.shared > 0)), np.minimum(budget, spare - 1), budget)
    able = np.minimum(cells.cores - taken, np.floor(budget / size) * size) if need.cores else np.minimum(spare, budget)
    # Who still shares a NUMA node that a container before this one has nearly filled can't be computed from sums.
    able_to: Bools = (able >= wanted) & ~(tight & (taken > 0))
    return able_to


def _kept(there: Cells, need: ContainerNeed) -> Number:
    """The CPUs that a container has for itself as long as its pod lives."""
    if not need.own or not need.lasts:
        return NONE
    size = np.maximum(1.0, there.core) if need.cores else np.float64(1)
    kept: Number = np.ceil(need.own / size) * size
    return kept


def _rounded_up(there: Cells, need: ContainerNeed) -> Number:
    """Millicores by which they are more than it asks for."""
    return 1000 * _kept(there, need) - need.asked if need.lasts else NONE


def _chosen(fits: Bools, *terms: Floats) -> Positions:
    """The row of each column that comes first: by the first term, rounded, of those alike by the second, and so on."""
    left = fits
    for term in terms:
        worth = np.where(left, term, -np.inf)
        left = left & (worth == worth.max(axis=0))
    first: Positions = left.argmax(axis=0)
    return first


def _take_planned(chosen: Positions, planned: Bools, fits: Bools, hot: Bools, crowded: Bools) -> None:
    """The planned row of each column that has one, unless it is hot, or more would be used there than there is, and the
    chosen one is not. One by one: hardly more than one column has any.
    """
    for column in np.flatnonzero(planned.any(axis=0)).tolist():
        at, other = int((planned[:, column] & fits[:, column]).argmax()), int(chosen[column])
        worse = (hot[at, column] and not hot[other, column]) or (crowded[at, column] and not crowded[other, column])
        if planned[at, column] and fits[at, column] and not worse:
            chosen[column] = at


def _hugepages(request: Request) -> bool:
    return any(request.reservation_demand.hugepages.values())
