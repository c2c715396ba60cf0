"""Who is on a node, found by pod and by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from placement.state.occupancy import Occupancy, Reservation


@dataclass(frozen=True, slots=True)
class NodeIndex:
    """Who is on a node, as it is asked for again and again. Assumed pods count, but for those that have ended.

    members: the reservations of opted-in pods; member_pods: their uids; group_reservations: how many each group has.
    pods, reported_members: the uids of all pods, and of the opted-in ones, that the enforcer reported.
    """

    members: tuple[Reservation, ...]
    member_pods: frozenset[str]
    group_reservations: Mapping[str, int]
    pods: frozenset[str]
    reported_members: frozenset[str]

    @classmethod
    def of(cls, reported: Occupancy, expected: Occupancy) -> NodeIndex:
        members = tuple(reservation for reservation in expected.reservations.values() if reservation.opted_in)
        shown = reported.reservations.values()
        return cls(
            members,
            frozenset(reservation.pod for reservation in members),
            Counter(reservation.group for reservation in members if reservation.group),
            frozenset(reservation.pod for reservation in shown),
            frozenset(reservation.pod for reservation in shown if reservation.opted_in),
        )
