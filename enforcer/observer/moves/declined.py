"""The moves that the hook declined: none is offered again while what it was declined in is as it was."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.plan.chains import Ways
from numakin.placement.state.occupancy import Occupancy
from numakin.placement.state.pools import is_hot
from numakin.wire import local_pb2 as local

MOST = 256
"""Declined steps that are remembered; the oldest go first."""

WINDOWS = 60
"""For so long at most: what a step would bring home changes without any reservation."""


@dataclass(frozen=True, slots=True)
class _Step:
    """state: of what it was declined in. window: the number of the one in which that was."""

    ways: Ways
    state: object
    window: int


class Declined:
    """One thread hands in what was declined, another asks."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._lock = threading.Lock()
        self._steps: deque[_Step] = deque(maxlen=MOST)
        self._window = 0

    def received(self, message: local.Moves, occupancy: Occupancy) -> None:
        """occupancy: as it was reported up to then. What was declined in an earlier one may hold by now."""
        if message.generation != occupancy.generation:
            return
        for step in message.steps:
            ways = frozenset(
                (way.reservation, NumaSet.parse(way.target), CpuSet.parse(way.target_domain)) for way in step.ways
            )
            with self._lock:
                self._steps.append(_Step(ways, state_of(self._machine, occupancy, ways), self._window))

    def now(self, occupancy: Occupancy) -> frozenset[Ways]:
        """The steps that are not to be offered in this occupancy; to be asked once a window."""
        with self._lock:
            self._window += 1
            kept = [
                step
                for step in self._steps
                if self._window - step.window <= WINDOWS and state_of(self._machine, occupancy, step.ways) == step.state
            ]
            self._steps = deque(kept, maxlen=MOST)
            return frozenset(step.ways for step in kept)


def state_of(machine: Machine, occupancy: Occupancy, ways: Ways) -> object:
    """What a step is judged by, to be compared: its members, and what their NUMA nodes and its targets carry."""
    members = sorted(key for key, _, _ in ways)
    reservations = [occupancy.reservations.get(key) for key in members]
    allocations = [
        sorted(
            (occupancy.allocations[container] for container in occupancy.directory.by_reservation.get(key, ())),
            key=lambda container: container.container,
        )
        for key in members
    ]
    nodes = NumaSet()
    for where in [target for _, target, _ in ways] + [
        reservation.numa_nodes for reservation in reservations if reservation is not None
    ]:
        nodes |= where
    nodes |= machine.nearest_mems(nodes & machine.cpu_nodes)
    load, live = occupancy.load(machine), occupancy.live
    pages = [
        {key: amount for key, amount in figures.items() if key[0] in nodes}
        for figures in (load.hugepages, live.free_hugepages)
    ]
    carried = [(load.rows.get(node), live.free_memory.get(node), live.stalled.get(node)) for node in nodes]
    hot = [is_hot(occupancy, machine.node(node).cpus.mask) for node in nodes & machine.cpu_nodes]
    own = occupancy.exclusive & machine.cpus_of(nodes & machine.cpu_nodes)
    within = (
        [
            (domain, occupancy.directory.within.get(domain, 0), is_hot(occupancy, domain))
            for node in nodes & machine.cpu_nodes
            for domain in machine.cache_domains[node]
        ]
        if any(domain for _, _, domain in ways)
        else []
    )
    return reservations, allocations, carried, hot, pages, own, within
