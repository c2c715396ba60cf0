"""What places containers on a node's NUMA nodes where numakin does not.

All are played kindly: every container counts as if it were Guaranteed with whole CPUs, so that it is aligned at all.
"""

from __future__ import annotations

from collections import defaultdict

from lab.demo.locality import Place
from lab.demo.shop import Pod
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.topology import Machine


class LowestFirst:
    """The kubelet's topology manager: the lowest-numbered NUMA node that fits, else the emptiest."""

    def __init__(self, name: str, machine: Machine) -> None:
        self.name, self.machine = name, machine
        self.free = {node: 1000.0 * len(machine.node(node).cpus) for node in machine.cpu_nodes}
        self._on: dict[Pod, int] = {}

    def place(self, pod: Pod) -> None:
        node = self.choose(pod)
        self.free[node] -= pod.service.cpu_milli
        self._on[pod] = node

    def places(self) -> dict[Pod, Place]:
        """Where each pod is in the end."""
        return {pod: Place(self.name, NumaSet.of((node,))) for pod, node in self._on.items()}

    def choose(self, pod: Pod) -> int:
        return next((node for node in sorted(self.free) if self.fits(pod, node)), self.emptiest())

    def fits(self, pod: Pod, node: int) -> bool:
        return self.free[node] >= pod.service.cpu_milli

    def emptiest(self) -> int:
        return max(sorted(self.free), key=lambda node: self.free[node])


class Spread(LowestFirst):
    """The emptiest NUMA node, as the kernel's load balancing or a spreading policy would."""

    def choose(self, _pod: Pod) -> int:
        return self.emptiest()


class Balloons(LowestFirst):
    """A balloon for each group, as nri-plugins' balloons has them: it begins on the emptiest NUMA node and grows to the
    closest ones when that is full. All of its pods run on all of its CPUs.
    """

    def __init__(self, name: str, machine: Machine) -> None:
        super().__init__(name, machine)
        self._balloons: dict[str, list[int]] = defaultdict(list)

    def choose(self, pod: Pod) -> int:
        balloon = self._balloons[pod.shop]
        node = next((node for node in balloon if self.fits(pod, node)), None)
        if node is None:
            node = self._grown(pod, balloon)
            balloon.append(node)
        return node

    def places(self) -> dict[Pod, Place]:
        return {pod: Place(self.name, NumaSet.of(self._balloons[pod.shop])) for pod in self._on}

    def _grown(self, pod: Pod, balloon: list[int]) -> int:
        if not balloon:
            return self.emptiest()
        distances = self.machine.node(balloon[0]).distances
        others = [node for node in self.free if node not in balloon and self.fits(pod, node)]
        return min(others, key=lambda node: (distances[node], -self.free[node]), default=balloon[0])
