"""Which running members to move, within a budget: the few moves that bring the most traffic home.

The best step at a time, by its gain for each member that it moves: into free room, or two members that change places.
One that gains less than `pays` of all traffic for each ends it. Then one may come to where several have to leave for
its sake. What `whole` looks for beyond that is gone to in steps of several members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from math import inf

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.plan.annealing import cooled
from numakin.placement.plan.chains import Chain, ChainMove, Ways, chains, first_that_holds, making_room
from numakin.placement.plan.partition import EPSILON, PartitionState
from numakin.placement.plan.problem import PlacedMembers, Weights, Workload, placed_members, problem_of
from numakin.placement.plan.search import COLDEST, best_step, climb
from numakin.placement.plan.worth import PAYS
from numakin.placement.state.occupancy import Occupancy

MOST_RENAMINGS = 60
"""Pairs of NUMA nodes whose parts are tried to change names for one whole: some 0.05 s of one CPU on 64 NUMA nodes with
519 members.
"""


@dataclass(frozen=True, slots=True)
class Relocation:
    """A reservation's way from one NUMA node to another, or from one of its cache domains to another. gain: share of
    all traffic that its step brings home. whole: its step is one towards a whole that pays, and need not pay by itself.
    """

    reservation: str
    source: NumaSet
    target: NumaSet
    gain: float
    source_domain: CpuSet = CpuSet()
    target_domain: CpuSet = CpuSet()
    whole: bool = False


Homes = Mapping[str, int]
"""Where members are to go: NUMA nodes' ids by reservation key."""

Step = tuple[Relocation, ...]
"""Made at once or not at all."""


def ways_in(step: Step) -> Ways:
    return frozenset((way.reservation, way.target, way.target_domain) for way in step)


