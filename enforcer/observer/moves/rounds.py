"""What the observer offers the hook once a window: moves within the budget, in the operator's hours, none that was
declined just so.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from enforcer.observer.moves.candidates import Allowance, moves
from enforcer.observer.moves.declined import Declined
from enforcer.observer.planning_thread import PlanningInput
from enforcer.settings.config import Config
from enforcer.settings.hours import Hours
from placement.model.topology import Machine
from placement.state.occupancy import Occupancy
from proto import local_pb2 as local


class MoveRounds:
    """The planner's thread asks for offers; another one hands in what was declined. clock: seconds since 1970."""

    def __init__(self, config: Config, machine: Machine, clock: Callable[[], float] = time.time) -> None:
        self._clock, self._plan = clock, config.moves == "plan"
        self._hours = Hours.parse(config.move_hours) or Hours()
        self._allowance = Allowance(int(config.move_budget))
        self.on(machine)

    def on(self, machine: Machine) -> None:
        """What was declined on the machine before is forgotten."""
        self._machine, self._declined = machine, Declined(machine)

    def declined(self, message: local.Moves, occupancy: Occupancy) -> None:
        """Moves that the hook was offered and that did not hold. occupancy: as it was reported up to then."""
        self._declined.received(message, occupancy)

    def offer(self, situation: PlanningInput) -> local.Moves:
        """To be asked once a window, by who sits where now. One without steps takes back what the hook has not made."""
        budget, declined = self._allowance.now(), self._declined.now(situation.occupancy)
        if not self._hours.include(self._clock()):
            return local.Moves(plan=self._plan, generation=situation.occupancy.generation)
        offer = moves(self._machine, situation, budget, declined)
        offer.plan = self._plan
        self._allowance.used(offer)
        return offer
