"""Groups that are cut over nodes, brought together again: which of their pods would have to come anew, and where.

A running pod changes its node only by being evicted, so each step costs a restart, and has to bring home more than that
is worth (`LEAST_GAIN`). What a place is worth to a group is what its members exchange, each pair by how near they are:
1 on one NUMA node, 10 / SLIT distance on one node, 0 over nodes, as decide() weighs kin. Of a group of which no traffic
is known all pairs count alike.

The room of a step is free while the pod that leaves is still where it is: nothing is counted on that has yet to end.
So the steps may be carried out in any order, and an eviction that is refused costs that step alone; but two groups that
could only change places stay as they are, and a group that needs the room of another is found in a later search, once
that one is together.

Near-exact: from where the members are, and from having gathered on each of the likeliest NUMA nodes and nodes, single
members are moved, or left where they are, as long as that gains. `tests/extender/planning/test_regrouping.py` compares
it with the optimum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from statistics import fmean
from typing import NamedTuple

import numpy as np

from extender.planning.group_packing import LEAST
from extender.state.admission import ANYWHERE, NodeSet
from extender.state.columns.arrays import Bools, Floats, Positions
from extender.state.columns.free_room import FreeRoom, NumaPlace
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.plan.problem import CpuAndMemory

LEAST_GAIN = 0.5
"""What each restart has to bring home, in average members' parts of the group's traffic. Of two equal halves each
member that joins the other brings home 1, a single stray 2.
"""

MOST_MEMBERS = 500
"""Pods of a group that is planned."""

MOST_GROUPS = 200
"""Groups that are planned in one search, those with most pods."""

MOST_BINS = 32
"""NUMA nodes that one plan considers."""

HOME_NODES, OTHER_NODES = 8, 4
"""Nodes with members that a plan considers, those with most; and others: the NUMA nodes that hold the whole group with
least left over, and the nodes with most room.
"""

MOST_MOVES = 6_000
"""Trials of moving one pod in a plan's search, some 0.1 ms each."""

EPSILON = 1e-9

Closeness = Callable[[str, int, int], float]
"""Of two NUMA nodes of a node: 1 at home."""

PairPulls = Mapping[tuple[str, str], float]
"""What one pod of each of two workloads exchange, by both in either order."""


class Spot(NamedTuple):
    """Where a pod is: NUMA nodes of a node."""

    node: str
    numa_nodes: NumaSet


@dataclass(frozen=True, slots=True)
class CutMember:
    """A pod of a group. movable: another would be created for it, were it evicted, on any of the nodes of where.
    overhead: what it takes of its node beside its demand.
    """

    uid: str
    namespace: str
    name: str
    workload: str
    spot: Spot
    demand: Demand
    movable: bool
    where: NodeSet = ANYWHERE
    overhead: CpuAndMemory = (0, 0)


@dataclass(frozen=True, slots=True)
class PlanBasis:
    """What a plan was made for: it is carried out only while all of it is as it was, since what is left of a plan for
    other places leads the other way. places: the node of each member, by pod uid. open: those of these nodes that took
    new pods.
    """

    places: Mapping[str, str] = field(hash=False)
    open: frozenset[str]

    @classmethod
    def of(cls, places: Mapping[str, str], closed: Collection[str]) -> PlanBasis:
        return cls(places, frozenset(node for node in places.values() if node not in closed))


@dataclass(frozen=True, slots=True)
class CutGroup:
    """A group whose members are on several nodes. basis: of its plan. pulls: empty where nothing is known.
    barred: where pods of a workload can't go, though there seems to be room.
    """

    group: str
    members: tuple[CutMember, ...]
    basis: PlanBasis
    pulls: PairPulls = field(default_factory=dict, hash=False)
    barred: frozenset[tuple[str, NumaPlace]] = frozenset()


@dataclass(frozen=True, slots=True)
class RegroupStep:
    """One pod to evict, and where the one in its place is to come. gain: of the group's traffic, what this brings
    nearer once the steps before it are done. overhead: as `CutMember` has it.
    """

    uid: str
    namespace: str
    name: str
    workload: str
    origin: Spot
    to: NumaPlace
    demand: Demand
    gain: float
    overhead: CpuAndMemory = (0, 0)


