"""Which running members are worth moving: what the observer asks the hook for, window by window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from placement.cpuset import NumaSet
from placement.known import Weights, Workload
from placement.occupancy import Occupancy
from placement.rebalance import relocations
from placement.topology import Machine
from placement.wishes import Move
from proto import local_pb2 as local

REST = 6
"""Windows that a seat stays where it is before it may move, again or for the first time: a half-life of the graph, in
which the traffic of a newcomer settles and what a move did to everybody's is seen.
"""


class Moves:
    """Remembers how long each seat has been where it is. budget: members moved in one window at most."""

    def __init__(self, machine: Machine, budget: int) -> None:
        self._machine, self._budget = machine, budget
        self._window = 0
        self._since: dict[str, tuple[NumaSet, int]] = {}

    def due(
        self,
        occupancy: Occupancy,
        workloads: Sequence[Workload],
        weights: Weights,
        wishes: Mapping[str, Move],
    ) -> local.Moves:
        """The best steps now; to be called once a window. wishes: by pod uid; a pod that is not there does not move."""
        self._window += 1
        seats = {key: seat for key, seat in occupancy.seats.items() if seat.workload}
        members = {key: seat.workload for key, seat in seats.items()}
        self._since = {key: self._arrival(key, seat.numa_nodes) for key, seat in seats.items()}
        rested = {key for key, (_, window) in self._since.items() if self._window - window >= REST}
        movable = {key for key in rested if wishes.get(seats[key].pod, Move.NEVER) is not Move.NEVER}
        steps = relocations(self._machine, occupancy, members, workloads, weights, movable=movable, budget=self._budget)
        return local.Moves(
            steps=[
                local.Moves.Step(
                    gain=step[0].gain,
                    ways=[
                        local.Moves.Way(seat=one.seat, source=str(one.source), target=str(one.target)) for one in step
                    ],
                )
                for step in steps
            ]
        )

    def _arrival(self, key: str, numa_nodes: NumaSet) -> tuple[NumaSet, int]:
        """Where a seat is, and since which window."""
        before = self._since.get(key)
        return before if before is not None and before[0] == numa_nodes else (numa_nodes, self._window)


def wishes_of(containers: Iterable[local.LocalContainer]) -> dict[str, Move]:
    """What each opted-in pod allows, by its uid: no more than the strictest of its containers."""
    found: dict[str, Move] = {}
    for one in containers:
        if one.opted_in:
            wish = Move(one.move) if one.move else Move.NEVER
            found[one.pod] = min(found.get(one.pod, wish), wish, key=_STRICTEST_FIRST.index)
    return found


_STRICTEST_FIRST = (Move.NEVER, Move.CPUS, Move.CPUS_AND_MEMORY)
