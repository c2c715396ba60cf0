"""What waits for an enforcer that is slow to read its stream, or never reads it."""

from __future__ import annotations

import asyncio

from extender.reports.streams import Unsent
from numakin.wire import bounds
from numakin.wire import report_pb2 as pb


def gone(pod: str) -> pb.ToEnforcer:
    return pb.ToEnforcer(gone=pb.Gone(pods=[pod]))


def read(unsent: Unsent) -> list[pb.ToEnforcer]:
    """All up to the end."""

    async def reading() -> list[pb.ToEnforcer]:
        messages = []
        while (message := await unsent.next()) is not None:
            messages.append(message)
        return messages

    return asyncio.run(reading())


def test_what_waits_comes_in_order_before_the_end():
    unsent = Unsent()
    unsent.put([gone("a"), gone("b")])
    unsent.end()
    unsent.put([gone("late")])
    assert (read(unsent), unsent.behind) == ([gone("a"), gone("b")], False)


def test_one_that_is_behind_gets_the_end_alone_and_keeps_no_memory():
    unsent = Unsent()
    unsent.put([gone("a")] * bounds.UNREAD_MESSAGES)
    unsent.put([gone("one more")])
    unsent.put([gone("later")])
    assert (read(unsent), unsent.behind) == ([], True)
