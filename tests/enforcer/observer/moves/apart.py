"""Occupancies of members by their NUMA nodes."""

from __future__ import annotations

from numakin.placement.model.cpuset import NumaSet
from numakin.placement.state.occupancy import Occupancy, Reservation
from tests.numakin.placement.asking import demand


def at(**homes: str) -> Occupancy:
    occupancy = Occupancy()
    for pod, home in homes.items():
        occupancy = occupancy.with_reservation(
            Reservation(pod, pod, "", NumaSet.parse(home), demand(1), workload=f"ns/Deployment/{pod}")
        )
    return occupancy
