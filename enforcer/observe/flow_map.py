"""The maps of account.h, read: cumulative counters by flow."""

from enforcer.observe import bpf
from enforcer.observe.contract import EDGE_KEY, EDGE_VALUE
from enforcer.observe.counters import Flow, Key, Snapshot, Volume
from enforcer.observe.idle import Idle
from enforcer.observe.loader import Loaded
from enforcer.observe.missed import MissedArray

EDGES = 8192
"""Flows that a node can have at once. 32 bytes for each and each CPU: 34 MB on 128 CPUs."""

MAPS = ("edges", "missed")
SOURCES = ("contract.h", "missed.h", "account.h")


class FlowMap:
    """Reads the maps of one loaded program.

    An idle key is deleted after a last look; what arrives in the microsecond between the two is lost.
    """

    def __init__(self, loaded: Loaded, capacity: int = EDGES) -> None:
        self._edges = bpf.Map(loaded.maps["edges"], EDGE_KEY.size, EDGE_VALUE.size, cpus=bpf.possible_cpus())
        self._missed = MissedArray(loaded)
        self._idle: Idle[bytes] = Idle(capacity)

    def read(self) -> Snapshot:
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
        return Snapshot(counters, self._missed.read(), frozenset(forgotten))


def flow(key: bytes) -> Flow:
    cgroup, peer, port, server, protocol, _ = EDGE_KEY.unpack(key)
    return Flow(cgroup, peer, port, bool(server), protocol)


def total(values: bytes) -> Volume:
    """The sum over CPUs."""
    words = memoryview(values).cast("Q")
    return Volume(*(sum(words[field::4]) for field in range(4)))
