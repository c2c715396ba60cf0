"""The steps that the observer offered and the hook has made lately."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from enforcer.observer.moves.candidates import REST
from placement.plan.chains import Ways
from placement.plan.rebalance import Step
from placement.state.occupancy import Occupancy

SEEN_WITHIN = 3
"""Windows after its offer in which a step that was made is seen; later it was not made."""


@dataclass(frozen=True, slots=True)
class _Watched:
    """window: in which the step was offered or, later, seen to be made."""

    step: Step
    window: int


class MadeMoves:
    """One thread's."""

    def __init__(self) -> None:
        self._window = 0
        self._offered: dict[Ways, _Watched] = {}
        self._made: list[_Watched] = []

    @property
    def lately(self) -> Iterable[str]:
        """Reservations that were moved within the last windows."""
        return chain.from_iterable((way.reservation for way in made.step) for made in self._made)

    def offered(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self._offered[ways_of(step)] = _Watched(step, self._window)

    def seen(self, now: Occupancy) -> None:
        """To be asked once a window, before `offered`."""
        self._window += 1
        for ways, offered in [*self._offered.items()]:
            if _there(now, offered.step):
                self._made.append(_Watched(offered.step, self._window))
            if _there(now, offered.step) or self._window - offered.window >= SEEN_WITHIN:
                del self._offered[ways]
        self._made = [made for made in self._made if self._window - made.window < REST and _there(now, made.step)]


def ways_of(step: Step) -> Ways:
    return frozenset((way.reservation, way.target, way.target_domain) for way in step)


def _there(occupancy: Occupancy, step: Step) -> bool:
    """Whether all of its members are where it was to bring them."""
    there = (occupancy.reservations.get(way.reservation) for way in step)
    return all(
        reservation is not None
        and reservation.numa_nodes == way.target
        and (not way.target_domain or reservation.cache_domain == way.target_domain)
        for reservation, way in zip(there, step, strict=True)
    )
