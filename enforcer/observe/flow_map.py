"""The maps of account.h, read: cumulative counters by flow, with idle keys deleted so that the map does not fill up."""

from collections.abc import Iterator

from enforcer.observe import bpf
from enforcer.observe.contract import EDGE_KEY, EDGE_VALUE, EPHEMERAL_FLOOR
from enforcer.observe.counters import Flow, Key, Missed, Snapshot, Volume
from enforcer.observe.loader import Loaded

EDGES = 8192
"""Flows that a node can have at once. 32 bytes for each and each CPU: 34 MB on 128 CPUs."""

IDLE_DRAINS = 30
"""A flow that did not move for so many readings is deleted: five minutes at a reading every ten seconds."""

IDLE_DRAINS_CROWDED = 3
"""The same once three quarters of the map are in use."""

MAPS = ("edges", "missed", "listening")
SOURCES = ("contract.h", "account.h")


class FlowMap:
    """Reads the maps of one loaded program. Idle deletion can lose what arrives in the microsecond around it."""

    def __init__(self, loaded: Loaded, capacity: int = EDGES) -> None:
        cpus = bpf.possible_cpus()
        self._edges = bpf.Map(loaded.maps["edges"], EDGE_KEY.size, EDGE_VALUE.size, cpus=cpus)
        self._missed = bpf.Map(loaded.maps["missed"], 4, 8, cpus=cpus)
        self._listening = bpf.Map(loaded.maps["listening"], 4, 1)
        self._capacity = capacity
        self._idle: dict[bytes, tuple[int, int]] = {}

    def read(self) -> Snapshot:
        counters: dict[Key, Volume] = {}
        idle: dict[bytes, tuple[int, int]] = {}
        for key, values in self._edges.items():
            volume = total(values)
            counters[flow(key)] = volume
            messages = volume.tx_messages + volume.rx_messages
            before, readings = self._idle.get(key, (-1, 0))
            idle[key] = (messages, readings + 1 if before == messages else 0)
        self._idle = idle
        return Snapshot(counters, self._read_missed(), frozenset(self._forget_idle()))

    def _read_missed(self) -> Missed:
        slots = [self._missed.lookup(slot.to_bytes(4, "little")) for slot in range(4)]
        return Missed(*(sum(memoryview(slot).cast("Q")) for slot in slots))

    def _forget_idle(self) -> Iterator[Key]:
        crowded = len(self._idle) * 4 >= self._capacity * 3
        limit = IDLE_DRAINS_CROWDED if crowded else IDLE_DRAINS
        for key in [key for key, (_, readings) in self._idle.items() if readings >= limit]:
            messages, _ = self._idle[key]
            latest = total(self._edges.lookup(key))
            if latest.tx_messages + latest.rx_messages == messages:
                self._edges.delete(key)
                del self._idle[key]
                yield flow(key)

    def learn_listening(self, port: int) -> None:
        """Say that `port` is a server's though it lies in the ephemeral range."""
        if port >= EPHEMERAL_FLOOR:
            self._listening.update((port - EPHEMERAL_FLOOR).to_bytes(4, "little"), b"\1")


def flow(key: bytes) -> Flow:
    cgroup, peer, port, server, protocol, _ = EDGE_KEY.unpack(key)
    return Flow(cgroup, peer, port, bool(server), protocol)


def total(values: bytes) -> Volume:
    """The sum over CPUs."""
    words = memoryview(values).cast("Q")
    return Volume(*(sum(words[field::4]) for field in range(4)))
