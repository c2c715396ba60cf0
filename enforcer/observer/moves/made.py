"""The steps that the observer offered and the hook has made: each is watched until what it came to can be seen."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from enforcer.observer.moves.candidates import REST, worth
from enforcer.observer.moves.limits import Limits
from enforcer.observer.planning_thread import PlanningInput
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.plan.chains import Ways
from numakin.placement.plan.proof import Proof, promise, proven, way_back
from numakin.placement.plan.rebalance import Step, ways_in
from numakin.placement.state.occupancy import Occupancy

SEEN_WITHIN = 3
"""Windows after its offer in which a step that was made is seen; later it was not made, nor once another has moved one
of its members: that is not where the step begins any more.
"""

MOST_BACK = 256
"""Ways that led nowhere, which are remembered; the oldest go first."""


@dataclass(frozen=True, slots=True)
class _Watched:
    """window: in which the step was offered or, later, seen to be made. leaves: bytes of memory that it leaves."""

    step: Step
    window: int
    promise: Proof
    is_back: bool
    leaves: int


@dataclass(frozen=True, slots=True)
class Proven:
    """A step, and what it came to; not known where its members have gone on meanwhile, or talk no more."""

    step: Step
    proof: Proof


class MadeMoves:
    """One thread's."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._window = 0
        self.members_moved = 0
        """By the steps that were made since the window before."""
        self._offered: dict[Ways, _Watched] = {}
        self._made: list[_Watched] = []
        self._back: list[_Watched] = []
        self._never: deque[tuple[str, NumaSet, CpuSet]] = deque(maxlen=MOST_BACK)

    @property
    def lately(self) -> Iterable[str]:
        """Reservations whose moves are not proven yet."""
        return _members(self._made)

    @property
    def left_lately(self) -> int:
        """Bytes of memory that these have left."""
        return sum(made.leaves for made in self._made)

    @property
    def never(self) -> frozenset[tuple[str, NumaSet, CpuSet]]:
        """Ways that members were to take back: they are not sent there again."""
        return frozenset(self._never)

    def offered(self, steps: Iterable[Step], situation: PlanningInput, limits: Limits) -> None:
        """The situation that they were looked for in, and the limits."""
        for step in steps:
            self._watch(step, situation, limits, is_back=False)

    def seen(self, situation: PlanningInput) -> list[Proven]:
        """What has been proven since; to be asked once a window, before `offered`."""
        self._window += 1
        now = situation.occupancy
        arrived = [offered for offered in self._offered.values() if _there(now, offered.step)]
        moved = {*_members(arrived)}
        self.members_moved = len(moved)
        self._made += [replace(made, window=self._window) for made in _newest(arrived)]
        self._offered = {
            ways: offered
            for ways, offered in self._offered.items()
            if moved.isdisjoint(_members([offered])) and self._window - offered.window < SEEN_WITHIN
        }
        due = [made for made in self._made if self._window - made.window >= REST or not _there(now, made.step)]
        self._made = [made for made in self._made if made not in due]
        return [self._proven(made, situation) for made in due]

    def back(self, situation: PlanningInput, members: int, limits: Limits) -> Sequence[Step]:
        """A way back that is due, of at most so many members, or none: of a step that did not help, where by what is
        exchanged now its members were better off before. Each is offered once.
        """
        now, least = situation.occupancy, worth(situation).least
        self._back = [made for made in self._back if _there(now, made.step) and self._window - made.window <= 2 * REST]
        for made in self._back:
            step = way_back(self._machine, now, made.step, situation.talk)
            keys = [way.reservation for way in step]
            if step[0].gain < least * len(step) or len(step) > members:
                continue
            if situation.movable.issuperset(keys) and limits.allows(step):
                self._back.remove(made)
                self._never.extend(ways_in(made.step))
                self._watch(step, situation, limits, is_back=True)
                return [step]
        return []

    def _watch(self, step: Step, situation: PlanningInput, limits: Limits, *, is_back: bool) -> None:
        ways, promised = ways_in(step), promise(situation.occupancy, step, situation.talk)
        self._offered[ways] = _Watched(step, self._window, promised, is_back, limits.memory.leaves(ways))

    def _proven(self, made: _Watched, situation: PlanningInput) -> Proven:
        if not _there(situation.occupancy, made.step):
            return Proven(made.step, made.promise)
        proof = proven(situation.occupancy, made.step, situation.talk, made.promise)
        if proof.known and not proof.helped and not made.is_back:
            self._back.append(made)
        return Proven(made.step, proof)


def _members(steps: Iterable[_Watched]) -> Iterator[str]:
    return chain.from_iterable((way.reservation for way in watched.step) for watched in steps)


def _newest(steps: Iterable[_Watched]) -> Iterator[_Watched]:
    """Of those with a member in common the last one, which took the others' place in the hook."""
    members = set[str]()
    for watched in sorted(steps, key=lambda watched: -watched.window):
        keys = {way.reservation for way in watched.step}
        if members.isdisjoint(keys):
            members |= keys
            yield watched


def _there(occupancy: Occupancy, step: Step) -> bool:
    """Whether all of its members are where it was to bring them."""
    there = (occupancy.reservations.get(way.reservation) for way in step)
    return all(
        reservation is not None
        and reservation.numa_nodes == way.target
        and (not way.target_domain or reservation.cache_domain == way.target_domain)
        for reservation, way in zip(there, step, strict=True)
    )
