"""Members that are kept within a cache domain: let out of it while it is hot, kept within one as soon as one has room.

A domain is hot when its CPUs are nearly all in use while its NUMA node has CPUs to spare. It is cool again only when
what its members take, wherever they run meanwhile, would leave it room: so nobody is sent to and fro.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from enforcer.hook.ledger import Ledger
from placement.decide.cpus.cache_domain import domain_for, keeps_to_cache
from placement.decide.request import Request
from placement.model.cpuset import CpuSet
from placement.model.live_usage import Live
from placement.state.pools import is_hot
from process.log import Log

log = Log("hook.agent")

HOT = 0.9
"""Share of a domain's CPUs that are in use when it gets hot; of its NUMA node's less must be."""

COOL = 0.6
"""Share of its CPUs that its members use when it is cool again."""

READINGS = 12
"""Members' use of a hot domain is a mean that leans on about this many readings, a minute's."""

MOST_TRIED = 8
"""Members for which a domain is looked for at one time: each is a decision's work."""


class CacheDomains:
    """Changes the ledger's occupancy; whose CPUs are others then is `ledger.settle`'s to find."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger, self._clock = ledger, clock
        self._seconds: dict[str, tuple[float, float]] = {}
        self._used: dict[int, float] = {}
        self._tried = -1

    def turn(self) -> None:
        """Notes which domains have become hot or cool."""
        occupancy, turned = self._ledger.occupancy, dict[int, bool]()
        for mask in occupancy.directory.within:
            domain = CpuSet(mask)
            hot = self._still_hot(domain) if is_hot(occupancy, mask) else self._gets_hot(domain)
            if hot != is_hot(occupancy, mask):
                turned[domain.lowest] = hot
                self._used[domain.lowest] = float(len(domain))
                effect = "hot: its members have all CPUs of their NUMA node" if hot else "cool: its members are back"
                log.info(f"cache domain {effect}", cpus=domain)
        if not any(occupancy.live.hot_caches.values()):
            self._seconds.clear()
        if turned:
            self._ledger.occupancy = occupancy.with_live(occupancy.live.after(Live(hot_caches=turned)))

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

    def _gets_hot(self, domain: CpuSet) -> bool:
        busy = self._ledger.node.busy_caches().get(domain.lowest, 0.0)
        if busy < HOT * len(domain):
            return False
        machine, live = self._ledger.machine, self._ledger.occupancy.live
        numa_node = machine.node_of(domain.lowest)
        return live.used_cpu.get(numa_node, 0) < 1000 * HOT * machine.cpu_counts[numa_node]

    def _still_hot(self, domain: CpuSet) -> bool:
        mean = self._used.get(domain.lowest, float(len(domain)))
        mean += (self._members_use(domain) - mean) / READINGS
        self._used[domain.lowest] = mean
        return mean > COOL * len(domain)

    def _members_use(self, domain: CpuSet) -> float:
        """CPUs that the domain's members have used since they were last asked; as many as it has where that is not
        known.
        """
        ledger, total, known = self._ledger, 0.0, False
        paths = ledger.residents.now()
        for container, allocation in ledger.occupancy.allocations.items():
            reservation = ledger.occupancy.reservations.get(allocation.reservation)
            if reservation is None or reservation.cache_domain != domain or container not in paths:
                continue
            used = self._use(container, paths[container].cgroups_path)
            total, known = total + (used or 0.0), known or used is not None
        return total if known else float(len(domain))

    def _use(self, container: str, cgroups_path: str) -> float | None:
        seconds, now = self._ledger.node.cpu_seconds(cgroups_path), self._clock()
        if seconds is None:
            return None
        before, self._seconds[container] = self._seconds.get(container), (seconds, now)
        if before is None or now <= before[1]:
            return None
        return max(0.0, seconds - before[0]) / (now - before[1])
