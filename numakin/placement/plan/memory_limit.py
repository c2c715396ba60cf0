"""No more memory than so much is left by movers at a time: which steps that leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf, isinf
from typing import TypeAlias

from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.plan.chains import Ways
from numakin.placement.state.memory_places import home_of
from numakin.placement.state.occupancy import Occupancy

MemoryOf: TypeAlias = Callable[[str], Mapping[int, int]]
"""By a reservation's key: bytes that its containers have on each NUMA node, nothing where that is not known."""


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """left: bytes that may still be left on the NUMA nodes that members go from, for the kernel to move or to leave
    there; infinite: there is no limit, and no member's memory is asked for.
    """

    machine: Machine
    occupancy: Occupancy
    memory: MemoryOf
    left: float = inf

    def leaves(self, ways: Ways) -> int:
        """Bytes that these leave; 0 without a limit, and between caches of one NUMA node."""
        return 0 if isinf(self.left) else sum(self._leaves(key, target) for key, target, _ in ways)

    def allows(self, ways: Ways) -> bool:
        """Whether these may go together. Who leaves nothing always may."""
        leaves = self.leaves(ways)
        return not leaves or leaves <= self.left

    def after(self, ways: Ways) -> MemoryLimit:
        """What may still be left when these have gone too."""
        return replace(self, left=self.left - self.leaves(ways))

    def _leaves(self, key: str, target: NumaSet) -> int:
        source = home_of(self.machine, self.occupancy.reservations[key].numa_nodes)
        gone = source - home_of(self.machine, target)
        return sum(amount for node, amount in self.memory(key).items() if node in gone) if gone else 0
