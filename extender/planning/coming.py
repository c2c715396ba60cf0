"""What is still to come of a group that waits for nodes, as it is packed with others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from extender.state.admission import ANYWHERE, NodeSet
from extender.state.columns.free_room import NO_ROOM, CpuMemoryPods, NumaPlace
from numakin.placement.model.live_usage import Devices
from numakin.placement.plan.problem import CpuAndMemory

NODE_WORTH = 0.3
"""What two pods are worth to each other on a node, where on one NUMA node it is 1."""


class Pod(NamedTuple):
    """One that waits. asks: what it is expected to take; no NUMA node holds more than it has. where: it may go.
    pages: bytes that it asks for in hugepages, by their size. devices: of each resource. overhead: what it takes of its
    node beside that.
    """

    uid: str
    workload: str
    asks: CpuMemoryPods
    where: NodeSet = ANYWHERE
    pages: tuple[tuple[int, int], ...] = ()
    devices: Devices = ()
    overhead: CpuAndMemory = (0, 0)


@dataclass(frozen=True, slots=True)
class Coming:
    """What is still to come of a group. beyond, beyond_devices: of members that may come, and have to find room as
    well. here: how many members are on each NUMA node. barred: nodes where it may not go. priority: its highest.
    grows: more of it was created a moment ago, so that it is not known how large it will be. later: pods that are about
    to be created: they are planned beside the others, and no group of the same plan gets their room. apart_from:
    others, as `group` names them, with which it shares no node. going: how many members on each NUMA node are about to
    be replaced, which do not count as here; freed: the room that they have until then, for those that come later alone.
    ahead: what may come before they have left it.
    """

    group: str
    pods: Sequence[Pod]
    beyond: CpuMemoryPods = NO_ROOM
    here: Mapping[NumaPlace, int] = field(default_factory=dict)
    barred: frozenset[str] = frozenset()
    priority: int = 0
    grows: bool = False
    later: Sequence[Pod] = ()
    apart_from: frozenset[str] = frozenset()
    beyond_devices: Devices = ()
    going: Mapping[NumaPlace, int] = field(default_factory=dict)
    freed: Mapping[NumaPlace, CpuMemoryPods] = field(default_factory=dict)
    ahead: CpuMemoryPods = NO_ROOM

    @property
    def begun(self) -> bool:
        """Whether it has members, so that it cannot choose as others can."""
        return bool(self.here or self.going)

    @property
    def urgency(self) -> tuple[bool, bool]:
        """The less it can choose, the sooner its turn is."""
        return not self.here, not self.going

    @property
    def all(self) -> list[Pod]:
        """Those that are planned."""
        return [*self.pods, *self.later]

    @property
    def asks(self) -> CpuMemoryPods:
        return summed(self.all)

    @property
    def led(self) -> bool:
        """Whether devices say where it can be."""
        return bool(self.beyond_devices) or any(pod.devices for pod in self.all)

    def worth(self, places: Mapping[str, NumaPlace]) -> float:
        """What it is worth to the group, of 1, to have its pods there."""
        there, on_nodes = Counter(places.values()) + Counter(self.here), Counter[str]()
        for place, count in there.items():
            on_nodes[place.node] += count
        total = sum(self.here.values()) + len(self.all)
        near = (1 - NODE_WORTH) * pairs(there.values()) + NODE_WORTH * pairs(on_nodes.values())
        return near / max(1, total**2)


def summed(pods: Sequence[Pod]) -> CpuMemoryPods:
    return sum(pod.asks[0] for pod in pods), sum(pod.asks[1] for pod in pods), len(pods)


def pairs(counts: Iterable[int]) -> int:
    return sum(count * count for count in counts)
