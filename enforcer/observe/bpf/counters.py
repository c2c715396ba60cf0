"""What a collector counts, and how counts become differences. Pure values.

Collectors hand out cumulative counters and never clear them, so that no reader can lose what another has not seen; the
difference between two readings is taken here.
"""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import ClassVar, Literal, Self, TypeAlias

from enforcer.observe.bpf.contract import BY_ADDRESS, BY_PROCESS

TCP = 6
UDP = 17

MAPPED = bytes(10) + b"\xff\xff"
"""The prefix of an IPv4 address written as IPv6 (RFC 4291, 2.5.5.2)."""


@dataclass(frozen=True, slots=True)
class FlowKey:
    """TCP or UDP between one cgroup and one peer address, all connections with the same server port together.

    `cgroup` is the cgroup v2 id, or `by_address` of the local end where that would be the root. `peer` is 16 bytes,
    IPv4 as ::ffff:a.b.c.d. `server`: this end is the server. `port` is the server's port. `namespace`: inode of the
    local end's network namespace, 0 where that is not counted by.
    """

    cgroup: int
    peer: bytes
    port: int
    server: bool
    protocol: int
    namespace: int = 0


@dataclass(frozen=True, slots=True)
class CgroupPair:
    """One cgroup doing something to another: AF_UNIX sends, or wake-ups. Only the tx half of its volume is used.

    `target` is 0 where only the process is known, by `pid`.
    """

    kind: Literal["unix", "wake"]
    source: int
    target: int
    pid: int = 0


CounterKey: TypeAlias = FlowKey | CgroupPair


class _Counts:
    """Whole numbers, each counted by itself. _values: all of them, in the order of the fields."""

    __slots__ = ()
    _values: ClassVar["operator.attrgetter[tuple[int, ...]]"]

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(operator.add, self._values(self), self._values(other)))

    def since(self, before: Self) -> Self:
        """What came after `before`; all of it if a counter ran backwards, since then it began anew."""
        difference = [*map(operator.sub, self._values(self), self._values(before))]
        return self if min(difference) < 0 else type(self)(*difference)

    def scaled(self, factor: float) -> Self:
        return type(self)(*(round(count * factor) for count in self._values(self)))


@dataclass(frozen=True, slots=True)
class Volume(_Counts):
    """Payload bytes and messages, as the local end sent and received them."""

    tx_bytes: int = 0
    tx_messages: int = 0
    rx_bytes: int = 0
    rx_messages: int = 0
    _values = operator.attrgetter("tx_bytes", "tx_messages", "rx_bytes", "rx_messages")


@dataclass(frozen=True, slots=True)
class Missed(_Counts):
    """What no key stands for. full: the map had no room. other: neither TCP nor UDP, or without readable ports."""

    full_bytes: int = 0
    full_messages: int = 0
    other_bytes: int = 0
    other_messages: int = 0
    _values = operator.attrgetter("full_bytes", "full_messages", "other_bytes", "other_messages")


@dataclass(frozen=True, slots=True)
class CounterSnapshot:
    """Cumulative counts at one moment.

    `forgotten`: keys whose counters were deleted after this reading; should one come back, it starts from nothing.
    """

    counters: Mapping[CounterKey, Volume] = field(default_factory=dict)
    missed: Missed = Missed()
    forgotten: frozenset[CounterKey] = frozenset()


@dataclass(frozen=True, slots=True)
class Delta:
    """What was counted between two snapshots. Keys that did not move are absent."""

    counters: Mapping[CounterKey, Volume] = field(default_factory=dict)
    missed: Missed = Missed()

    def scaled(self, factor: float) -> "Delta":
        """Counts, and what was missed, multiplied by `factor`."""
        counters = {key: volume.scaled(factor) for key, volume in self.counters.items()}
        return Delta(counters, self.missed.scaled(factor))


def difference(before: CounterSnapshot, after: CounterSnapshot) -> Delta:
    """What `after` counts beyond `before`."""
    nothing = Volume()
    counters = {}
    for key, volume in after.counters.items():
        known = None if key in before.forgotten else before.counters.get(key)
        moved = volume.since(known) if known is not None else volume
        if moved != nothing:
            counters[key] = moved
    return Delta(counters, after.missed.since(before.missed))


def address(peer: bytes) -> IPv4Address | IPv6Address:
    """The peer of a flow in the form that it has on the wire."""
    return IPv4Address(peer[12:]) if peer.startswith(MAPPED) else IPv6Address(peer)


def peer(address: IPv4Address | IPv6Address) -> bytes:
    """The 16 bytes that stand for an address in a flow: inverse of `address`, a v4-mapped address folded into IPv4."""
    return MAPPED + address.packed if isinstance(address, IPv4Address) else address.packed


def by_address(peer: bytes) -> int:
    """What stands for the cgroup of an end that is known by nothing but its address, as in contract.h."""
    low = peer[12:] if peer.startswith(MAPPED) else peer[8:]
    return BY_ADDRESS | int.from_bytes(low, "little")


def process(cgroup: int) -> int:
    """The process id in what stands for the cgroup of an end in the host's network; 0 if that stands for another."""
    return cgroup & (1 << 32) - 1 if cgroup & BY_PROCESS and not cgroup & BY_ADDRESS else 0
