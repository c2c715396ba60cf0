"""Running members' moves, as the agent makes them: what the observer found worth it, where it still holds and is worth
it still.

Between a step's choice and its making, members come, go and move. So each step is judged by the occupancy of now: what
it would bring home, and whether it takes a member from a newcomer that was just seated beside it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from enforcer.hook.facts import pods
from placement.decide.decide import Reason
from placement.decide.relocation import Moved, Mover, moved
from placement.decide.request import Kin, Request
from placement.model.cpuset import NumaSet
from placement.model.errors import AlreadyHeld
from placement.optin.options import Move
from placement.plan.worth import gained
from placement.state.occupancy import Occupancy
from process.log import Log
from proto import local_pb2 as local
from proto import nri_pb2 as nri

if TYPE_CHECKING:
    from enforcer.hook.agent import Agent

log = Log("hook.agent")

MOST_DECLINED = 64
"""Declined steps that wait for the observer; later ones are not kept."""

MOST_NEWCOMERS = 512
"""Newcomers that are remembered until the observer has seen them; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Newcomer:
    """generation: of the occupancy in which it was seated."""

    generation: int
    request: Request
    kin: Kin

    def is_kin_of(self, request: Request) -> bool:
        """By what it was seated by."""
        if self.kin.weights:
            return self.kin.weights.get(request.pod, 0.0) > 0
        return bool(request.opt_in.group) and request.opt_in.group == self.request.opt_in.group


