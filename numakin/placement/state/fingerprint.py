"""The fingerprint of placements: 64 bits by which two ends check that they hold the same ones.

It is a sum over what is held, as the pod fingerprint of scheduler-plugins is a sum over pods: so it does not depend on
the order, and a change adds and takes away its own parts only. The same in every process: nothing of Python's own
hashing is in it.
"""

from __future__ import annotations

from _blake2 import blake2b  # not by hashlib, which loads OpenSSL: 3 MiB
from collections.abc import Iterable

from numakin.placement.state.allocations import Allocation, Reservation

MODULUS = 1 << 64


def of_reservation(reservation: Reservation) -> int:
    """What a reservation adds to the sum."""
    demand = reservation.demand
    parts = [(*part[:3], *part.hugepages) for part in reservation.parts]
    within = f" within {reservation.cache_domain.mask:x}" if reservation.cache_domain else ""
    use = f" uses {demand.used_milli}" if demand.used_milli else ""
    out = f" out {reservation.let_out.mask:x}" if reservation.let_out else ""
    return _hashed(
        f"s {reservation.key} {reservation.group} {reservation.numa_nodes.mask:x} {demand.cpu_milli} {demand.memory}"
        f" {reservation.pool} {reservation.alone:d} {reservation.size} {parts}{within}{use}{out}"
    )


def of_allocation(allocation: Allocation) -> int:
    """What an allocation adds to the sum."""
    kind = " open" if allocation.open else " stable" if allocation.stable else ""
    return _hashed(
        f"h {allocation.container} {allocation.reservation} {allocation.cpus.mask:x} {allocation.mems.mask:x}"
        f" {allocation.exclusive.mask:x} {allocation.externally_managed:d}{kind}"
    )


def fingerprint(reservations: Iterable[Reservation], allocations: Iterable[Allocation]) -> int:
    """Of all these together, counted anew."""
    return (sum(map(of_reservation, reservations)) + sum(map(of_allocation, allocations))) % MODULUS


def _hashed(line: str) -> int:
    return int.from_bytes(blake2b(line.encode(), digest_size=8).digest(), "big")
