"""Which running members are worth moving: what the observer asks the hook for, window by window."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from enforcer.observer.planning_thread import CachePlace, PlanningInput, place_of
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Move
from numakin.placement.plan.between_caches import between_caches
from numakin.placement.plan.chains import Ways
from numakin.placement.plan.problem import Workload
from numakin.placement.plan.rebalance import Board, Relocation, Step
from numakin.placement.plan.whole import WholeSearch
from numakin.placement.plan.worth import pays
from numakin.placement.state.occupancy import Occupancy, Reservation
from numakin.process.budget import allowed
from numakin.wire import local_pb2 as local

REST = 6
"""Windows that a reservation stays where it is before it may move, again or for the first time: a half-life of the
graph, in which the traffic of a newcomer settles and what a move did to all members' is seen. So do those of its kin
beside whom a reservation comes, whether it is new or has moved: it came for their sake.
"""

LONGEST = 6 * REST
"""Windows after which it may move though kin come so often that it never rests: a CronJob's pods come every minute."""


LEAST = 1000.0
"""What a mover must bring home at the least, in nanoseconds a second as weights are: cold caches of 32 MiB at 10 GB/s
are 3 ms, paid back within an hour. Beneath it are wake-ups by chance, which are all that a server without clients has.
"""


SEARCH = 20_000
"""Steps of each search for a chain of moves between caches: about a tenth of a second of one CPU."""


SAVED = 6
"""Windows for which moves that were not made are saved, so that several members can go together."""


class MoveBudget(NamedTuple):
    """How many members may be moved now. single: all in steps of their own; chain: in one that moves several."""

    single: int
    chain: int


class Allowance:
    """So many single moves a window, as `budget.allowed` has them; those that were not made lately are saved for steps
    that move several. What is offered and not made uses nothing: it is offered again until it is made.
    """

    def __init__(self, a_window: int) -> None:
        self._a_window, self._left = a_window, 0

    def now(self, members: int = 0) -> MoveBudget:
        """To be asked once a window. members: that run here."""
        a_window = allowed(self._a_window, members)
        self._left = min(SAVED * a_window, self._left + a_window)
        left = max(0, self._left)
        return MoveBudget(min(left, a_window), left)

    def used(self, members: int) -> None:
        """So many were seen to have been moved since the last time."""
        self._left -= members


class _Stay(NamedTuple):
    """Where a reservation is. begun: the window in which it came there, or kin beside it after it had rested. last: the
    one in which kin came last.
    """

    place: CachePlace
    begun: int
    last: int

    def rested(self, window: int) -> bool:
        return window - self.last >= REST or window - self.begun >= LONGEST

    def with_kin(self, window: int) -> _Stay:
        begun = window if window - 1 - self.last >= REST else self.begun
        return self._replace(begun=begun, last=window)


class Rested:
    """Remembers how long each reservation has been where it is."""

    def __init__(self) -> None:
        self._window = 0
        self._stays: dict[str, _Stay] = {}

    def movable(
        self, occupancy: Occupancy, options: Mapping[str, Move], kin: Mapping[str, Mapping[str, float]]
    ) -> frozenset[str]:
        """Keys of the reservations that may move now; to be asked once a window. options: by pod uid; a pod that is not
        there does not move, nor one whose containers are not all together. kin: the weights that newcomers are seated
        by, by pod or workload.
        """
        self._window += 1
        reservations = {key: reservation for key, reservation in occupancy.reservations.items() if reservation.workload}
        self._stays = {key: self._stay(key, place_of(reservation)) for key, reservation in reservations.items()}
        for key in [key for key, stay in self._stays.items() if stay.last == self._window]:
            for neighbour in _beside(occupancy, reservations[key], kin):
                if neighbour in self._stays:
                    self._stays[neighbour] = self._stays[neighbour].with_kin(self._window)
        rested = [reservations[key] for key, stay in self._stays.items() if stay.rested(self._window)]
        return frozenset(
            member.key
            for member in rested
            if options.get(member.pod, Move.NEVER) is not Move.NEVER and len(occupancy.members_of(member.pod)) == 1
        )

    def _stay(self, key: str, place: CachePlace) -> _Stay:
        before = self._stays.get(key)
        return before if before is not None and before.place == place else _Stay(place, self._window, self._window)


