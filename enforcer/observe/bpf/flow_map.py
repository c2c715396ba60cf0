"""The maps of account.h: counters by flow, read, and the ports that are listened on, written."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

from enforcer.observe.bpf import syscall
from enforcer.observe.bpf.contract import EDGE_KEY, EDGE_SLOT_SIZE, EDGE_VALUE, SLOTS_OF_CPU
from enforcer.observe.bpf.counters import CounterKey, CounterSnapshot, FlowKey, Volume
from enforcer.observe.bpf.idle import Idle
from enforcer.observe.bpf.loader import LoadedPrograms
from enforcer.observe.bpf.missed import MissedArray

EDGES = 8192
"""Flows that a node can have at once, at the most. 32 bytes for each and each CPU: 34 MB on 128 CPUs."""

MEMORY = 128 << 20
"""That they may take: from Linux 5.11 on it counts as the enforcer's own, and its pod has half a GiB."""

MAPS = ("edges", "slots", "missed", "listening")
SOURCES = ("contract.h", "missed.h", "account.h")


EMPTY = bytes(EDGE_SLOT_SIZE)
CGROUP_SIZE = 8
"""The first field of a key; a slot is empty without it."""


UNHEARD_OF, LISTENED_ON = b"\0", b"\2"


def most_edges(cpus: int) -> int:
    """As many as there is memory for with so many CPUs: fewer than EDGES beyond 512."""
    return min(EDGES, MEMORY // (EDGE_VALUE.size * cpus))


def sizes(edges: int) -> dict[str, int]:
    """The entries of the maps of account.h, by the names that it has for them."""
    return {"EDGES": edges, "SLOTS": SLOTS_OF_CPU * syscall.possible_cpus()}


class FlowMap:
    """Reads the maps of one loaded program.

    A flow is counted in the hash, in slots of CPUs, or in both; what it has is their sum. Idle ones are deleted after a
    last look; what arrives in the microsecond between the two is lost.
    """

    def __init__(self, loaded: LoadedPrograms, capacity: int = EDGES) -> None:
        self._edges = syscall.Map(loaded.maps["edges"], EDGE_KEY.size, EDGE_VALUE.size, cpus=syscall.possible_cpus())
        self._slots = syscall.Map(loaded.maps["slots"], 4, EDGE_SLOT_SIZE)
        self._missed = MissedArray(loaded)
        self._idle: Idle[bytes] = Idle(capacity)

    def read(self) -> CounterSnapshot:
        volumes = {key: total(values) for key, values in self._edges.items()}
        places: dict[bytes, list[bytes]] = {}
        for place, slot in self._slots.items():
            if slot[:CGROUP_SIZE] != EMPTY[:CGROUP_SIZE]:
                key = slot[: EDGE_KEY.size]
                volumes[key] = volumes.get(key, Volume()) + counted(slot)
                places.setdefault(key, []).append(place)
        forgotten = set()
        for key in self._idle.after({key: events(volume) for key, volume in volumes.items()}):
            if events(self._latest(key, places.get(key, []))) == events(volumes[key]):
                self._forget(key, places.get(key, []))
                forgotten.add(flow(key))
        counters: dict[CounterKey, Volume] = {flow(key): volume for key, volume in volumes.items()}
        return CounterSnapshot(counters, self._missed.read(), frozenset(forgotten))

    def _latest(self, key: bytes, places: Sequence[bytes]) -> Volume:
        """A slot may have outlived its flow's place in the hash, taken as that was deleted."""
        volume = Volume()
        with suppress(KeyError):
            volume = total(self._edges.lookup(key))
        return sum((counted(self._slots.lookup(place)) for place in places), volume)

    def _forget(self, key: bytes, places: Sequence[bytes]) -> None:
        self._edges.delete(key)
        for place in places:
            self._slots.update(place, EMPTY)


def counted(slot: bytes) -> Volume:
    return total(slot[EDGE_KEY.size : EDGE_KEY.size + EDGE_VALUE.size])


def events(volume: Volume) -> int:
    return volume.tx_messages + volume.rx_messages


def flow(key: bytes) -> FlowKey:
    cgroup, peer, port, server, protocol, namespace = EDGE_KEY.unpack(key)
    return FlowKey(cgroup, peer, port, bool(server), protocol, namespace)


def total(values: bytes) -> Volume:
    """The sum over CPUs."""
    counters = memoryview(values).cast("Q")
    return Volume(*(sum(counters[field::4]) for field in range(4)))


class ListeningMap:
    """Writes the ports that are listened on; those that no longer are go back to being like any other."""

    def __init__(self, loaded: LoadedPrograms) -> None:
        self._map = syscall.Map(loaded.maps["listening"], 4, 1)
        self._written: AbstractSet[int] = frozenset()

    def write(self, ports: AbstractSet[int]) -> None:
        for value, changed in ((LISTENED_ON, ports - self._written), (UNHEARD_OF, self._written - ports)):
            for port in changed:
                self._map.update(port.to_bytes(4, "little"), value)
        self._written = frozenset(ports)
