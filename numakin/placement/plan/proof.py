"""What a step of moves came to: how much of what its members exchange stays inside their NUMA nodes, or their caches,
beside how much did before and how much the step was to bring.

Shares of what they exchange themselves, and not weights: load rises and falls meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isnan, nan

from numakin.placement.decide.cpus.cache_domain import kin_mask
from numakin.placement.model.topology import Machine
from numakin.placement.plan.problem import Weights
from numakin.placement.plan.rebalance import Step
from numakin.placement.plan.worth import exchanged, gained, gained_in_caches
from numakin.placement.state.occupancy import Occupancy, Reservation

KEPT = 0.5
"""Share of what was promised that a step must have brought, to have helped: the rest is rates' ups and downs, and what
other moves and newcomers did.
"""


@dataclass(frozen=True, slots=True)
class Proof:
    """Shares of what the members exchange with others here that stays inside: before the step, as it promised, and as
    was found afterwards; NaN: nothing was exchanged.
    """

    before: float
    promised: float
    after: float = nan

    @property
    def known(self) -> bool:
        return not isnan(self.after + self.before + self.promised)

    @property
    def helped(self) -> bool:
        return self.after - self.before >= KEPT * (self.promised - self.before)


def promise(occupancy: Occupancy, step: Step, talk: Weights) -> Proof:
    """To be asked before the step is made. talk: what pairs of reservations exchange."""
    moved = {
        way.reservation: replace(
            occupancy.reservations[way.reservation], numa_nodes=way.target, cache_domain=way.target_domain
        )
        for way in step
    }
    return Proof(_share(occupancy, step, talk, {}), _share(occupancy, step, talk, moved))


def proven(occupancy: Occupancy, step: Step, talk: Weights, promised: Proof) -> Proof:
    """With what stays inside now."""
    return replace(promised, after=_share(occupancy, step, talk, {}))


def way_back(machine: Machine, occupancy: Occupancy, step: Step, talk: Weights) -> Step:
    """The members to where they were. Its gain is a share of all that the members here exchange now."""
    traffic = sum(weight for pair, weight in talk.items() if occupancy.reservations.keys() >= {*pair})
    rows = exchanged((way.reservation for way in step), talk)
    if step[0].target_domain:
        gain = gained_in_caches(occupancy, {way.reservation: way.source_domain for way in step}, rows)
    else:
        gain = gained(machine, occupancy, {way.reservation: way.source for way in step}, rows)
    return tuple(
        replace(
            way,
            source=way.target,
            target=way.source,
            source_domain=way.target_domain,
            target_domain=way.source_domain,
            gain=gain / (traffic or 1.0),
        )
        for way in step
    )


def _share(occupancy: Occupancy, step: Step, talk: Weights, moved: Mapping[str, Reservation]) -> float:
    """Of what the step's members exchange with others here, those who have moved being where they would be."""
    reservations = {**occupancy.reservations, **moved}
    members = {way.reservation for way in step}
    total = inside = 0.0
    for pair, weight in talk.items():
        if members.isdisjoint(pair) or pair[0] == pair[1] or not reservations.keys() >= {*pair}:
            continue
        first, other = pair if pair[0] in members else pair[::-1]
        if len(reservations[other].numa_nodes) != 1:
            continue
        total += weight
        if step[0].target_domain:
            inside += weight * _in_one_cache(occupancy, reservations[first], reservations[other])
        else:
            inside += weight * (reservations[first].numa_nodes == reservations[other].numa_nodes)
    return inside / total if total > 0 else nan


def _in_one_cache(occupancy: Occupancy, member: Reservation, peer: Reservation) -> float:
    """How much of a peer is within the member's cache domain."""
    mask = kin_mask(occupancy, peer)
    return (mask & member.cache_domain.mask).bit_count() / mask.bit_count() if mask else 0.0