def _beside(occupancy: Occupancy, newcomer: Reservation, kin: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """The reservations of its kin that are where it is; without weights all of its group are."""
    row = kin.get(newcomer.pod) or kin.get(newcomer.workload)
    directory = occupancy.directory
    if row:
        near = [key for pod in row for key in directory.by_pod.get(pod, ())]
    else:
        near = [*directory.by_group.get(newcomer.group, ())] if newcomer.group else []
    return (key for key in near if occupancy.reservations[key].numa_nodes == newcomer.numa_nodes)


class Worth(NamedTuple):
    """What steps are worth making by. traffic: weight of all that the members here exchange. least: share of it that a
    step must bring home for each member that it moves.
    """

    traffic: float
    least: float


def worth(situation: PlanningInput) -> Worth:
    """By who talks now."""
    pods = _talking(situation)
    traffic = sum(weight for pair, weight in situation.talk.items() if pods.keys() >= {*pair})
    return Worth(traffic, max(pays(len(pods)), LEAST / traffic) if traffic else pays(len(pods)))


def steps_of(
    machine: Machine,
    situation: PlanningInput,
    budget: MoveBudget,
    declined: Container[Ways] = (),
    *,
    whole: WholeSearch | None = None,
) -> Sequence[Step]:
    """Steps towards a whole that pays; where none is known or can be made, the best that pay by themselves; where there
    are none, one by which several make room for another; and where there is none, steps between cache domains.

    whole: the search for it, which goes on from window to window. It comes first, and nothing else is moved meanwhile:
    once all steps are made that pay by themselves, no whole may be left that does, and on the largest machines a
    window's steps by themselves take as long to find as the whole. declined: steps that are not to be offered.

    Each pod counts by what it says itself, not by its workload: who runs is connected to this replica or that. A pod
    that was never seen to talk stays, as its group's affair.
    """
    if not situation.movable:
        return ()
    occupancy, least, pods = situation.occupancy, worth(situation).least, _talking(situation)
    workloads = [Workload(pod, reservation.demand, 1) for pod, reservation in pods.items()]
    board = Board.of(
        machine, occupancy, {pod: pod for pod in pods}, workloads, situation.talk, movable=situation.movable
    )
    if whole is not None and ((towards := whole.steps(board, budget.chain, least, declined)) or whole.under_way):
        return towards
    return (
        board.steps(budget.single, least, declined)
        or board.making_room(budget.chain, least, declined)
        or between_caches(
            machine,
            occupancy,
            situation.talk,
            movable=situation.movable,
            budget=budget.single,
            pays=least,
            declined=declined,
            search=SEARCH,
            chain_budget=budget.chain,
        )
    )


def offer_of(steps: Iterable[Step], situation: PlanningInput) -> local.Moves:
    """For the hook, which judges them again."""
    traffic, least = worth(situation)
    return local.Moves(
        steps=[local.Moves.Step(gain=step[0].gain, whole=step[0].whole, ways=map(_way, step)) for step in steps],
        generation=situation.occupancy.generation,
        traffic=traffic,
        pays=least,
    )


def _talking(situation: PlanningInput) -> dict[str, Reservation]:
    """The members that were seen to talk."""
    talking = {pod for pair, weight in situation.talk.items() if weight > 0 for pod in pair}
    reservations = situation.occupancy.reservations
    return {pod: reservations[pod] for pod in talking & reservations.keys()}


def _way(relocation: Relocation) -> local.Moves.Way:
    return local.Moves.Way(
        reservation=relocation.reservation,
        source=str(relocation.source),
        target=str(relocation.target),
        source_domain=str(relocation.source_domain),
        target_domain=str(relocation.target_domain),
    )


def move_options(containers: Iterable[local.LocalContainer]) -> dict[str, Move]:
    """What each opted-in pod allows, by its uid: no more than the strictest of its containers."""
    options: dict[str, Move] = {}
    for container in containers:
        if container.opted_in:
            option = Move(container.move) if container.move else Move.NEVER
            options[container.pod] = min(options.get(container.pod, option), option, key=_STRICTEST_FIRST.index)
    return options


_STRICTEST_FIRST = (Move.NEVER, Move.CPUS, Move.CPUS_AND_MEMORY)
