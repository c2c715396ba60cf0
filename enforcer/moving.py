"""Running members' moves, as the agent makes them: what the observer found worth it, where it still holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from enforcer import pods
from enforcer.log import Log
from placement.cpuset import NumaSet
from placement.decide import Reason
from placement.errors import AlreadyHeld
from placement.moving import Mover, moved
from placement.occupancy import Occupancy
from placement.wishes import Move
from proto import local_pb2 as local
from proto import nri_pb2 as nri

if TYPE_CHECKING:
    from enforcer.agent import Agent

log = Log("hook.agent")


class Moving:
    """Changes the agent's occupancy, and says what the runtime has to be told."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._steps: Sequence[local.Moves.Step] = ()

    def later(self, steps: Sequence[local.Moves.Step]) -> None:
        """The next answer about a member takes these along; they replace those that still wait."""
        self._steps = steps

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
        steps, self._steps = self._steps, ()
        try:
            return [update for step in steps for update in self.make(step)]
        except Exception:
            log.exception("moving failed")
            return []

    def make(self, step: local.Moves.Step) -> list[nri.ContainerUpdate]:
        """The members of one step to where their kin are; nothing when it does not hold any more."""
        agent, before = self._agent, self._agent.occupancy
        if agent.released:
            return []
        found = self._movers(step)
        outcome = found if isinstance(found, Reason) else moved(agent.machine, before, found)
        if isinstance(outcome, Reason):
            agent.accounts.not_moved(outcome)
            return []
        agent.occupancy = outcome.occupancy
        for request, decision in outcome.decisions:
            source, at = before.seats[request.seat_key].numa_nodes, agent.occupancy.generation
            agent.accounts.moved(agent.residents.now()[request.container], decision, source, step.gain, at=at)
        agent.settle()
        return self._changed_since(before)

    def take_back(self, failed: Iterable[str], before: Occupancy) -> None:
        """For moves that the runtime did not carry out: these containers are where they were, but for those that are
        somebody else's by now.
        """
        agent = self._agent
        for one in failed:
            held, now = before.holdings.get(one), agent.occupancy.holdings.get(one)
            if held is None or now is None or now.foreign:
                continue
            log.warning("container was not moved", id=one[:12], cpus=held.cpus)
            try:
                agent.occupancy = agent.occupancy.changed({held.seat: before.seats[held.seat]}, {one: held})
            except AlreadyHeld as taken:
                log.error("its own CPUs are somebody else's by now", id=one[:12], error=taken)  # noqa: TRY400

    def _movers(self, step: local.Moves.Step) -> list[Mover] | Reason:
        """The step's members with all their containers, or why it does not hold any more."""
        agent, occupancy, found = self._agent, self._agent.occupancy, []
        for way in step.ways:
            where, seat = f"NUMA node {way.target}", occupancy.seats.get(way.seat)
            if seat is None or str(seat.numa_nodes) != way.source:
                return Reason("move", where, f"the member is not on NUMA node {way.source} any more")
            live = occupancy.directory.by_seat.get(way.seat, ())
            asked = [agent.requests[one] for one in sorted(live) if one in agent.requests]
            if not asked or len(asked) < len(live) or not all(occupancy.holdings[one].cpus for one in live):
                return Reason("move", where, "somebody else sets the CPUs of a container of the pod")
            if any(one.opt_in.move is Move.NEVER for one in asked):
                return Reason("move", where, "move.numakin.io says never")
            kin = agent.learned.kin(agent.machine, occupancy, asked[0], None)
            found.append(Mover(NumaSet.parse(way.target), tuple(asked), kin))
        return found

    def _changed_since(self, before: Occupancy) -> list[nri.ContainerUpdate]:
        """What the runtime has to be told of holdings that changed. Mems that became open are named in full: an empty
        list means "as they are" to it.
        """
        updates = []
        for key, now in self._agent.occupancy.holdings.items():
            was = before.holdings[key]
            if now != was:
                opened = was.mems and not now.mems
                updates.append(pods.update(key, now.cpus, self._agent.machine.mems if opened else now.mems))
        return updates