class Board:
    """The members of a machine on its NUMA nodes, to be moved step by step."""

    def __init__(
        self,
        machine: Machine,
        workloads: Sequence[Workload],
        there: PlacedMembers,
        movable: Collection[str],
        state: PartitionState,
    ) -> None:
        self._state = state
        self._nodes = [NumaSet.of((node,)) for node in machine.cpu_nodes]
        self._keys = {
            (kind, bin_): sorted(key for key in keys if key in movable)
            for kind, workload in enumerate(workloads)
            for bin_, node in enumerate(machine.cpu_nodes)
            if (keys := there.keys.get((workload.name, node)))
        }

    @classmethod
    def of(
        cls,
        machine: Machine,
        occupancy: Occupancy,
        members: Mapping[str, str],
        workloads: Sequence[Workload],
        weights: Weights,
        *,
        movable: Collection[str],
    ) -> Board:
        """members: the workload of each reservation key. workloads: those of the members, by what one replica asks for;
        more replicas than there are count for nothing here. movable: keys of the reservations that may be moved.
        """
        ordered = sorted(workloads, key=lambda workload: workload.name)
        there = placed_members(occupancy, members)
        counts = there.counts(machine, ordered)
        present = [
            Workload(workload.name, workload.demand, sum(row)) for workload, row in zip(ordered, counts, strict=True)
        ]
        problem = problem_of(machine, occupancy, members, present, weights, movable=movable)
        return cls(machine, present, there, movable, PartitionState.as_is(problem, counts))

    @property
    def size(self) -> int:
        """Members times NUMA nodes."""
        return sum(self._state.problem.counts) * self._state.problem.bins

    def steps(self, budget: int, pays: float = PAYS, declined: Container[Ways] = ()) -> tuple[Step, ...]:
        """The best steps, one after another, with at most `budget` members in all: one member's way each, or the two of
        members that change places; each brings home `pays` of all traffic at least for each member. declined: steps
        that are not to be taken.
        """
        least = pays * self._state.scale
        steps: list[Step] = []
        while budget > 0:
            step = best(self._state, budget, self._ways, declined, least)
            if step is None or step.gain < least * len(step.moves):
                break
            steps.append(self._made(step))
            budget -= len(step.moves)
        return tuple(steps)

    def making_room(self, budget: int, pays: float = PAYS, declined: Container[Ways] = ()) -> tuple[Step, ...]:
        """The best step of at most `budget` members of which one comes and the others leave for its sake; none where it
        does not bring home `pays` of all traffic for each.
        """
        chain = first_that_holds(making_room(self._state, budget), self._ways, declined, pays * self._state.scale)
        return () if chain is None else (self._made(chain),)

    def step_towards(self, homes: Homes, budget: int, declined: Container[Ways] = ()) -> Step | None:
        """The step of at most `budget` members on the way there that gains most for each; None where none gains."""
        steps = chains(self._state, self._moves_to(homes), budget)
        chain = first_that_holds(steps, self._ways, declined, least=0.0)
        return None if chain is None else tuple(replace(way, whole=True) for way in self._made(chain))

    def annealed(self, homes: Homes, steps: int, seed: int, heat: tuple[float, float], pays: float) -> Homes:
        """Where so many steps of annealing lead from there, when each member that moves is to bring home `pays` of all
        traffic. heat: that it begins and ends with; the coldest is followed by climbing.
        """
        start, moves = self._state.anchored(pays * self._state.scale), self._moves_to(homes)
        for move in moves if self._holds(moves) else ():
            start.move(*move)
        state = cooled(start, steps, seed, *heat)
        if heat[1] <= COLDEST:
            climb(state)
        return self._homes(state)

    def spared(self, homes: Homes, pays: float) -> Homes:
        """The same with fewer who move: where the whole gains by it a member stays where it is, and those who were to
        meet it elsewhere come to it instead.
        """
        state = self._state.anchored(pays * self._state.scale)
        moves = self._moves_to(homes)
        for move in moves:
            state.move(*move)
        for kind, here, _ in moves:
            there = state.counts[kind].index(1)
            if there != here and state.fits(kind, here):
                _come(state, kind, there, here)
        return self._homes(state)

    def _homes(self, state: PartitionState) -> Homes:
        """Of those that are elsewhere in another state."""
        return {
            key: self._nodes[state.counts[kind].index(1)].lowest
            for (kind, bin_), keys in self._keys.items()
            for key in keys
            if not state.counts[kind][bin_]
        }

    def aligned(self, homes: Homes, pays: float) -> Homes:
        """The same parts on other NUMA nodes, where fewer have to move: two that are alike change names as long as the
        whole gains by it.
        """
        now = {key: self._nodes[bin_].lowest for (_, bin_), keys in self._keys.items() for key in keys}
        value, gains, left = self.net(homes, pays), True, MOST_RENAMINGS
        while gains and left:
            gains = False
            for names in islice(self._renamings(now, homes), left):
                renamed, left = {key: names.get(home, home) for key, home in homes.items()}, left - 1
                if (net := self.net(renamed, pays)) > value:
                    homes, value, gains = renamed, net, True
                    break
        return homes

    def _renamings(self, now: Homes, homes: Homes) -> Iterator[dict[int, int]]:
        """The pairs of NUMA nodes that change names so that fewer members move, those that spare most first."""
        ways = Counter((now[key], home) for key, home in homes.items() if key in now)
        pairs = combinations([node.lowest for node in self._nodes], 2)
        spared = [(ways[a, b] + ways[b, a] - ways[a, a] - ways[b, b], -a, -b) for a, b in pairs]
        for count, a, b in sorted(spared, reverse=True):
            if count <= 0:
                return
            yield {-a: -b, -b: -a}

    def away(self, homes: Homes) -> int:
        """How many of those that may move are elsewhere."""
        return len(self._moves_to(homes))

    def net(self, homes: Homes, pays: float) -> float:
        """The share of all traffic that going there brings home, beyond `pays` for each member; minus infinity where it
        does not fit.
        """
        moves = self._moves_to(homes)
        if not self._holds(moves):
            return -inf
        state, gain = self._state, 0.0
        here = [row.index(1) if 1 in row else state.nowhere for row in state.counts]
        there = {kind: target for kind, _, target in moves}
        for kind, source, target in moves:
            for other, pull in state.problem.pulls[kind].items():
                if other != kind:
                    nearer = state.nearness[target][there.get(other, here[other])] - state.nearness[source][here[other]]
                    gain += (pull / 2 if other in there else pull) * nearer
        return gain / state.scale - pays * len(moves)

    def _holds(self, moves: Iterable[ChainMove]) -> bool:
        """Whether no bin would hold more than it can, and more than before."""
        after = self._state.seats()
        for move in moves:
            after.take(*move)
        return not after.overfull(self._state)

    def _moves_to(self, homes: Homes) -> list[ChainMove]:
        """Of those that may move and are elsewhere."""
        bins = {node.lowest: bin_ for bin_, node in enumerate(self._nodes)}
        return [
            (kind, bin_, bins[homes[key]])
            for (kind, bin_), keys in self._keys.items()
            for key in keys
            if key in homes and bins[homes[key]] != bin_
        ]

    def _ways(self, moves: Sequence[ChainMove]) -> Ways:
        """The reservations that would be taken next for these moves, each with its target."""
        taken: Counter[tuple[int, int]] = Counter()
        ways = set()
        for kind, source, target in moves:
            taken[kind, source] += 1
            ways.add((self._keys[kind, source][-taken[kind, source]], self._nodes[target], CpuSet()))
        return frozenset(ways)

    def _made(self, step: Chain) -> Step:
        gain, made = step.gain / self._state.scale, []
        for kind, source, target in step.moves:
            self._state.move(kind, source, target)
            key = self._keys[kind, source].pop()
            self._keys.setdefault((kind, target), []).insert(0, key)
            made.append(Relocation(key, self._nodes[source], self._nodes[target], gain))
        return tuple(made)