@dataclass(frozen=True, slots=True)
class Regrouping:
    """A group's plan. steps: in the order to carry out, the one that gains most first. gain: of the group's traffic,
    by nearness. locality, reached: the share of it inside one NUMA node, now and afterwards. before, after: members by
    node.
    """

    group: str
    basis: PlanBasis
    steps: tuple[RegroupStep, ...]
    gain: float
    locality: float
    reached: float
    before: Mapping[str, int] = field(hash=False)
    after: Mapping[str, int] = field(hash=False)

    @property
    def restarts(self) -> int:
        return len(self.steps)

    @property
    def whole(self) -> bool:
        """Whether all are on one node afterwards."""
        return len(self.after) == 1


class WhyApart(StrEnum):
    """Why a group that is cut has no plan."""

    SETTLING = "its pods are coming or going, or not all of their nodes report"
    FIXED = "none of its pods may go elsewhere: they say themselves where they run, or would not be created anew there"
    NO_PLACE = "no node with room brings so much more of it together that it is worth the restarts"
    TOO_LARGE = f"it has more than {MOST_MEMBERS} pods"
    TOO_MANY = f"more than {MOST_GROUPS} groups are cut, and these have most pods"


@dataclass(frozen=True, slots=True)
class Apart:
    """A group that is cut and stays so. before: members by node."""

    before: Mapping[str, int] = field(hash=False)
    why: WhyApart


@dataclass(frozen=True, slots=True)
class Regroupings:
    """What a search has found, by group. at: when it began, seconds of the cluster's clock; None: there was none yet.
    apart: the groups over several nodes that have no plan.
    """

    at: float | None = None
    plans: Mapping[str, Regrouping] = field(default_factory=dict, hash=False)
    apart: Mapping[str, Apart] = field(default_factory=dict, hash=False)

    def without(self, groups: Collection[str]) -> Regroupings:
        """These have no plan: they have changed since."""
        settling = {group: Apart(self.plans[group].before, WhyApart.SETTLING) for group in groups}
        kept = {group: plan for group, plan in self.plans.items() if group not in settling}
        return Regroupings(self.at, kept, dict(sorted({**self.apart, **settling}.items())))


NOT_SEARCHED = Regroupings()


def plan_all(
    cuts: Iterable[CutGroup], rooms: FreeRoom, closeness: Closeness, pause: Callable[[], None] = lambda: None
) -> dict[str, Regrouping]:
    """By group, of those that have a plan: no two take the same room, and who gains most by each restart has the first
    choice. rooms: is taken from. pause: called after each piece of work, of some milliseconds.
    """
    rooms.bound()
    listed = {cut.group: cut for cut in cuts}
    found: dict[str, Regrouping] = {}
    for cut in listed.values():
        if (first := plan(cut, rooms, closeness, pause)) is not None:
            found[cut.group] = first
    plans: dict[str, Regrouping] = {}
    for group in sorted(found, key=lambda group: (-_by_restart(found[group]), group)):
        chosen: Regrouping | None = found[group]
        if not _take(found[group], rooms):
            chosen = plan(listed[group], rooms, closeness, pause)
            if chosen is not None:
                _take(chosen, rooms)
        if chosen is not None:
            plans[group] = chosen
    return plans


def plan(
    cut: CutGroup, rooms: FreeRoom, closeness: Closeness, pause: Callable[[], None] = lambda: None
) -> Regrouping | None:
    """None where nothing is worth the restarts that it takes. Same arguments, same plan. pause: as for `plan_all`."""
    if len({member.spot.node for member in cut.members}) < 2 or len(cut.members) > MOST_MEMBERS:
        return None
    board = _Board(cut, rooms, closeness)
    best = board.best(pause)
    return board.told(best) if best is not None else None


def _by_restart(found: Regrouping) -> float:
    """What each restart gains, in average members' parts."""
    return found.gain * sum(found.before.values()) / found.restarts


