"""Members where a test has put them."""

from __future__ import annotations

from numakin.placement.state.occupancy import Occupancy, Reservation
from tests.numakin.placement.asking import demand, nodes


def seated(where: dict[str, str], cpu: float = 2) -> tuple[Occupancy, dict[str, str]]:
    """Pods NAME-NUMBER, each where it says."""
    occupancy = Occupancy()
    for pod, numa_nodes in where.items():
        occupancy = occupancy.with_reservation(Reservation(pod, pod, "", nodes(numa_nodes), demand(cpu)))
    return occupancy, {pod: pod.rpartition("-")[0] for pod in where}
