"""What the observer offers the hook once a window: moves within the budget, none that was declined just so."""

from __future__ import annotations

from enforcer.observer.moves.candidates import Allowance, moves
from enforcer.observer.moves.declined import Declined
from enforcer.observer.planning_thread import PlanningInput
from enforcer.settings.config import Config
from placement.model.topology import Machine
from placement.state.occupancy import Occupancy
from proto import local_pb2 as local


class MoveRounds:
    """The planner's thread asks for offers; another one hands in what was declined."""

    def __init__(self, config: Config, machine: Machine) -> None:
        self._config = config
        self._allowance = Allowance(int(config.move_budget))
        self.on(machine)

    def on(self, machine: Machine) -> None:
        """What was declined on the machine before is forgotten."""
        self._machine, self._declined = machine, Declined(machine)

    def declined(self, message: local.Moves, occupancy: Occupancy) -> None:
        """Moves that the hook was offered and that did not hold. occupancy: as it was reported up to then."""
        self._declined.received(message, occupancy)

    def offer(self, situation: PlanningInput) -> local.Moves:
        """To be asked once a window, by who sits where now."""
        budget, declined = self._allowance.now(), self._declined.now(situation.occupancy)
        offer = moves(self._machine, situation, budget, declined)
        offer.plan = self._config.moves == "plan"
        self._allowance.used(offer)
        return offer
