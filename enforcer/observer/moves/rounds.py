"""What the observer offers the hook once a window: moves within the budget, in the operator's hours, never too many of
a group at a time, none that was declined just so; and what came of those that were made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from math import nan

from enforcer.observer.moves.candidates import Allowance, offer_of, steps_of
from enforcer.observer.moves.declined import Declined
from enforcer.observer.moves.limits import LeftOut, Limits, OverMemory
from enforcer.observer.moves.made import MadeMoves, Proven
from enforcer.observer.planning_thread import PlanningInput
from enforcer.settings.config import Config
from numakin.placement.model.topology import Machine
from numakin.placement.plan.group_limit import GroupLimit, NotToBeTaken
from numakin.placement.plan.memory_limit import MemoryLimit
from numakin.placement.plan.rebalance import Step
from numakin.placement.plan.whole import WholeSearch
from numakin.placement.state.memory_places import size
from numakin.placement.state.occupancy import Occupancy
from numakin.process.hours import Hours
from numakin.process.log import Log
from numakin.wire import local_pb2 as local

log = Log("observer.moves")

GROUP_SHARE = 0.5
"""Of a group's members on the node (of an `auto` group: of a workload's replicas), rounded up, moved within six
windows. A group is one service to those who use it: half of its members with cold caches are noticed less than all of
them, and by the time that the next may be moved the graph shows what became of the first.
"""

MOST_MEMORY = 16 << 30
"""Bytes that members leave behind within six windows. The kernel migrates what they leave, or it stays far from their
CPUs; chosen, not measured: most members of services go, and no database of hundreds of gigabytes does.
"""

HOLDS = 6
"""Windows for which an offer may wait in the hook, which gets a newer one in each: a half-life of the graph, should the
observer fail.
"""

MOST_TOLD = 256
"""Steps that were told as left out and are not told again; the oldest go first."""

MOST_NAMED = 5
"""Steps that `status` names as left out, those with the most memory."""


class MoveRounds:
    """The planner's thread asks for offers; another one hands in what was declined. clock: seconds since 1970. memory:
    bytes on each NUMA node of a reservation in an occupancy. name: of a pod, by its uid.
    """

    def __init__(
        self,
        config: Config,
        machine: Machine,
        clock: Callable[[], float] = time.time,
        *,
        memory: Callable[[Occupancy, str], Mapping[int, int]] = lambda _occupancy, _reservation: {},
        name: Callable[[str], str] = str,
    ) -> None:
        self._clock, self._plan = clock, config.moves == "plan"
        self._hours = Hours.parse(config.move_hours) or Hours()
        self._budget, self._window_s = int(config.move_budget), config.window_s
        self._allowance = Allowance(self._budget)
        self._memory, self._name = memory, name
        self._left_out: tuple[LeftOut, ...] = ()
        self._told: dict[tuple[tuple[str, ...], bool], None] = {}
        self.on(machine)

    @property
    def held_back(self) -> str:
        """What an operator's options keep running members from now, in words; empty: nothing."""
        if not self._budget:
            return "no running member is moved: move_budget is 0"
        if not self._hours.include(self._clock()):
            return f"running members are moved at {self._hours} UTC alone: not now"
        plan = "moves of running members are told, and not made: moves is plan" if self._plan else ""
        return "; ".join(filter(None, (plan, self._over_memory)))

    @property
    def _over_memory(self) -> str:
        """As of the latest window."""
        left_out = [*map(str, self._left_out)]
        more = f" and {len(left_out) - MOST_NAMED} more" if len(left_out) > MOST_NAMED else ""
        words = ", ".join(left_out[:MOST_NAMED]) + more
        return f"not moved, as at most {size(MOST_MEMORY)} are left behind at a time: {words}" if left_out else ""

    def on(self, machine: Machine) -> None:
        """What was declined and made on the machine before is forgotten."""
        self._machine, self._declined, self._made = machine, Declined(machine), MadeMoves(machine)
        self._whole = WholeSearch()

    def declined(self, message: local.Moves, occupancy: Occupancy) -> None:
        """Moves that the hook was offered and that did not hold. occupancy: as it was reported up to then."""
        self._declined.received(message, occupancy)

    def offer(self, situation: PlanningInput) -> local.Moves:
        """To be asked once a window, by who sits where now. One without steps takes back what the hook has not made."""
        made = self._made
        proofs = [_proof_to(proven) for proven in made.seen(situation)]
        self._allowance.used(made.members_moved)
        offer = offer_of(self._steps(made, situation), situation)
        offer.plan, offer.holds_s = self._plan, HOLDS * self._window_s
        offer.proofs.extend(proofs)
        return offer

    def _steps(self, made: MadeMoves, situation: PlanningInput) -> Sequence[Step]:
        budget = self._allowance.now(len(situation.occupancy.reservations))
        declined = self._declined.now(situation.occupancy)
        if not self._hours.include(self._clock()):
            self._tell([])
            return ()
        limits = self._limits(made, situation.occupancy)
        if back := made.back(situation, budget.chain, limits):
            return back
        refused = OverMemory(NotToBeTaken(declined, made.never, limits.group), limits.memory)
        steps = [*_within(limits, steps_of(self._machine, situation, budget, refused, whole=self._whole))]
        left_out = refused.left_out(self._machine, situation)
        self._tell(LeftOut.of(step, limits.memory, MOST_MEMORY, self._name) for step in left_out)
        if not self._plan:
            made.offered(steps, situation, limits)
        return steps

    def _limits(self, made: MadeMoves, occupancy: Occupancy) -> Limits:
        """Now. Of each member whose memory is asked for it is read once."""
        memory = cache(partial(self._memory, occupancy))
        left = MOST_MEMORY - made.left_lately
        group = GroupLimit.of(occupancy, GROUP_SHARE, made.lately)
        return Limits(group, MemoryLimit(self._machine, occupancy, memory, left))

    def _tell(self, left_out: Iterable[LeftOut]) -> None:
        """The log has each once."""
        self._left_out = tuple(sorted(set(left_out), key=lambda step: (-step.memory, step.members)))
        for step in self._left_out:
            if (step.members, step.never) not in self._told:
                members = " ".join(step.members)
                log.info("a move is left out for its memory", members=members, memory=step.memory, never=step.never)
            self._told[step.members, step.never] = None
        while len(self._told) > MOST_TOLD:
            del self._told[next(iter(self._told))]


def _within(limits: Limits, steps: Iterable[Step]) -> Iterator[Step]:
    """Up to the first that is too much together with those before it; the others may count on it."""
    for step in steps:
        if not limits.allows(step):
            return
        limits = limits.after(step)
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
