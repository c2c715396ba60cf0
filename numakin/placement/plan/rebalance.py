"""Which running members to move, within a budget: the few moves that bring the most traffic home.

The best step at a time, by its gain for each member that it moves: into free room, or two members that change places.
One that gains less than `pays` of all traffic for each ends it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.plan.chains import Chain, ChainMove, Ways, better, chains, first_that_holds
from numakin.placement.plan.partition import PartitionState
from numakin.placement.plan.problem import PlacedMembers, Weights, Workload, placed_members, problem_of
from numakin.placement.plan.search import best_step
from numakin.placement.plan.worth import PAYS
from numakin.placement.state.occupancy import Occupancy


@dataclass(frozen=True, slots=True)
class Relocation:
    """A reservation's way from one NUMA node to another, or from one of its cache domains to another. gain: share of
    all traffic that its step brings home.
    """

    reservation: str
    source: NumaSet
    target: NumaSet
    gain: float
    source_domain: CpuSet = CpuSet()
    target_domain: CpuSet = CpuSet()


Step = tuple[Relocation, ...]
"""Made at once or not at all."""


def ways_in(step: Step) -> Ways:
    return frozenset((way.reservation, way.target, way.target_domain) for way in step)


def relocations(
    machine: Machine,
    occupancy: Occupancy,
    members: Mapping[str, str],
    workloads: Sequence[Workload],
    weights: Weights,
    *,
    movable: Collection[str],
    budget: int,
    pays: float = PAYS,
    declined: Container[Ways] = (),
    search: int = 0,
    chain_budget: int = 0,
) -> tuple[tuple[Relocation, ...], ...]:
    """Steps in the order in which to make them, with at most `budget` members in all: one member's way each, or the two
    of members that change places; where neither gains, a chain of at most `chain_budget` members, for which so many
    steps are searched.

    members: the workload of each reservation key. workloads: those of the members, by what one replica asks for; more
    replicas than there are count for nothing here. movable: keys of the reservations that may be moved. declined: steps
    that are not to be taken.
    """
    ordered = sorted(workloads, key=lambda workload: workload.name)
    there = placed_members(occupancy, members)
    counts = there.counts(machine, ordered)
    present = [
        Workload(workload.name, workload.demand, sum(row)) for workload, row in zip(ordered, counts, strict=True)
    ]
    state = PartitionState.as_is(problem_of(machine, occupancy, members, present, weights, movable=movable), counts)
    reservations = _Reservations(machine, present, there, movable)
    least = pays * state.scale
    steps: list[tuple[Relocation, ...]] = []
    while budget > 0:
        step = best(state, budget, reservations.ways, declined, least)
        if step is None or step.gain < least * len(step.moves):
            break
        steps.append(_made(state, reservations, step))
        budget -= len(step.moves)
    if search and chain_budget > 2 and not steps and len(movable) > 2:
        target = better(state, search)
        chain = first_that_holds(chains(state, target, chain_budget), reservations.ways, declined, least)
        return (_made(state, reservations, chain),) if chain is not None else ()
    return tuple(steps)


class _Reservations:
    """The movable reservations, by (workload, bin). nodes: the bins' NUMA nodes."""

    def __init__(
        self, machine: Machine, workloads: Sequence[Workload], there: PlacedMembers, movable: Collection[str]
    ) -> None:
        self.nodes = [NumaSet.of((node,)) for node in machine.cpu_nodes]
        self._keys = {
            (kind, bin_): sorted(key for key in there.keys.get((workload.name, node), ()) if key in movable)
            for kind, workload in enumerate(workloads)
            for bin_, node in enumerate(machine.cpu_nodes)
        }

    def ways(self, moves: Sequence[ChainMove]) -> Ways:
        """The reservations that would be taken next for these moves, each with its target."""
        taken: Counter[tuple[int, int]] = Counter()
        ways = set()
        for kind, source, target in moves:
            taken[kind, source] += 1
            ways.add((self._keys[kind, source][-taken[kind, source]], self.nodes[target], CpuSet()))
        return frozenset(ways)

    def moved(self, kind: int, source: int, target: int) -> str:
        key = self._keys[kind, source].pop()
        self._keys[kind, target].insert(0, key)
        return key


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


def _made(state: PartitionState, reservations: _Reservations, step: Chain) -> tuple[Relocation, ...]:
    gain, made = step.gain / state.scale, []
    for kind, source, target in step.moves:
        state.move(kind, source, target)
        key = reservations.moved(kind, source, target)
        made.append(Relocation(key, reservations.nodes[source], reservations.nodes[target], gain))
    return tuple(made)