class MoveExecutor:
    """Changes the agent's occupancy, and says what the runtime has to be told."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._offer = local.Moves()
        self._newcomers: deque[Newcomer] = deque(maxlen=MOST_NEWCOMERS)
        self._declined = local.Moves()

    def seated(self, request: Request, kin: Kin) -> None:
        """A member that was just seated, by this kin."""
        self._newcomers.append(Newcomer(self._agent.occupancy.generation, request, kin))

    def declined(self) -> local.Moves:
        """The steps that did not hold since the last call, for the observer, with the first one's generation."""
        taken, self._declined = self._declined, local.Moves()
        return taken

    def later(self, offer: local.Moves) -> None:
        """The next answer about a member takes these along; they replace those that still wait."""
        self._offer = offer

    def along(self, updates: list[nri.ContainerUpdate], but: str = "") -> list[nri.ContainerUpdate]:
        """An answer's updates with what waits, which must not cost the answer: one for each container, since a runtime
        takes a second one for a conflict, and none for `but`, which is being created.
        """
        merged: dict[str, nri.ContainerUpdate] = {}
        for one in (*updates, *self._waiting()):
            if one.container_id != but:
                merged.setdefault(one.container_id, nri.ContainerUpdate()).MergeFrom(one)
        return list(merged.values())

    def _waiting(self) -> list[nri.ContainerUpdate]:
        offer, self._offer = self._offer, local.Moves()
        return [update for step in offer.steps for update in self.make(step, offer)]

    def make(self, step: local.Moves.Step, offer: local.Moves) -> list[nri.ContainerUpdate]:
        """The members of one step of the offer to where their kin are; nothing when it does not hold any more. Never
        raises: what can't be made leaves everything as it was.
        """
        before = self._agent.occupancy
        if self._agent.released:
            return []
        try:
            outcome = self._judged(step, offer)
            if not isinstance(outcome, Reason):
                return self._made(step, outcome, before)
            self._agent.records.not_moved(outcome)
        except Exception:
            log.exception("moving failed")
            self._agent.occupancy = before
        self._decline(step)
        return []

    def _judged(self, step: local.Moves.Step, offer: local.Moves) -> Moved | Reason:
        """The step as it would be made now, or why it is not."""
        found = self._movers(step)
        if isinstance(found, Reason):
            return found
        return (
            self._fresh(found, offer)
            or self._idle(found, offer)
            or moved(self._agent.machine, self._agent.occupancy, found)
        )

    def _made(self, step: local.Moves.Step, outcome: Moved, before: Occupancy) -> list[nri.ContainerUpdate]:
        agent = self._agent
        agent.occupancy = outcome.occupancy
        agent.settle()
        updates = self._changed_since(before)
        residents, at = agent.residents.now(), agent.occupancy.generation
        agent.learned.moved((before.reservations[request.reservation_key] for request, _ in outcome.decisions), at)
        for request, decision in outcome.decisions:
            source = before.reservations[request.reservation_key].numa_nodes
            agent.records.moved(residents[request.container], decision, source, step.gain, at=at)
        return updates

    def take_back(self, step: local.Moves.Step, failed: Iterable[str], before: Occupancy) -> None:
        """For a step that the runtime did not carry out: these containers are where they were, but for those that are
        somebody else's by now.
        """
        agent = self._agent
        for one in failed:
            held, now = before.allocations.get(one), agent.occupancy.allocations.get(one)
            if held is None or now is None or now.externally_managed:
                continue
            log.warning("container was not moved", id=one[:12], cpus=held.cpus)
            agent.records.counts["move taken back"] += 1
            try:
                agent.occupancy = agent.occupancy.changed(
                    {held.reservation: before.reservations[held.reservation]}, {one: held}
                )
            except AlreadyHeld as taken:
                log.error("its exclusive CPUs are somebody else's by now", id=one[:12], error=taken)  # noqa: TRY400
        self._decline(step)

    def _decline(self, step: local.Moves.Step) -> None:
        if not self._declined.steps:
            self._declined.generation = self._agent.occupancy.generation
        if len(self._declined.steps) < MOST_DECLINED:
            self._declined.steps.append(step)

    def _movers(self, step: local.Moves.Step) -> list[Mover] | Reason:
        """The step's members with all their containers, or why it does not hold any more."""
        agent, occupancy, found = self._agent, self._agent.occupancy, []
        for way in step.ways:
            where, reservation = f"NUMA node {way.target}", occupancy.reservations.get(way.reservation)
            if reservation is None or str(reservation.numa_nodes) != way.source:
                return Reason("move", where, f"the member is not on NUMA node {way.source} any more")
            live = occupancy.directory.by_reservation.get(way.reservation, ())
            asked = [agent.requests[one] for one in sorted(live) if one in agent.requests]
            if not asked or len(asked) < len(live) or not all(occupancy.allocations[one].cpus for one in live):
                return Reason("move", where, "somebody else sets the CPUs of a container of the pod")
            if any(one.opt_in.move is Move.NEVER for one in asked):
                return Reason("move", where, "move.numakin.io says never")
            kin = agent.learned.kin(agent.machine, occupancy, asked[0], None)
            found.append(Mover(NumaSet.parse(way.target), tuple(asked), kin))
        return found

    def _fresh(self, movers: Sequence[Mover], offer: local.Moves) -> Reason | None:
        """Whether a newcomer that the observer did not know of has just been seated beside a mover, for its sake."""
        occupancy = self._agent.occupancy
        while self._newcomers and self._newcomers[0].generation <= offer.generation:
            self._newcomers.popleft()
        for mover in movers:
            request = mover.requests[0]
            home = occupancy.reservations[request.reservation_key].numa_nodes
            for newcomer in self._newcomers:
                reservation = occupancy.reservations.get(newcomer.request.reservation_key)
                if reservation is not None and reservation.numa_nodes == home and newcomer.is_kin_of(request):
                    return Reason("move", f"NUMA node {mover.target}", "kin of it has just been seated where it is")
        return None

    def _idle(self, movers: Sequence[Mover], offer: local.Moves) -> Reason | None:
        """Whether the step brings too little home, by who sits where now."""
        agent = self._agent
        targets = {mover.requests[0].reservation_key: mover.target for mover in movers}
        traffic = {
            mover.requests[0].reservation_key: agent.learned.traffic_of(mover.requests[0].pod) for mover in movers
        }
        share = gained(agent.machine, agent.occupancy, targets, traffic) / (offer.traffic or 1.0)
        if share >= offer.pays * len(movers):
            return None
        return Reason(
            "move", f"NUMA node {movers[0].target}", f"{share:.1%} of the traffic here would come home by now"
        )

    def _changed_since(self, before: Occupancy) -> list[nri.ContainerUpdate]:
        """What the runtime has to be told of allocations that changed. Mems that became open are named in full: an
        empty list means "as they are" to it.
        """
        updates = []
        for key, now in self._agent.occupancy.allocations.items():
            was = before.allocations[key]
            if now != was:
                opened = was.mems and not now.mems
                updates.append(pods.update(key, now.cpus, self._agent.machine.all_mems if opened else now.mems))
        return updates