def _take(found: Regrouping, rooms: FreeRoom) -> bool:
    """Takes its room; False, and nothing, where some of it is taken already."""
    index = {name: at for at, name in enumerate(rooms.nodes)}
    asked: dict[tuple[int, int], Floats] = {}
    beside: dict[tuple[int, int], Floats] = {}
    of_nodes: dict[int, Floats] = {}
    for step in found.steps:
        node = index[step.to.node]
        (numa_node,) = np.flatnonzero(rooms.numa_node[node] == step.to.numa_node).tolist()
        asks, more = np.array((step.demand.expected_milli, step.demand.memory, 1)), np.array((*step.overhead, 0))
        asked[node, numa_node] = asked.get((node, numa_node), 0) + asks
        beside[node, numa_node] = beside.get((node, numa_node), 0) + more
        of_nodes[node] = of_nodes.get(node, 0) + asks + more
    lacking = any(rooms.cpu[at] < asks[0] or rooms.memory[at] < asks[1] for at, asks in asked.items())
    if lacking or any((rooms.left[:, node] < asks).any() for node, asks in of_nodes.items()):
        return False
    for (node, numa_node), asks in asked.items():
        cpu, memory, _ = beside[node, numa_node].tolist()
        rooms.take(node, numa_node, asks.tolist(), overhead=(cpu, memory))
    return True


class _Kind(NamedTuple):
    """Members that are alike: workload's index, demand, where they are, what their node gives them, with what they take
    beside their demand, and where they may go.
    """

    workload: int
    cpu: int
    memory: int
    origin: int
    given_cpu: int
    given_memory: int
    where: NodeSet


@dataclass(slots=True)
class _Draft:
    """Where movable members would be: counts by kind and spot. here: members by workload and spot, all of them. drawn:
    how much one of each workload is drawn to each spot. cpu, memory: what is free at each. left: three rows, what
    kube-scheduler has left to give on each node.
    """

    where: dict[tuple[int, int], int]
    here: Floats
    drawn: Floats
    cpu: Floats
    memory: Floats
    left: Floats
    moves: int = 0

    def copy(self) -> _Draft:
        arrays = self.here.copy(), self.drawn.copy(), self.cpu.copy(), self.memory.copy(), self.left.copy()
        return _Draft(dict(self.where), *arrays, self.moves)


