"""Which running members to move, within a budget: the few moves that bring the most traffic home.

The best step at a time, by its gain for each member that it moves: into free room, or two members that change places. A
step that gains less than `pays` of all traffic for each is not worth a member's warm caches and far pages, and ends it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from placement.cpuset import NumaSet
from placement.known import Sitting, Weights, Workload, problem_of, sitting
from placement.occupancy import Occupancy
from placement.partition import State
from placement.search import best_step
from placement.topology import Machine

PAYS = 0.002
"""Share of all traffic that the move of one member must bring home."""


@dataclass(frozen=True, slots=True)
class Relocation:
    """A seat's way from one NUMA node to another. gain: share of all traffic that its step brings home."""

    seat: str
    source: NumaSet
    target: NumaSet
    gain: float


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
) -> tuple[tuple[Relocation, ...], ...]:
    """Steps in the order in which to make them, with at most `budget` members in all: one member's way each, or the two
    of members that change places.

    members: the workload of each seat key. workloads: those of the members, by what one replica asks for; more replicas
    than there are count for nothing here. movable: keys of the seats that may be moved.
    """
    ordered = sorted(workloads, key=lambda one: one.name)
    there = sitting(occupancy, members)
    counts = there.counts(machine, ordered)
    present = [Workload(one.name, one.demand, sum(row)) for one, row in zip(ordered, counts, strict=True)]
    state = State.of(problem_of(machine, occupancy, members, present, weights, movable=movable), counts)
    if any(row[-1] for row in state.counts):
        # More sits there than there is room for: nothing can be told of what a move would do.
        return ()
    seats = _Seats(machine, present, there, movable)
    found: list[tuple[Relocation, ...]] = []
    while budget > 0:
        step = _best(state, budget)
        if step is None or step.gain < pays * step.moved * state.scale:
            break
        found.append(_made(machine, state, seats, step))
        budget -= step.moved
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Step:
    """One of `kind` from source to target, and one of `other` back, unless that is -1."""

    gain: float
    kind: int
    other: int
    source: int
    target: int

    @property
    def moved(self) -> int:
        return 1 if self.other < 0 else 2


class _Seats:
    """The movable seats, by (workload, bin)."""

    def __init__(
        self, machine: Machine, workloads: Sequence[Workload], there: Sitting, movable: Collection[str]
    ) -> None:
        self._keys = {
            (kind, bin_): sorted(key for key in there.keys.get((one.name, node), ()) if key in movable)
            for kind, one in enumerate(workloads)
            for bin_, node in enumerate(machine.cpu_nodes)
        }

    def moved(self, kind: int, source: int, target: int) -> str:
        key = self._keys[kind, source].pop()
        self._keys[kind, target].insert(0, key)
        return key


def _best(state: State, budget: int) -> _Step | None:
    bins = range(state.problem.bins)
    steps = []
    for kind in range(len(state.counts)):
        for source in bins:
            if state.movable(kind, source) > 0:
                gain, other, target = best_step(state, kind, source, bins, swaps=budget > 1)
                if gain > 0:
                    steps.append(_Step(gain, kind, other, source, target))
    return max(steps, key=lambda one: (one.gain / one.moved, -one.kind, -one.source), default=None)


def _made(machine: Machine, state: State, seats: _Seats, step: _Step) -> tuple[Relocation, ...]:
    nodes = [NumaSet.of((node,)) for node in machine.cpu_nodes]
    gain = step.gain / state.scale
    ways = [(step.kind, step.source, step.target)]
    if step.other >= 0:
        ways.append((step.other, step.target, step.source))
    found = []
    for kind, source, target in ways:
        state.move(kind, source, target)
        found.append(Relocation(seats.moved(kind, source, target), nodes[source], nodes[target], gain))
    return tuple(found)
