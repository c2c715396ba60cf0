"""The map of pairs.h, read: cumulative counters by pair of cgroups."""

from typing import Literal

from enforcer.observe.bpf import syscall
from enforcer.observe.bpf.contract import PAIR_KEY, PAIR_VALUE
from enforcer.observe.bpf.counters import CgroupPair, CounterKey, CounterSnapshot, Volume
from enforcer.observe.bpf.idle import Idle
from enforcer.observe.bpf.loader import LoadedPrograms
from enforcer.observe.bpf.missed import MissedArray

PAIRS = 4096
"""Pairs of cgroups that a node can have at once, of one kind, at the most. 16 bytes for each and each CPU: 8 MB on 128
CPUs.
"""

MEMORY = 32 << 20
"""That those of one kind may take, as of flows."""

MAPS = ("pairs", "missed")
SOURCES = ("contract.h", "missed.h", "pairs.h")
OFFSETS = ("task_struct.cgroups", "css_set.dfl_cgrp", "cgroup.kn", "kernfs_node.id")


def most_pairs(cpus: int) -> int:
    """As many as there is memory for with so many CPUs: fewer than PAIRS beyond 512."""
    return min(PAIRS, MEMORY // (PAIR_VALUE.size * cpus))


class PairMap:
    """Reads the maps of one loaded program."""

    def __init__(self, loaded: LoadedPrograms, kind: Literal["unix", "wake"], capacity: int = PAIRS) -> None:
        self._kind = kind
        self._pairs = syscall.Map(loaded.maps["pairs"], PAIR_KEY.size, PAIR_VALUE.size, cpus=syscall.possible_cpus())
        self._missed = MissedArray(loaded)
        self._idle: Idle[bytes] = Idle(capacity)

    def read(self) -> CounterSnapshot:
        counters: dict[CounterKey, Volume] = {}
        events: dict[bytes, int] = {}
        for key, values in self._pairs.items():
            volume = total(values)
            counters[self._pair(key)] = volume
            events[key] = volume.tx_messages
        forgotten = set()
        for key in self._idle.after(events):
            if total(self._pairs.lookup(key)).tx_messages == events[key]:
                self._pairs.delete(key)
                forgotten.add(self._pair(key))
        return CounterSnapshot(counters, self._missed.read(), frozenset(forgotten))

    def _pair(self, key: bytes) -> CgroupPair:
        source, target, pid, _ = PAIR_KEY.unpack(key)
        return CgroupPair(self._kind, source, target, pid)


def total(values: bytes) -> Volume:
    """The sum over CPUs."""
    counters = memoryview(values).cast("Q")
    return Volume(tx_bytes=sum(counters[0::2]), tx_messages=sum(counters[1::2]))
