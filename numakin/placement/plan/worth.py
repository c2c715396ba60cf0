"""What it is worth to move members that run, by what they exchange with whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from numakin.placement.decide.cpus.cache_domain import kin_mask
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.plan.problem import Weights, nearness
from numakin.placement.state.occupancy import Occupancy

PAYS = 0.001
"""Share of all traffic that the move of one member must bring home. A step that gains less for each is not worth a
member's warm caches and far pages.
"""

PAYS_OF_MEAN = 0.1
"""The same where members are many: of what one has of all traffic in the mean. With 270 of them on 16 NUMA nodes `PAYS`
is over a quarter of that, and those that are apart would stay so.
"""


def pays(members: int) -> float:
    """The share of all traffic that the move of one of so many members must bring home."""
    return min(PAYS, PAYS_OF_MEAN / members) if members else PAYS


def exchanged(keys: Iterable[str], talk: Weights) -> dict[str, dict[str, float]]:
    """What each of these reservations exchanges with each peer, by reservation key, as `gained` takes it. talk: what
    pairs of reservations exchange.
    """
    rows: dict[str, dict[str, float]] = {key: {} for key in keys}
    for (first, other), weight in talk.items():
        for mine, theirs in ((first, other), (other, first)):
            if mine in rows and first != other:
                rows[mine][theirs] = rows[mine].get(theirs, 0.0) + weight
    return rows


def gained(
    machine: Machine,
    occupancy: Occupancy,
    targets: Mapping[str, NumaSet],
    traffic: Mapping[str, Mapping[str, float]],
) -> float:
    """The weight that comes home when these reservations go to these NUMA nodes together; negative: so much leaves it.

    targets: one NUMA node for each reservation key. traffic: what each of them exchanges with each peer, by reservation
    key. As when moves are looked for, only peers on one NUMA node count.
    """
    weight_home = 0.0
    for key, target in targets.items():
        here = occupancy.reservations[key].numa_nodes.lowest
        for peer, weight in traffic.get(key, {}).items():
            reservation = occupancy.reservations.get(peer)
            if reservation is None or len(reservation.numa_nodes) != 1:
                continue
            before = reservation.numa_nodes.lowest
            after = targets[peer].lowest if peer in targets else before
            once = weight / 2 if peer in targets else weight
            weight_home += once * (nearness(machine, target.lowest, after) - nearness(machine, here, before))
    return weight_home


def gained_in_caches(
    occupancy: Occupancy, targets: Mapping[str, CpuSet], traffic: Mapping[str, Mapping[str, float]]
) -> float:
    """As `gained`, of reservations that go to other cache domains of their NUMA nodes: the weight that comes into one
    cache. A peer on exclusive CPUs in several counts with its share of each.
    """
    weight_near = 0.0
    for key, target in targets.items():
        here = occupancy.reservations[key].cache_domain.mask
        for peer, weight in traffic.get(key, {}).items():
            reservation = occupancy.reservations.get(peer)
            before = kin_mask(occupancy, reservation) if reservation is not None else 0
            if not before:
                continue
            after = targets[peer].mask if peer in targets else before
            once = weight / 2 if peer in targets else weight
            weight_near += once * (_share(after, target.mask) - _share(before, here))
    return weight_near


def _share(mask: int, domain: int) -> float:
    return (mask & domain).bit_count() / mask.bit_count()
