"""For how long the runtime may have been waiting for the answer that is being made. No clock: times are the caller's,
monotonic seconds.

A request that is read now came at some moment since the socket was last known to be empty: it may have lain there while
this process was stopped, or the whole machine. An event that is answered late ends the connection, so there a lower
bound will do. After a late Synchronize containerd 1.7 forgets the plugin and leaves the socket open (measured), even
carries out its updates; so there the upper bound must be within the runtime's patience.
"""

from __future__ import annotations


class Punctuality:
    """Of one connection."""

    def __init__(self, now: float) -> None:
        self._empty = self._looked = now
        self._earliest = self._read = now

    def looked(self, now: float) -> None:
        """Called by a timer, after the loop has handled all that could be read: what it finds next came since the call
        before, if nothing is read in between.
        """
        self._empty, self._looked = self._looked, now

    def reading(self, now: float, *, begins: bool, drained: bool) -> None:
        """Called for each piece that was read. begins: a request, rather than going on with one. drained: the socket is
        empty now.
        """
        if begins:
            self._earliest, self._read = self._empty, now
        if drained:
            self._empty = self._looked = now

    def at_least(self, now: float) -> float:
        return now - self._read

    def at_most(self, now: float) -> float:
        return now - self._earliest
