"""The state at one moment, joined for the page: which pod is where, and what its traffic crosses.

A scene is made only when it is asked for, and then serves every reader for a while: the longer it takes to make, the
longer, so that readers cost a bounded share of one CPU however many they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from threading import Lock

from extender.cluster import Cluster
from extender.picture import Picture
from extender.state.groups import Member
from extender.traffic.known import ClusterTraffic
from extender.views import readout
from numakin.placement.model.cpuset import NumaSet

FRESH_S = 1.0
"""Seconds for which a scene serves at least."""

SHARE = 0.1
"""Of the time that making scenes, and the overview of each, may take while a page is open."""


class Reach(StrEnum):
    """What traffic between two pods crosses. LOCAL: both lie wholly inside one same NUMA node."""

    LOCAL = "local"
    NUMA = "numa"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class PodPlace:
    """Where a pod is, all of its reservations together."""

    node: str
    numa_nodes: NumaSet

    def reach(self, other: PodPlace) -> Reach:
        if self.node != other.node:
            return Reach.NODE
        return Reach.LOCAL if self == other and len(self.numa_nodes) == 1 else Reach.NUMA


@dataclass(frozen=True, slots=True)
class Line:
    """What two pods exchange, both directions and all kinds together; rates are per second. pods: uids, ascending.
    sent: of the bytes, those from the first to the second.
    """

    pods: tuple[str, str]
    bytes: float
    sent: float
    messages: float
    weight: float
    reach: Reach

    def peer(self, pod: str) -> str:
        return self.pods[1] if self.pods[0] == pod else self.pods[0]

    def sent_by(self, pod: str) -> float:
        return self.sent if self.pods[0] == pod else self.bytes - self.sent


@dataclass(frozen=True)
class Scene:
    """Immutable. at: seconds, of the cluster's clock."""

    picture: Picture
    known: ClusterTraffic
    at: float = 0.0

    @cached_property
    def groups(self) -> dict[str, list[Member]]:
        return readout.members(self.picture)

    @cached_property
    def group_of(self) -> dict[str, str]:
        """By pod uid."""
        return {member.reservation.pod: group for group, members in self.groups.items() for member in members}

    @cached_property
    def places(self) -> dict[str, PodPlace]:
        """Of opted-in pods, the assumed ones too, by uid."""
        return {
            pod.pod: PodPlace(state.view.name, pod.numa_nodes)
            for state in self.picture.nodes
            for pod in state.view.index.members
        }

    @cached_property
    def lines(self) -> dict[tuple[str, str], Line]:
        """Between pods that are both placed."""
        weigh, places = self.known.pods.costs.weight, self.places
        sums: dict[tuple[str, str], tuple[float, float, float, float]] = {}
        for key, rate in self.known.pods.edges.items():
            if key.source in places and key.target in places:
                pods = min(key[:2]), max(key[:2])
                size, sent, messages, weight = sums.get(pods, (0.0, 0.0, 0.0, 0.0))
                sent += rate.bytes if key.source == pods[0] else 0.0
                sums[pods] = size + rate.bytes, sent, messages + rate.messages, weight + weigh(key.kind, rate)
        return {pods: Line(pods, *rates, places[pods[0]].reach(places[pods[1]])) for pods, rates in sums.items()}

    @cached_property
    def lines_of(self) -> dict[str, list[Line]]:
        """By pod uid."""
        lines: dict[str, list[Line]] = {}
        for line in self.lines.values():
            for pod in line.pods:
                lines.setdefault(pod, []).append(line)
        return lines

    @cached_property
    def node_traffic(self) -> dict[str, dict[Reach, float]]:
        """Bytes a second by node and by what they cross; what crosses nodes counts for both."""
        traffic: dict[str, dict[Reach, float]] = {}
        for line in self.lines.values():
            for node in {self.places[pod].node for pod in line.pods}:
                rates = traffic.setdefault(node, dict.fromkeys(Reach, 0.0))
                rates[line.reach] += line.bytes
        return traffic

    def name(self, uid: str) -> str:
        """NAMESPACE/NAME, or the uid where that is not known."""
        return self.picture.names.get(uid, uid)

    def workload(self, uid: str) -> str:
        return self.picture.workloads.get(uid, "")


def by_reach(lines: Iterator[Line]) -> Mapping[Reach, float]:
    """Bytes a second by what they cross."""
    sums = dict.fromkeys(Reach, 0.0)
    for line in lines:
        sums[line.reach] += line.bytes
    return sums


class Scenes:
    """The latest scene, for any number of threads."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster, self._clock = cluster, clock
        self._lock = Lock()
        self._scene: Scene | None = None
        self._began = self._took = 0.0

    def current(self) -> Scene:
        with self._lock:
            began = self._clock()
            if self._scene is None or began >= self._began + max(FRESH_S, self._took / SHARE):
                self._scene = Scene(self._cluster.picture(), self._cluster.known, self._cluster.clock())
                _ = self._scene.lines
                self._began, self._took = began, self._clock() - began
            return self._scene

    @contextmanager
    def counted(self) -> Iterator[None]:
        """What is done once with each scene takes its time too."""
        began = self._clock()
        yield
        with self._lock:
            self._took += self._clock() - began
