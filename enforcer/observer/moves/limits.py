"""What the operator's limits allow of the steps that gain, and which ones their memory alone keeps from being taken."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from enforcer.observer.moves.candidates import worth
from enforcer.observer.planning_thread import PlanningInput
from numakin.placement.model.topology import Machine
from numakin.placement.plan.chains import Ways
from numakin.placement.plan.group_limit import GroupLimit
from numakin.placement.plan.memory_limit import MemoryLimit
from numakin.placement.plan.rebalance import Step, ways_in
from numakin.placement.plan.worth import exchanged, gained
from numakin.placement.state.memory_places import size

MOST = 64
"""Steps of one window that are remembered as left out."""


class Limits(NamedTuple):
    """How much may be moved at a time."""

    group: GroupLimit
    memory: MemoryLimit

    def allows(self, step: Step) -> bool:
        return self.group.allows(way.reservation for way in step) and self.memory.allows(ways_in(step))

    def after(self, step: Step) -> Limits:
        """What is left when this one is made too."""
        return Limits(self.group.after(way.reservation for way in step), self.memory.after(ways_in(step)))


class OverMemory(Container[Ways]):
    """The steps that a search is not to take: those of `others`, and those over the limit, which are remembered."""

    def __init__(self, others: Container[Ways], limit: MemoryLimit) -> None:
        self._others, self._limit = others, limit
        self._over: dict[Ways, None] = {}

    def __contains__(self, step: object) -> bool:
        if step in self._others:
            return True
        if not isinstance(step, frozenset) or self._limit.allows(step):
            return False
        if len(self._over) < MOST:
            self._over[step] = None
        return True

    def left_out(self, machine: Machine, situation: PlanningInput) -> Iterator[Ways]:
        """Of those that were over, the ones that bring enough home to be worth it."""
        share, occupancy = worth(situation), situation.occupancy
        for step in self._over:
            targets = {key: target for key, target, _ in step}
            traffic = exchanged(targets, situation.talk)
            if gained(machine, occupancy, targets, traffic) >= share.least * share.traffic * len(step):
                yield step


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A step that was not taken for its memory. members: in words. memory: bytes that it would leave. never: it is over
    all that may be left at a time, so that waiting does not help.
    """

    members: tuple[str, ...]
    memory: int
    never: bool

    def __str__(self) -> str:
        return f"{' and '.join(self.members)} ({size(self.memory)}, {'never' if self.never else 'not yet'})"

    @classmethod
    def of(cls, step: Ways, limit: MemoryLimit, whole: float, name: Callable[[str], str]) -> LeftOut:
        """whole: bytes that may be left at a time. name: of a pod, by its uid."""
        memory = limit.leaves(step)
        members = sorted(name(limit.occupancy.reservations[key].pod) for key, _, _ in step)
        return cls(tuple(members), memory, never=memory > whole)
