"""Who has how many connections, by client address, within a bound on all."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar


class Peer(Protocol):
    """A connection. peer: the client's address."""

    @property
    def peer(self) -> str: ...


Each = TypeVar("Each", bound=Peer)


class Places(Generic[Each]):
    """most: how many there may be."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_peer: dict[str, dict[Each, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def of(self, peer: str) -> int:
        """How many this address has."""
        return len(self._by_peer.get(peer, ()))

    def all(self) -> list[Each]:
        return [each for of_peer in self._by_peer.values() for each in of_peer]

    @property
    def full(self) -> bool:
        return self._count >= self._most

    def in_the_way(self, peer: str) -> Each | None:
        """The oldest of the address that has most; None where that has no more than this one."""
        of_most = max(self._by_peer.values(), key=len)
        return next(iter(of_most)) if len(of_most) > self.of(peer) else None

    def add(self, each: Each) -> None:
        self._by_peer.setdefault(each.peer, {})[each] = None
        self._count += 1

    def remove(self, each: Each) -> bool:
        """Whether it was there."""
        of_peer = self._by_peer.get(each.peer, {})
        if each not in of_peer:
            return False
        del of_peer[each]
        self._count -= 1
        if not of_peer:
            del self._by_peer[each.peer]
        return True
