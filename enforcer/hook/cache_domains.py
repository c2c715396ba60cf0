"""Members that ask for a cache domain: kept within one as soon as one has room. Who leaves a hot one is `relief`'s."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from enforcer.hook.ledger import Ledger
from numakin.placement.decide.cpus.cache_domain import domain_for, keeps_to_cache
from numakin.placement.decide.request import Request
from numakin.process.log import Log

log = Log("hook.agent")

MOST_TRIED = 8
"""Members for which a domain is looked for at one time: each is a decision's work."""


class CacheDomains:
    """Changes the ledger's occupancy; whose CPUs are others then is `ledger.settle`'s to find."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._tried = -1

    def keep(self) -> None:
        """Finds a domain for members that ask for one and had none with room; again only after something changed."""
        ledger = self._ledger
        if ledger.occupancy.generation == self._tried or not any(ledger.machine.cache_domains.values()):
            return
        smallest_first = sorted(self._unkept(), key=lambda request: request.reservation_demand.cpu_milli)
        for request in smallest_first[:MOST_TRIED]:
            kin = ledger.learned.kin(ledger.machine, ledger.occupancy, request, ledger.nominations.kin(request.pod))
            domain = domain_for(ledger.machine, ledger.occupancy, request, kin)
            if domain:
                reservation = ledger.occupancy.reservations[request.reservation_key]
                ledger.occupancy = ledger.occupancy.with_reservation(replace(reservation, cache_domain=domain))
                log.info("kept within a cache domain from now on", pod=request.pod, cpus=domain)
        self._tried = ledger.occupancy.generation

    def _unkept(self) -> Iterator[Request]:
        """A request of each such reservation."""
        occupancy, seen = self._ledger.occupancy, set[str]()
        for container, request in self._ledger.requests.items():
            reservation, allocation = (
                occupancy.reservations.get(request.reservation_key),
                occupancy.allocations.get(container),
            )
            if reservation is None or allocation is None or not allocation.placed or reservation.cache_domain:
                continue
            if request.reservation_key not in seen and keeps_to_cache(request, occupancy.rules):
                seen.add(request.reservation_key)
                yield request
