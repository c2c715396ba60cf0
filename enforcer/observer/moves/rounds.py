"""What the observer offers the hook once a window: moves within the budget, in the operator's hours, never too many of
a group at a time, none that was declined just so; and what came of those that were made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import nan

from enforcer.observer.moves.candidates import Allowance, offer_of, steps_of
from enforcer.observer.moves.declined import Declined
from enforcer.observer.moves.made import MadeMoves, Proven
from enforcer.observer.planning_thread import PlanningInput
from enforcer.settings.config import Config
from enforcer.settings.hours import Hours
from placement.model.topology import Machine
from placement.plan.group_limit import GroupLimit, NotToBeTaken
from placement.plan.rebalance import Step
from placement.state.occupancy import Occupancy
from proto import local_pb2 as local


class MoveRounds:
    """The planner's thread asks for offers; another one hands in what was declined. clock: seconds since 1970."""

    def __init__(self, config: Config, machine: Machine, clock: Callable[[], float] = time.time) -> None:
        self._clock, self._plan = clock, config.moves == "plan"
        self._hours = Hours.parse(config.move_hours) or Hours()
        self._group_share = config.move_group_share
        self._budget = int(config.move_budget)
        self._allowance = Allowance(self._budget)
        self.on(machine)

    @property
    def held_back(self) -> str:
        """What an operator's options keep running members from now, in words; empty: nothing."""
        if not self._budget:
            return "no running member is moved: move_budget is 0"
        if not self._hours.include(self._clock()):
            return f"running members are moved at {self._hours} UTC alone: not now"
        return "moves of running members are told, and not made: moves is plan" if self._plan else ""

    def on(self, machine: Machine) -> None:
        """What was declined and made on the machine before is forgotten."""
        self._machine, self._declined, self._made = machine, Declined(machine), MadeMoves(machine)

    def declined(self, message: local.Moves, occupancy: Occupancy) -> None:
        """Moves that the hook was offered and that did not hold. occupancy: as it was reported up to then."""
        self._declined.received(message, occupancy)

    def offer(self, situation: PlanningInput) -> local.Moves:
        """To be asked once a window, by who sits where now. One without steps takes back what the hook has not made."""
        made = self._made
        proofs = [_proof_to(proven) for proven in made.seen(situation)]
        offer = offer_of(self._steps(made, situation), situation)
        offer.plan = self._plan
        offer.proofs.extend(proofs)
        self._allowance.used(offer)
        return offer

    def _steps(self, made: MadeMoves, situation: PlanningInput) -> Sequence[Step]:
        budget, declined = self._allowance.now(), self._declined.now(situation.occupancy)
        if not self._hours.include(self._clock()):
            return ()
        limit = GroupLimit.of(situation.occupancy, self._group_share, made.lately)
        if back := made.back(situation, budget.chain, limit):
            return back
        refused = NotToBeTaken(declined, made.never, limit)
        steps = [*_within(limit, steps_of(self._machine, situation, budget, refused))]
        if not self._plan:
            made.offered(steps, situation)
        return steps


def _within(limit: GroupLimit, steps: Iterable[Step]) -> Iterator[Step]:
    """Up to the first that is too much together with those before it; the others may count on it."""
    for step in steps:
        members = [way.reservation for way in step]
        if not limit.allows(members):
            return
        limit = limit.after(members)
        yield step


def _proof_to(proven: Proven) -> local.Moves.Proof:
    proof = proven.proof
    after = proof.after if proof.known else nan
    return local.Moves.Proof(
        reservations=[way.reservation for way in proven.step],
        in_cache=bool(proven.step[0].target_domain),
        before=proof.before,
        promised=proof.promised,
        after=after,
        helped=proof.known and proof.helped,
    )
