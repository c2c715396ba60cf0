"""What came of it: locality by the true traffic, members over several NUMA nodes, requests beyond what NUMA nodes
have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from benchmarks.quality.scenario import Scenario
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.state.allocations import as_one
from numakin.placement.state.occupancy import Occupancy


def locality(scenario: Scenario, occupancy: Occupancy, members: Mapping[str, str]) -> float:
    """Share of the traffic between pairs whose two members both lie wholly inside one same NUMA node. A member over
    several is local to nobody.
    """
    homes: dict[str, Counter[NumaSet]] = {}
    counts: Counter[str] = Counter()
    for pod, workload in members.items():
        counts[workload] += 1
        numa_nodes = home(occupancy, pod)
        if len(numa_nodes) == 1:
            homes.setdefault(workload, Counter())[numa_nodes] += 1
    inside = total = 0.0
    for (a, b), weight in scenario.weights.items():
        pairs = counts[a] * counts[b] if a != b else counts[a] * (counts[a] - 1) // 2
        if not pairs:
            continue
        mine, theirs = homes.get(a, Counter()), homes.get(b, Counter())
        local = sum(n * theirs[home] if a != b else n * (n - 1) // 2 for home, n in mine.items())
        total += weight
        inside += weight * local / pairs
    return inside / total if total else 1.0


def home(occupancy: Occupancy, pod: str) -> NumaSet:
    """All NUMA nodes that the pod's containers are on."""
    return as_one(occupancy.members_of(pod)).numa_nodes


def wide(occupancy: Occupancy) -> int:
    """Members over several NUMA nodes."""
    return sum(len(home(occupancy, pod)) > 1 for pod in occupancy.directory.by_pod)


def oversubscription(scenario: Scenario, occupancy: Occupancy) -> int:
    """Milli-CPU requested within some set of NUMA nodes beyond the CPUs that it has, over the worst set.

    By Hall's theorem the requests can be met exactly when this is 0. A worst set is one NUMA node, or a union of the
    members' own wide sets.
    """
    machine = scenario.machine
    asked: Counter[int] = Counter()
    for reservation in occupancy.reservations.values():
        asked[reservation.numa_nodes.mask] += reservation.demand.cpu_milli
    sets = {1 << node.id for node in machine.numa_nodes}
    for mask in sorted(mask for mask in asked if mask.bit_count() > 1):
        sets |= {numa_set | mask for numa_set in sets if numa_set.bit_count() > 1} | {mask}
    worst = 0
    for union in sets:
        requested = sum(milli for mask, milli in asked.items() if mask & ~union == 0)
        worst = max(worst, requested - 1000 * len(machine.cpus_of(NumaSet(union))))
    return worst