class _Board:
    """One group's problem. Spots are where members are, then the NUMA nodes with room."""

    def __init__(self, cut: CutGroup, rooms: FreeRoom, closeness: Closeness) -> None:
        self._cut = cut
        self._workloads = sorted({member.workload for member in cut.members})
        index = {name: at for at, name in enumerate(self._workloads)}
        bins = _bins(cut, rooms)
        single = [Spot(place.node, NumaSet.of((place.numa_node,))) for place in bins]
        self._spots = list(dict.fromkeys([*single, *(member.spot for member in cut.members)]))
        at = {spot: number for number, spot in enumerate(self._spots)}
        self._bins = len(single)
        nodes = {name: number for number, name in enumerate(dict.fromkeys(spot.node for spot in self._spots))}
        self._nodes = np.array([nodes[spot.node] for spot in self._spots])
        self._near = self._nearnesses(closeness)
        self._pull = self._pulls(index)
        self._kinds: list[_Kind] = []
        self._pods: list[list[CutMember]] = []
        here = np.zeros((len(index), len(self._spots)))
        kinds: dict[_Kind, int] = {}
        for member in sorted(cut.members, key=lambda member: member.uid):
            origin = at[member.spot]
            here[index[member.workload], origin] += 1
            if member.movable:
                cpu, memory = member.demand.expected_milli, member.demand.memory
                given = cpu + member.overhead[0], memory + member.overhead[1]
                kind = _Kind(index[member.workload], cpu, memory, origin, *given, member.where)
                if kind not in kinds:
                    kinds[kind] = len(kinds)
                    self._kinds.append(kind)
                    self._pods.append([])
                self._pods[kinds[kind]].append(member)
        where = {(kind, self._kinds[kind].origin): len(pods) for kind, pods in enumerate(self._pods)}
        self._start = _Draft(where, here, self._pull @ here @ self._near, *self._room(bins, nodes, rooms))
        counts = here.sum(axis=1)
        pairs = float(counts @ self._pull @ counts) - float(np.diag(self._pull) @ counts)
        self._total = pairs / 2
        self._price = LEAST_GAIN * self._total / max(1, len(cut.members))
        self._barred = np.zeros((len(self._kinds), self._bins), dtype=np.bool_)
        for number, kind in enumerate(self._kinds):
            name = self._workloads[kind.workload]
            self._barred[number] = [(name, place) in cut.barred or not kind.where.has(place.node) for place in bins]
            self._barred[number] |= self._nodes[: self._bins] == self._nodes[kind.origin]

    def best(self, pause: Callable[[], None]) -> _Draft | None:
        """The one with the most left of its gain after its restarts are paid for; None where nothing is."""
        if not self._total or not self._kinds or not self._bins:
            return None
        best, net = None, EPSILON * self._total
        for begin in self._begins():
            self._climb(begin)
            if (worth := self._value(begin) - self._value(self._start) - self._cost(begin)) > net:
                best, net = begin, worth
            pause()
            if begin.moves > MOST_MOVES:
                break
        return best

    def told(self, draft: _Draft) -> Regrouping:
        """As others read it."""
        steps = tuple(self._steps(draft))
        moved = {step.uid: step.to.node for step in steps}
        before = Counter(member.spot.node for member in self._cut.members)
        after = Counter(moved.get(member.uid, member.spot.node) for member in self._cut.members)
        gain = (self._value(draft) - self._value(self._start)) / self._total
        local = self._nearnesses(lambda _node, a, b: float(a == b))
        now, then = (self._value(each, local) / self._total for each in (self._start, draft))
        return Regrouping(self._cut.group, self._cut.basis, steps, gain, now, then, dict(before), dict(after))

    def _begins(self) -> Iterable[_Draft]:
        """As it is; all gathered on one NUMA node, and on one node, for each that there is."""
        yield self._start.copy()
        moves = 0
        bins = np.arange(self._bins)
        nodes = dict.fromkeys(self._nodes[: self._bins].tolist())
        targets = [bins == at for at in bins.tolist()] + [self._nodes[: self._bins] == node for node in nodes]
        for target in targets:
            draft = self._start.copy()
            draft.moves = moves
            self._gather(draft, target)
            yield draft
            moves = draft.moves

    def _gather(self, draft: _Draft, target: Bools) -> None:
        """All that fit there, those that are drawn most first."""
        nodes = {*self._nodes[: self._bins][target].tolist()}
        while True:
            choice = self._choice(draft, target, lambda spot: int(self._nodes[spot]) in nodes)
            if choice is None:
                return
            self._move(draft, *choice[1:])

    def _climb(self, draft: _Draft) -> None:
        """One member at a time, back to where it is now too, as long as that is worth it."""
        every = np.ones(self._bins, dtype=np.bool_)
        while draft.moves <= MOST_MOVES:
            there = self._choice(draft, every, lambda _: False)
            back = self._way_back(draft)
            choice = max(filter(None, (there, back)), default=None)
            if choice is None or choice[0] <= EPSILON * self._total:
                return
            self._move(draft, *choice[1:])

    def _choice(
        self, draft: _Draft, target: Bools, settled: Callable[[int], bool]
    ) -> tuple[float, int, int, int] | None:
        """What gains most: net of the restart, the kind, from where, and to which bin. settled: spots that nothing
        leaves.
        """
        pairs = [(kind, spot) for (kind, spot) in draft.where if not settled(spot)]
        if not pairs:
            return None
        numbers, spots = np.array(pairs).T
        kinds = np.array([self._kinds[kind][:-1] for kind in numbers.tolist()])
        workloads, origins = kinds[:, 0].astype(np.intp), kinds[:, 3].astype(np.intp)
        gains = self._gains(draft, workloads, spots)[:, : self._bins]
        gains = gains - np.where(spots == origins, self._price, 0.0)[:, None]
        cpu, memory = draft.cpu[: self._bins], draft.memory[: self._bins]
        fits = (cpu >= np.maximum(LEAST, kinds[:, 1])[:, None]) & (memory >= kinds[:, 2][:, None])
        nodes = self._nodes[: self._bins]
        left = draft.left[:, nodes]
        given = (left[0] >= kinds[:, 4][:, None]) & (left[1] >= kinds[:, 5][:, None]) & (left[2] >= 1)
        fits &= given | (nodes == self._nodes[spots][:, None])  # who is counted there already asks for no more
        fits &= target & ~self._barred[numbers] & (np.arange(self._bins) != spots[:, None])
        gains = np.where(fits, gains, -np.inf)
        at = int(gains.argmax())
        row, bin_ = divmod(at, self._bins)
        if not np.isfinite(gains[row, bin_]):
            return None
        return float(gains[row, bin_]), pairs[row][0], pairs[row][1], bin_

    def _way_back(self, draft: _Draft) -> tuple[float, int, int, int] | None:
        """What loses least by staying where it was: net of the restart, the kind, from where, and to which bin."""
        moved = [(kind, spot) for kind, spot in draft.where if spot != self._kinds[kind].origin]
        if not moved:
            return None
        numbers, spots = np.array(moved).T
        workloads = np.array([self._kinds[kind].workload for kind in numbers.tolist()])
        origins = np.array([self._kinds[kind].origin for kind in numbers.tolist()])
        gains = self._gains(draft, workloads, spots)[np.arange(len(moved)), origins] + self._price
        row = int(gains.argmax())
        return float(gains[row]), moved[row][0], moved[row][1], int(origins[row])

    def _gains(self, draft: _Draft, workloads: Positions, spots: Positions) -> Floats:
        """What one member of each gains by going from each of these spots to every spot."""
        drawn, own = draft.drawn, self._pull[workloads, workloads][:, None]
        near = self._near[spots]
        stays = drawn[workloads, spots][:, None] - own * near[np.arange(len(spots)), spots][:, None]
        gains: Floats = drawn[workloads] - own * near - stays
        return gains

    def _move(self, draft: _Draft, kind: int, spot: int, to: int) -> None:
        alike = self._kinds[kind]
        left = draft.where[kind, spot] - 1
        if left:
            draft.where[kind, spot] = left
        else:
            del draft.where[kind, spot]
        draft.where[kind, to] = draft.where.get((kind, to), 0) + 1
        draft.here[alike.workload, spot] -= 1
        draft.here[alike.workload, to] += 1
        draft.drawn += np.outer(self._pull[:, alike.workload], self._near[to] - self._near[spot])
        # Who leaves its spot frees nothing: its room is free only once it has ended.
        for at, sign in ((spot, 1), (to, -1)):
            if at != alike.origin:
                draft.cpu[at] += sign * alike.cpu
                draft.memory[at] += sign * alike.memory
                draft.left[:, self._nodes[at]] += sign * np.array((alike.given_cpu, alike.given_memory, 1))
        draft.moves += 1

    def _value(self, draft: _Draft, near: Floats | None = None) -> float:
        near = self._near if near is None else near
        pairs = float((draft.here * (self._pull @ draft.here @ near)).sum())
        own = float((np.diag(self._pull)[:, None] * draft.here * np.diag(near)).sum())
        return (pairs - own) / 2

    def _cost(self, draft: _Draft) -> float:
        return self._price * sum(
            count for (kind, spot), count in draft.where.items() if spot != self._kinds[kind].origin
        )

    def _steps(self, draft: _Draft) -> Iterable[RegroupStep]:
        """The one that gains most first."""
        left = {pair: count for pair, count in draft.where.items() if pair[1] != self._kinds[pair[0]].origin}
        pods = [list(alike) for alike in self._pods]
        now = self._start.copy()
        while left:
            ways = [(self._gain_of(now, kind, to), -kind, -to, kind, to) for kind, to in left]
            gain, _, _, kind, to = max(ways)
            self._move(now, kind, self._kinds[kind].origin, to)
            left[kind, to] -= 1
            if not left[kind, to]:
                del left[kind, to]
            member = pods[kind].pop(0)
            spot = self._spots[to]
            yield RegroupStep(
                member.uid, member.namespace, member.name, member.workload, member.spot,
                NumaPlace(spot.node, spot.numa_nodes.lowest), member.demand, gain / self._total, member.overhead,
            )  # fmt: skip

    def _gain_of(self, draft: _Draft, kind: int, to: int) -> float:
        alike = self._kinds[kind]
        return float(self._gains(draft, np.array([alike.workload]), np.array([alike.origin]))[0, to])

    def _nearnesses(self, closeness: Closeness) -> Floats:
        """Of each pair of spots: nothing over nodes; of pods over several NUMA nodes the mean over these."""
        near = np.zeros((len(self._spots), len(self._spots)))
        for node in range(self._nodes.max(initial=-1) + 1):
            for a, b in product(np.flatnonzero(self._nodes == node).tolist(), repeat=2):
                name, mine, theirs = self._spots[a].node, self._spots[a].numa_nodes, self._spots[b].numa_nodes
                near[a, b] = fmean(closeness(name, one, other) for one in mine for other in theirs)
        return near

    def _pulls(self, index: Mapping[str, int]) -> Floats:
        if not self._cut.pulls:
            return np.ones((len(index), len(index)))
        pull = np.zeros((len(index), len(index)))
        for (a, b), weight in self._cut.pulls.items():
            if a in index and b in index:
                pull[index[a], index[b]] = pull[index[b], index[a]] = weight
        return pull

    def _room(
        self, bins: Sequence[NumaPlace], nodes: Collection[str], rooms: FreeRoom
    ) -> tuple[Floats, Floats, Floats]:
        """CPU and memory that is free in each spot, and what each node has left to give; none where no pod may go."""
        cpu, memory, left = np.zeros(len(self._spots)), np.zeros(len(self._spots)), np.zeros((3, len(nodes)))
        index = {name: at for at, name in enumerate(rooms.nodes)}
        for number, place in enumerate(bins):
            node = index[place.node]
            (at,) = np.flatnonzero(rooms.numa_node[node] == place.numa_node)
            cpu[number], memory[number] = rooms.cpu[node, at], rooms.memory[node, at]
        for number, name in enumerate(nodes):
            if name in index:
                left[:, number] = rooms.left[:, index[name]]
        return cpu, memory, left


