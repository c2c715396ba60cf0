"""Members that would be better off with more room: they have no home, or none of the CPUs of their own that they asked
for, or are on more NUMA nodes than they need. They are looked at again whenever room may have come free.

What is found is made with an answer that may have updates, as moves are, or at once where that is safe.
"""

from __future__ import annotations

from collections.abc import Collection

from enforcer.hook.ledger import Ledger
from numakin.placement.decide.decide import Reason, Request
from numakin.placement.decide.relocation import Moved, better, second_best
from numakin.placement.optin.options import Move, Policy
from numakin.placement.state.occupancy import Occupancy
from numakin.process.log import Log
from numakin.wire import nri_pb2 as nri

log = Log("hook.agent")

MOST_TRIED = 8
"""Members that are looked at in one turn: each is a decision's work or more. Others have the next turns."""


class SecondBest:
    """Works on the agent's ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._looked_at: Occupancy | None = None
        self._last = ""
        self._found: list[str] = []

    @property
    def found(self) -> bool:
        """Whether the last look found a member that could be better off."""
        return bool(self._found)

    def look(self) -> None:
        """Notes who could be better off now; nothing is changed."""
        if self._ledger.occupancy is not self._looked_at:
            waiting = self._waiting()
            self._found = [key for key in self._turn(waiting) if self._better(waiting[key]) is not None]

    def ask_again(self) -> None:
        """Something else than room has changed: the next look is at all of them."""
        self._looked_at = None

    def improve(self, but: str = "") -> list[nri.ContainerUpdate]:
        """Places them anew, and returns the updates. but: a reservation that has its turn another time."""
        ledger, before = self._ledger, self._ledger.occupancy
        if ledger.released or (before is self._looked_at and not self._found):
            return []
        waiting = self._waiting()
        found, self._found = [key for key in self._found if key in waiting], []
        placed = [self._placed(key, waiting[key], before) for key in found or self._turn(waiting) if key != but]
        if not any(placed):
            return []
        ledger.settle()
        return ledger.updates_since(before)

    def _turn(self, waiting: Collection[str]) -> list[str]:
        """Whose turn it is, in the order in which they came, beginning after the last one that had it."""
        keys = [*waiting]
        start = keys.index(self._last) + 1 if len(keys) > MOST_TRIED and self._last in waiting else 0
        order = [*keys[start:], *keys[:start]][:MOST_TRIED]
        self._last = order[-1] if order else ""
        self._looked_at = self._ledger.occupancy if len(keys) <= MOST_TRIED else None
        return order

    def _waiting(self) -> dict[str, list[Request]]:
        """The requests of each such reservation."""
        ledger = self._ledger
        occupancy, machine = ledger.occupancy, ledger.machine
        keys = dict.fromkeys(
            request.reservation_key
            for container, request in ledger.requests.items()
            if container in occupancy.allocations
            and request.reservation_key in occupancy.reservations
            and second_best(machine, occupancy, request)
        )
        waiting = {}
        for key in keys:
            live = occupancy.directory.by_reservation.get(key, ())
            requests = [ledger.requests[container] for container in sorted(live) if container in ledger.requests]
            stays = any(occupancy.allocations[container].stable for container in live)
            if requests and len(requests) == len(live) and not stays and all(map(_may_go, requests)):
                waiting[key] = requests
        return waiting

    def _better(self, requests: list[Request]) -> Moved | None:
        ledger = self._ledger
        try:
            kin = ledger.learned.kin(ledger.machine, ledger.occupancy, requests[0], None)
            return better(ledger.machine, ledger.occupancy, requests, kin, ledger.memory_of)
        except Exception:
            log.exception("a member could not be looked at again", pod=requests[0].pod)
            return None

    def _placed(self, key: str, requests: list[Request], before: Occupancy) -> bool:
        ledger, moved = self._ledger, self._better(requests)
        if moved is None:
            return False
        was = before.reservations[key].numa_nodes
        held = before.allocations[requests[0].container]
        why = Reason("room", "left open" if held.open else f"NUMA node {was}", "there is more room than when it came")
        ledger.occupancy = moved.occupancy
        residents = ledger.residents.now()
        for request, decision in moved.decisions:
            ledger.tell_lenders(decision)
            if request.container in residents:
                at = ledger.occupancy.generation
                ledger.records.again(residents[request.container], decision, why, event="room", at=at)
        return True


def _may_go(request: Request) -> bool:
    return request.opt_in.move is not Move.NEVER and request.opt_in.policy is not Policy.NONE
