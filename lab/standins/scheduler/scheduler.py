"""The scheduling cycle: one pod after the other, without waiting for any binding."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

import numpy as np

from lab.standins.scheduler.cache import NodeCache, Room
from lab.standins.scheduler.in_tree import in_tree
from lab.standins.scheduler.sampling import Sampler


class Extender(Protocol):
    """What the scheduler asks of an extender with a prioritizeVerb."""

    def prioritize(self, pod: Mapping[str, Any], nodes: Sequence[str]) -> dict[str, int]: ...


class Filter(Protocol):
    """What it asks before, of one with a filterVerb."""

    def filter(self, pod: Mapping[str, Any], nodes: Sequence[str]) -> list[str]: ...


class DoesNotFitError(RuntimeError):
    """No node has room for the pod."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A node. offered: those that the extender was asked about; extender: its scores, 0 to 10 by node."""

    node: str
    offered: Sequence[str]
    extender: Mapping[str, int]


class Scheduler:
    """extender: None plays a cluster without one. filters: the same one, where its configuration has a filterVerb too;
    of those that numakin ships only the strict one has. weight, percentage: as in a KubeSchedulerConfiguration.

    random: draws lots among the best nodes.
    """

    def __init__(
        self,
        rooms: Mapping[str, Room],
        extender: Extender | None = None,
        *,
        filters: Filter | None = None,
        random: Random,
        weight: int = 5,
        percentage: int = 0,
    ) -> None:
        self._cache = NodeCache(rooms)
        self._sampler = Sampler(percentage)
        self._extender, self._filter, self._weight, self._random = extender, filters, weight, random

    def schedule(
        self, pod: Mapping[str, Any], workload: str, want: Room, within: Collection[str] | None = None
    ) -> Choice:
        """Chooses, and counts the pod there at once. The API server does not know of it before it is bound (`binding`).

        within: the nodes of a placement; None: all.
        """
        names, fits = self._cache.names, self._cache.fits(want)
        if within is not None:
            fits &= np.array([name in within for name in names], dtype=np.bool_)
        offered = [names[at] for at in self._sampler.feasible(fits).tolist()]
        feasible = self._filter.filter(pod, offered) if self._filter is not None and offered else offered
        if not feasible:
            asked = f"{want.cpu_milli / 1000:g} CPUs and {want.memory >> 20} MiB"
            raise DoesNotFitError(f"no node has {asked} left, and a place for one more pod")
        extra: dict[str, int] = {}
        if self._extender is not None and len(feasible) > 1:
            # With one feasible node kube-scheduler does not ask for scores.
            extra = self._extender.prioritize(pod, feasible)
        at = self._cache.positions(feasible)
        points = in_tree(self._cache.shares(at, want), self._cache.replicas(at, workload))
        points += self._weight * 10 * np.array([extra.get(name, 0) for name in feasible])
        node = feasible[self._random.choice(np.flatnonzero(points == points.max()).tolist())]
        self._cache.assume(node, workload, want)
        return Choice(node, offered, extra)

    def assume(self, node: str, workload: str, want: Room) -> None:
        """A pod of this size counts there."""
        self._cache.assume(node, workload, want)

    def forget(self, node: str, workload: str, want: Room) -> None:
        """A pod of this size is gone."""
        self._cache.forget(node, workload, want)

    def remove(self, nodes: Iterable[str]) -> None:
        self._cache.remove(nodes)
        self._sampler.restart()
