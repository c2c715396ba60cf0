"""Moves of running members, as the hook makes them: what the observer proposed, where it still holds and is still worth
it.

Between a step's choice and its execution, members come, go and move. So each step is judged by the occupancy of now:
what it would bring home, and whether it takes a member from a newcomer that was just placed beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from enforcer.hook.facts import pods
from enforcer.hook.ledger import Ledger
from enforcer.hook.planned_moves import PlannedMoves
from enforcer.hook.second_best import SecondBest
from numakin.placement.decide.decide import Reason
from numakin.placement.decide.relocation import Moved, Mover, moved
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.optin.options import Move
from numakin.placement.plan.worth import gained, gained_in_caches
from numakin.placement.state.occupancy import Allocation, Occupancy, Reservation
from numakin.placement.state.pools import members_cpus
from numakin.process.log import Log
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri

log = Log("hook.agent")

MOST_DECLINED = 64
"""Declined steps that wait for the observer; later ones are not kept."""


STOPS_S = 30.0
"""Within so long after a StopContainer another one is expected, and no new member carries moves."""


class MoveExecutor:
    """Changes the ledger's occupancy, and makes the runtime's updates for it. clock: seconds, monotonic."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger, self._clock = ledger, clock
        self._stopped = float("-inf")
        self._offer, self._offer_ends = local.Moves(), float("-inf")
        self._declined = local.Moves()
        self._unsent: dict[str, nri.ContainerUpdate] = {}
        self.planned = PlannedMoves(ledger)
        self.second_best = SecondBest(ledger)

    def declined(self) -> local.Moves:
        """The steps that did not hold since the last call, for the observer, with the first one's generation."""
        taken, self._declined = self._declined, local.Moves()
        return taken

    def later(self, offer: local.Moves) -> None:
        """The next answer that may carry moves takes these along, while they hold: what they rest on is old where the
        observer has no newer ones. They replace those that still wait.
        """
        self._offer, self._offer_ends = offer, self._clock() + offer.holds_s

    def plan(self, offer: local.Moves) -> None:
        """Judges the steps as `make` does, each as if those before it had been made, and tells those that hold. None
        is made.
        """
        ledger, held, declined = self._ledger, list[local.Moves.Step](), list[local.Moves.Step]()
        before = ledger.occupancy
        for step in () if ledger.released else offer.steps:
            try:
                outcome = self._judged(step, offer)
            except Exception:
                log.exception("planning a move failed")
                declined.append(step)
                continue
            if isinstance(outcome, Reason):
                ledger.records.not_moved(outcome)
                declined.append(step)
            else:
                held.append(step)
                ledger.occupancy = outcome.occupancy
        ledger.occupancy = before
        self.planned.replaced(held)
        for step in declined:
            self._decline(step)

    def take_along(self, updates: Iterable[nri.ContainerUpdate]) -> None:
        """These go at once where that is safe, else with the next answer about a member, as they are due by then, and
        with what waits for the same containers already.
        """
        self._unsent = {update.container_id: update for update in pods.merged([*self._unsent.values(), *updates])}

    @property
    def unsent(self) -> bool:
        """Whether some wait for such an answer."""
        return bool(self._unsent)

    def waits(self, container: str) -> bool:
        """Whether an update of the container does."""
        return container in self._unsent

    def all_told(self) -> None:
        """By an answer that gave every container its cpuset."""
        self._unsent.clear()

    def with_stop(self, updates: list[nri.ContainerUpdate]) -> list[nri.ContainerUpdate]:
        """An answer's updates with what waits, one for each container. The container stops: no pod waits for that."""
        self._stopped = self._clock()
        return pods.merged([*updates, *self.unsent_updates(), *self.second_best.improve(), *self._moves()])

    def with_create(
        self, updates: list[nri.ContainerUpdate], created: str, reservation: str
    ) -> list[nri.ContainerUpdate]:
        """Likewise about a new member, which waits for it: moves take a millisecond or more, and are left to the next
        StopContainer where one is to be expected. None for the container that is being created; its own reservation
        moves later, as its answer says where it is.
        """
        moves = list[nri.ContainerUpdate]()
        if self._clock() - self._stopped >= STOPS_S:
            moves = self._moves(but=reservation)
            moves += self.second_best.improve(but=reservation) if self.second_best.found else []
        every = (*updates, *self.unsent_updates(), *moves)
        return pods.merged(update for update in every if update.container_id != created)

    def with_update(self, updates: list[nri.ContainerUpdate]) -> list[nri.ContainerUpdate]:
        """Likewise about a container that is resized: without moves, as its pod waits for that."""
        return pods.merged([*updates, *self.unsent_updates()])

    def unsent_updates(self) -> list[nri.ContainerUpdate]:
        """What waits for an answer, once. The occupancy is read only where something does: that applies the decision
        which is being answered.
        """
        if not self._unsent:
            return []
        unsent, self._unsent = self._unsent, {}
        updates, allocations = [], self._ledger.occupancy.allocations
        for container, update in unsent.items():
            now = allocations.get(container)
            if now is not None and now.externally_managed:
                updates += self._undone(container)
            if now is None or now.externally_managed:
                continue
            cpu = update.linux.resources.cpu
            whole = self._ledger.machine  # not that of the time when it was put off: CPUs may have gone or come since
            cpu.cpus = str(now.cpus or (self._ledger.widest(container) if cpu.cpus else ""))
            cpu.mems = str(now.mems or (whole.all_mems if cpu.mems else ""))
            updates.append(update)
        return updates

    def _undone(self, container: str) -> list[nri.ContainerUpdate]:
        """Where another owner has it by now, only what of its cpuset is still our work."""
        resident = self._ledger.residents.now().get(container)
        now = self._ledger.node.cpuset_now(resident.cgroups_path) if resident is not None else None
        return self._ledger.undone(container, now) if now is not None else []

    def _moves(self, but: str = "") -> list[nri.ContainerUpdate]:
        """but: a reservation whose steps go on waiting."""
        offer, self._offer = self._offer, local.Moves()
        updates: list[nri.ContainerUpdate] = []
        for step in offer.steps if self._clock() < self._offer_ends else ():
            if any(way.reservation == but for way in step.ways):
                self._offer.MergeFrom(
                    local.Moves(generation=offer.generation, traffic=offer.traffic, pays=offer.pays, steps=[step])
                )
            else:
                updates += self.make(step, offer)
        return updates

    def make(self, step: local.Moves.Step, offer: local.Moves) -> list[nri.ContainerUpdate]:
        """The members of one step of the offer to where their kin are; nothing when it does not hold any more. Never
        raises: what can't be made leaves everything as it was.
        """
        before = self._ledger.occupancy
        if self._ledger.released:
            return []
        try:
            outcome = self._judged(step, offer)
            if not isinstance(outcome, Reason):
                return self._made(step, outcome, before)
            self._ledger.records.not_moved(outcome)
        except Exception:
            log.exception("moving failed")
            self._ledger.occupancy = before
        self._decline(step)
        return []

    def _judged(self, step: local.Moves.Step, offer: local.Moves) -> Moved | Reason:
        """The step as it would be made now, or why it is not."""
        movers = self._movers(step)
        if isinstance(movers, Reason):
            return movers
        return (
            self._fresh(movers, offer)
            or self._idle(movers, step, offer)
            or moved(self._ledger.machine, self._ledger.occupancy, movers, self._ledger.memory_of)
        )

    def _made(self, step: local.Moves.Step, outcome: Moved, before: Occupancy) -> list[nri.ContainerUpdate]:
        ledger = self._ledger
        ledger.occupancy = outcome.occupancy
        ledger.settle()
        updates = ledger.updates_since(before)
        residents, at = ledger.residents.now(), ledger.occupancy.generation
        between_nodes = not step.ways[0].target_domain
        if between_nodes:
            ledger.learned.moved((before.reservations[request.reservation_key] for request, _ in outcome.decisions), at)
        for request, decision in outcome.decisions:
            source = before.reservations[request.reservation_key]
            effect = (
                f"of the traffic here comes home, from NUMA node {source.numa_nodes}"
                if between_nodes
                else f"of the traffic here comes into one cache, from CPUs {source.cache_domain}"
            )
            why = Reason("moved", f"{step.gain:.1%}", effect)
            ledger.records.again(residents[request.container], decision, why, event="move", at=at)
        return updates

    def take_back(self, step: local.Moves.Step, failed: Iterable[str], before: Occupancy) -> list[nri.ContainerUpdate]:
        """For a step that the runtime did not carry out: these containers are where they were, but for those that are
        externally managed by now. The updates bring back the others of their pods, so that none is parted, and set the
        pools of all by who is where now.
        """
        ledger, after = self._ledger, self._ledger.occupancy
        there = before.allocations.keys() & after.allocations.keys()
        stayed = {key: before.allocations[key] for key in there.intersection(failed)}
        stay = {allocation.reservation for allocation in stayed.values()}
        while crowded := self._moved_into(stay, step, before):
            stay |= crowded
        back = self._held_before(stay, before)
        reservations = {held.reservation: before.reservations[held.reservation] for held in back.values()}
        # Unchecked, and all at once: their shared neighbours have their CPUs until the pools are settled, and two that
        # were to change places have each other's.
        ledger.occupancy = after.changed(reservations=reservations, allocations=back, checked=False)
        self._decline(step)
        ledger.settle()
        self._bring_back(reservations, before)
        ledger.settle()
        still = {key: held for key, held in stayed.items() if self._has_still(key, held)}
        return ledger.updates_since(after.changed(allocations=still, checked=False))

    def _bring_back(self, reservations: Iterable[str], before: Occupancy) -> None:
        """Those of these pods that came meanwhile, and got CPUs for good where their pod was to go."""
        ledger, residents = self._ledger, self._ledger.residents.now()
        for reservation in reservations:
            for key in sorted(ledger.occupancy.directory.by_reservation.get(reservation, ())):
                held = ledger.occupancy.allocations[key]
                stays = key in before.allocations or not (held.exclusive or held.stable)
                if stays or key not in ledger.requests:
                    continue
                _, decision = ledger.place(ledger.requests[key])
                if key in residents:
                    why = Reason("moved", "", f"back to its pod, which was not moved, from CPUs {held.cpus}")
                    at = ledger.occupancy.generation
                    ledger.records.again(residents[key], decision, why, event="move", at=at)

    def _moved_into(self, stay: set[str], step: local.Moves.Step, before: Occupancy) -> set[str]:
        """The step's others who share a pool of which nothing is left once these reservations are where they were."""
        ledger, after = self._ledger, self._ledger.occupancy
        live = {key for reservation in stay for key in after.directory.by_reservation.get(reservation, ())}
        then = after.changed(
            reservations={key: before.reservations[key] for key in stay if key in after.reservations},
            allocations={key: before.allocations[key] for key in live if key in before.allocations},
            checked=False,
        )
        others = {way.reservation for way in step.ways if way.reservation in before.reservations} - stay
        held = [each for each in then.allocations.values() if each.reservation in others]
        sharing = {each.reservation for each in held if each.placed and not each.exclusive}
        return {key for key in sharing if not members_cpus(ledger.machine, then, then.reservations[key])}

    def _has_still(self, container: str, held: Allocation) -> bool:
        """Whether its cgroup has these CPUs: an answer in between may have given it those of where it was to go."""
        resident = self._ledger.residents.now().get(container)
        now = self._ledger.node.cpuset_now(resident.cgroups_path) if resident is not None else None
        return now is None or not held.cpus or now[0] == held.cpus

    def _held_before(self, reservations: set[str], before: Occupancy) -> dict[str, Allocation]:
        """What the containers of these reservations had, where it can be theirs again: their exclusive CPUs may be
        another one's by now, or all of the pool that they shared. Those that can't go back are asked to move once more.
        """
        ledger, after = self._ledger, self._ledger.occupancy
        back = {
            key: before.allocations[key]
            for reservation in reservations
            for key in after.directory.by_reservation.get(reservation, ())
            if key in before.allocations and not after.allocations[key].externally_managed
        }
        while lost := _taken(back, after) | self._crowded_out(back, before):
            for key in [key for key, held in back.items() if held.reservation in lost]:
                log.error("container was not moved, and its former CPUs are others' alone by now", id=key[:12])
                del back[key]
        for key, held in back.items():
            log.warning("container was not moved", id=key[:12], cpus=held.cpus)
            ledger.records.counts["move taken back"] += 1
        return back

    def _crowded_out(self, back: Mapping[str, Allocation], before: Occupancy) -> set[str]:
        """The reservations of those who shared a pool of which nothing would be left: others have all of it alone."""
        ledger = self._ledger
        homes = {held.reservation: before.reservations[held.reservation] for held in back.values()}
        then = ledger.occupancy.changed(reservations=homes, allocations=back, checked=False)
        sharing = {held.reservation for held in back.values() if held.placed and not held.exclusive}
        return {key for key in sharing if not members_cpus(ledger.machine, then, homes[key])}

    def proven(self, proof: local.Moves.Proof) -> None:
        """What came of a step that was made earlier; for those of its members that are still here."""
        ledger = self._ledger
        residents = ledger.residents.now()
        for reservation in proof.reservations:
            for container in sorted(ledger.occupancy.directory.by_reservation.get(reservation, ())):
                if container in residents:
                    ledger.records.move_proven(residents[container], proof)

    def _decline(self, step: local.Moves.Step) -> None:
        if not self._declined.steps:
            self._declined.generation = self._ledger.occupancy.generation
        if len(self._declined.steps) < MOST_DECLINED:
            self._declined.steps.append(step)

    def _movers(self, step: local.Moves.Step) -> list[Mover] | Reason:
        """The step's members with all their containers, or why it does not hold any more."""
        ledger, occupancy, movers = self._ledger, self._ledger.occupancy, list[Mover]()
        for way in step.ways:
            reservation = occupancy.reservations.get(way.reservation)
            where = f"CPUs {way.target_domain}" if way.target_domain else f"NUMA node {way.target}"
            if reservation is None or str(reservation.numa_nodes) != way.source:
                return Reason("move", where, f"the member is not on NUMA node {way.source} any more")
            if way.target_domain and str(reservation.cache_domain) != way.source_domain:
                return Reason("move", where, f"the member is not kept within CPUs {way.source_domain} any more")
            if len(occupancy.members_of(reservation.pod)) > 1:
                return Reason("move", where, "the containers of the pod are not all together")
            live = occupancy.directory.by_reservation.get(way.reservation, ())
            requests = [ledger.requests[key] for key in sorted(live) if key in ledger.requests]
            if not requests or len(requests) < len(live) or not all(occupancy.allocations[key].placed for key in live):
                return Reason("move", where, "somebody else sets the CPUs of a container of the pod")
            if any(occupancy.allocations[key].stable for key in live):
                return Reason("move", where, "cpus.numakin.io says shared-stable")
            if any(request.opt_in.move is Move.NEVER for request in requests):
                return Reason("move", where, "move.numakin.io says never")
            kin = ledger.learned.kin(ledger.machine, occupancy, requests[0], None)
            domain = CpuSet.parse(way.target_domain)
            movers.append(Mover(NumaSet.parse(way.target), tuple(requests), kin, domain))
        return movers

    def _fresh(self, movers: Sequence[Mover], offer: local.Moves) -> Reason | None:
        """Whether a newcomer that the observer did not know of has just been placed beside a mover, for its sake."""
        occupancy = self._ledger.occupancy
        newcomers = [*self._ledger.newcomers.since(offer.generation)]
        for mover in movers:
            request = mover.requests[0]
            here = occupancy.reservations[request.reservation_key]
            for newcomer in newcomers:
                reservation = occupancy.reservations.get(newcomer.request.reservation_key)
                beside = reservation is not None and _beside(here, reservation, in_cache=bool(mover.domain))
                if beside and newcomer.is_kin_of(request):
                    return Reason("move", mover.where, "kin of it has just been placed where it is")
        return None

    def _idle(self, movers: Sequence[Mover], step: local.Moves.Step, offer: local.Moves) -> Reason | None:
        """Whether the step brings too little home, by where the members are now."""
        ledger = self._ledger
        traffic = {
            mover.requests[0].reservation_key: ledger.learned.traffic_of(mover.requests[0].pod) for mover in movers
        }
        if movers[0].domain:
            domains = {mover.requests[0].reservation_key: mover.domain for mover in movers}
            gain = gained_in_caches(ledger.occupancy, domains, traffic)
        else:
            targets = {mover.requests[0].reservation_key: mover.target for mover in movers}
            gain = gained(ledger.machine, ledger.occupancy, targets, traffic)
        share = gain / (offer.traffic or 1.0)
        if share >= (0.0 if step.whole else offer.pays * len(movers)):
            return None
        return Reason("move", movers[0].where, f"{share:.1%} of the traffic here would come home by now")


def _taken(back: Mapping[str, Allocation], after: Occupancy) -> set[str]:
    """The reservations of those whose exclusive CPUs some other container has by now for itself, or for good."""
    others = [now.cpus if now.stable else now.exclusive for key, now in after.allocations.items() if key not in back]
    return {held.reservation for held in back.values() if any(held.exclusive.mask & cpus.mask for cpus in others)}


def _beside(here: Reservation, newcomer: Reservation, *, in_cache: bool) -> bool:
    """Whether a newcomer is on the same NUMA nodes or, where that is asked for, in the same cache domain of them."""
    same = here.numa_nodes == newcomer.numa_nodes
    return same and (not in_cache or here.cache_domain == newcomer.cache_domain)
