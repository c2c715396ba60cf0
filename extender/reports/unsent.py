"""What one stream's enforcer is still to be sent. On the loop's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from numakin.wire import bounds
from numakin.wire import report_pb2 as pb


class Unsent:
    """In order, and at the end None. One that is further behind than the bound has its stream ended: what waits is
    dropped, since a peer that does not read may never do so again.
    """

    def __init__(self) -> None:
        self._queue: asyncio.Queue[pb.ToEnforcer | None] = asyncio.Queue()
        self._ended = False
        self.behind = False
        """Whether it was ended for that."""

    async def next(self) -> pb.ToEnforcer | None:
        return await self._queue.get()

    def put(self, messages: Sequence[pb.ToEnforcer]) -> None:
        if self._ended:
            return
        if self._queue.qsize() + len(messages) > bounds.UNREAD_MESSAGES:
            self.behind = True
            while not self._queue.empty():
                self._queue.get_nowait()
            self.end()
            return
        for message in messages:
            self._queue.put_nowait(message)

    def end(self) -> None:
        """After what waits."""
        if not self._ended:
            self._ended = True
            self._queue.put_nowait(None)
