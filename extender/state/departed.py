"""Members that an enforcer shows and the API server does not have (any more).

A node learns of a pod's end from its container runtime, which may not send it, as containerd does not after its own
restart. One owner; times are seconds of any clock that never runs backwards.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable

PATIENCE_S = 60.0
"""How long a pod that was never listed may be on its way; and between two messages about one that is still shown."""

MOST_ENDED = 20_000
"""Pods whose end the API server has sent that are remembered; the oldest go first."""


class Departed:
    """Its methods may not be called at once from two threads."""

    def __init__(self) -> None:
        self._ended: dict[str, None] = {}
        self._due: dict[str, dict[str, float]] = {}

    def ended(self, uids: Iterable[str]) -> None:
        """The API server has sent that they ended."""
        for uid in uids:
            self._ended[uid] = None
            if len(self._ended) > MOST_ENDED:
                del self._ended[next(iter(self._ended))]

    def came_back(self, uid: str) -> bool:
        """It is there again, as a static pod is whose mirror was deleted: whether that had counted as its end."""
        known = uid in self._ended
        self._ended.pop(uid, None)
        return known

    def among(self, uids: Iterable[str]) -> list[str]:
        """Those of these whose end the API server has sent."""
        return [uid for uid in uids if uid in self._ended] if self._ended else []

    def due(self, node: str, shown: Collection[str], listed: Container[str], now: float) -> list[str]:
        """What the node's enforcer is to be sent now. shown: uids of its members. listed: those of the API server."""
        before = self._due.get(node, {})
        after = {
            uid: before.get(uid, now if uid in self._ended else now + PATIENCE_S) for uid in shown if uid not in listed
        }
        due = [uid for uid, at in after.items() if at <= now]
        after.update(dict.fromkeys(due, now + PATIENCE_S))
        if after:
            self._due[node] = after
        else:
            self._due.pop(node, None)
        return due

    def forget(self, nodes: Iterable[str]) -> None:
        for node in nodes:
            self._due.pop(node, None)