def _bins(cut: CutGroup, rooms: FreeRoom) -> list[NumaPlace]:
    """The NUMA nodes to consider."""
    index = {name: at for at, name in enumerate(rooms.nodes)}
    here = Counter(member.spot.node for member in cut.members)
    homes = [index[node] for node in sorted(here, key=lambda node: (-here[node], node)) if node in index][:HOME_NODES]
    movable = [member.demand for member in cut.members if member.movable]
    wheres = {member.where for member in cut.members if member.movable}
    open_ = np.array([any(where.has(node) for where in wheres) for node in rooms.nodes], dtype=np.bool_)
    need, memory = sum(demand.expected_milli for demand in movable), sum(demand.memory for demand in movable)
    holds = (rooms.cpu >= need) & (rooms.memory >= memory) & (open_ & (rooms.left[2] >= len(movable)))[:, None]
    holding = np.where(holds, rooms.cpu, np.inf).min(axis=1, initial=np.inf)
    tightest = [at for at in np.argsort(holding, kind="stable").tolist()[:OTHER_NODES] if np.isfinite(holding[at])]
    room = np.where(open_ & (rooms.left[2] >= 1), np.maximum(rooms.cpu, 0.0).sum(axis=1), -1.0)
    roomiest = np.argsort(-room, kind="stable").tolist()[:OTHER_NODES]
    bins: list[NumaPlace] = []
    for at in dict.fromkeys([*homes, *tightest, *roomiest]):
        there = [NumaPlace(rooms.nodes[at], int(numa_node)) for numa_node in rooms.numa_node[at] if numa_node >= 0]
        if len(bins) + len(there) > MOST_BINS:
            break
        bins += there
    return bins
