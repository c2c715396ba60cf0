"""Which running members are worth moving: what the observer asks the hook for, window by window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from enforcer.planner import Situation
from placement.cpuset import NumaSet
from placement.known import Workload
from placement.occupancy import Occupancy
from placement.rebalance import Relocation, relocations
from placement.topology import Machine
from placement.wishes import Move
from proto import local_pb2 as local

REST = 6
"""Windows that a seat stays where it is before it may move, again or for the first time: a half-life of the graph, in
which the traffic of a newcomer settles and what a move did to everybody's is seen.
"""


class Rested:
    """Remembers how long each seat has been where it is."""

    def __init__(self) -> None:
        self._window = 0
        self._since: dict[str, tuple[NumaSet, int]] = {}

    def movable(self, occupancy: Occupancy, wishes: Mapping[str, Move]) -> frozenset[str]:
        """Keys of the seats that may move now; to be asked once a window. wishes: by pod uid; a pod that is not there
        does not move.
        """
        self._window += 1
        seats = {key: seat for key, seat in occupancy.seats.items() if seat.workload}
        self._since = {key: self._arrival(key, seat.numa_nodes) for key, seat in seats.items()}
        rested = [key for key, (_, window) in self._since.items() if self._window - window >= REST]
        return frozenset(key for key in rested if wishes.get(seats[key].pod, Move.NEVER) is not Move.NEVER)

    def _arrival(self, key: str, numa_nodes: NumaSet) -> tuple[NumaSet, int]:
        """Where a seat is, and since which window."""
        before = self._since.get(key)
        return before if before is not None and before[0] == numa_nodes else (numa_nodes, self._window)


def moves(machine: Machine, situation: Situation, budget: int) -> local.Moves:
    """The best steps now, with at most `budget` members. Each pod counts by what it says itself, not by its workload:
    who runs is connected to this replica or that. A pod that was never seen to talk stays, as its group's affair.
    """
    occupancy = situation.occupancy
    talking = {pod for pair, weight in situation.talk.items() if weight > 0 for pod in pair}
    pods = {pod: occupancy.seats[pod] for pod in talking & occupancy.seats.keys()}
    steps = relocations(
        machine,
        occupancy,
        {pod: pod for pod in pods},
        [Workload(pod, seat.demand, 1) for pod, seat in pods.items()],
        situation.talk,
        movable=situation.movable,
        budget=budget if situation.movable else 0,
    )
    return local.Moves(steps=[local.Moves.Step(gain=step[0].gain, ways=map(_way, step)) for step in steps])


def _way(one: Relocation) -> local.Moves.Way:
    return local.Moves.Way(seat=one.seat, source=str(one.source), target=str(one.target))


def wishes_of(containers: Iterable[local.LocalContainer]) -> dict[str, Move]:
    """What each opted-in pod allows, by its uid: no more than the strictest of its containers."""
    found: dict[str, Move] = {}
    for one in containers:
        if one.opted_in:
            wish = Move(one.move) if one.move else Move.NEVER
            found[one.pod] = min(found.get(one.pod, wish), wish, key=_STRICTEST_FIRST.index)
    return found


_STRICTEST_FIRST = (Move.NEVER, Move.CPUS, Move.CPUS_AND_MEMORY)