def _come(state: PartitionState, kind: int, source: int, target: int) -> None:
    """Moves one of a kind and those who follow it, so that most is gained by all of them together; nobody where nothing
    is. Next is always whoever gains most, or loses least: of a group the first ones lose.
    """
    total, best, gone, length = state.gain(kind, source, target), 0.0, [kind], 0
    least = EPSILON * state.scale
    while True:
        state.move(gone[-1], source, target)
        if total > best + least:
            best, length = total, len(gone)
        coming = [
            (state.gain(other, source, target), -other)
            for other in state.present[source]
            if state.movable(other, source) > 0 and state.fits(other, target)
        ]
        if not coming:
            break
        gain, following = max(coming)
        total += gain
        gone.append(-following)
    for other in gone[length:]:
        state.move(other, target, source)


def best(
    state: PartitionState,
    budget: int,
    ways_of: Callable[[Sequence[ChainMove]], Ways],
    declined: Container[Ways],
    least: float,
) -> Chain | None:
    """The move, or the exchange of two, that gains most for each replica that it moves, but for declined ones. ways_of:
    what its moves come to. least: what it gains at the least by the second of two.
    """

    def not_again(kind: int, source: int, other: int, target: int) -> bool:
        return ways_of(_moves(kind, source, other, target)) in declined

    bins = range(state.problem.bins)
    steps = []
    for kind in range(len(state.counts)):
        for source in bins:
            if state.movable(kind, source) > 0:
                gain, other, target = best_step(
                    state, kind, source, bins, swaps=budget > 1, declined=not_again if declined else None, pays=least
                )
                if gain > 0:
                    steps.append(Chain(_moves(kind, source, other, target), gain))
    return max(
        steps, key=lambda step: (step.gain / len(step.moves), *(-id_ for id_ in step.moves[0][:2])), default=None
    )


def _moves(kind: int, source: int, other: int, target: int) -> tuple[ChainMove, ...]:
    """There, and back where another one (not negative) takes its place."""
    back = ((other, target, source),) if other >= 0 else ()
    return ((kind, source, target), *back)
