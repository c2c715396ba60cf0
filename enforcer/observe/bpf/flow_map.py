"""The maps of account.h, read: cumulative counters by flow."""

from enforcer.observe.bpf import syscall
from enforcer.observe.bpf.contract import EDGE_KEY, EDGE_VALUE
from enforcer.observe.bpf.counters import CounterSnapshot, FlowKey, Key, Volume
from enforcer.observe.bpf.idle import Idle
from enforcer.observe.bpf.loader import LoadedPrograms
from enforcer.observe.bpf.missed import MissedArray

EDGES = 8192
"""Flows that a node can have at once. 32 bytes for each and each CPU: 34 MB on 128 CPUs."""

MAPS = ("edges", "missed", "listening")
SOURCES = ("contract.h", "missed.h", "account.h")


class FlowMap:
    """Reads the maps of one loaded program.

    An idle key is deleted after a last look; what arrives in the microsecond between the two is lost.
    """

    def __init__(self, loaded: LoadedPrograms, capacity: int = EDGES) -> None:
        self._edges = syscall.Map(loaded.maps["edges"], EDGE_KEY.size, EDGE_VALUE.size, cpus=syscall.possible_cpus())
        self._missed = MissedArray(loaded)
        self._idle: Idle[bytes] = Idle(capacity)

    def read(self) -> CounterSnapshot:
        counters: dict[Key, Volume] = {}
        events: dict[bytes, int] = {}
        for key, values in self._edges.items():
            volume = total(values)
            counters[flow(key)] = volume
            events[key] = volume.tx_messages + volume.rx_messages
        forgotten = set()
        for key in self._idle.after(events):
            latest = total(self._edges.lookup(key))
            if latest.tx_messages + latest.rx_messages == events[key]:
                self._edges.delete(key)
                forgotten.add(flow(key))
        return CounterSnapshot(counters, self._missed.read(), frozenset(forgotten))


def flow(key: bytes) -> FlowKey:
    cgroup, peer, port, server, protocol, namespace = EDGE_KEY.unpack(key)
    return FlowKey(cgroup, peer, port, bool(server), protocol, namespace)


def total(values: bytes) -> Volume:
    """The sum over CPUs."""
    counters = memoryview(values).cast("Q")
    return Volume(*(sum(counters[field::4]) for field in range(4)))
