"""How both ends of the report stream find the other one dead: by HTTP/2's own pings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Keepalive:
    """A ping goes out every_s seconds after the last sign of the peer, and it is dead when none comes for within_s."""

    every_s: float
    within_s: float

    @property
    def options(self) -> tuple[tuple[str, int], ...]:
        """As grpc takes them."""
        every_ms, within_ms = round(self.every_s * 1000), round(self.within_s * 1000)
        return (
            ("grpc.keepalive_time_ms", every_ms),
            ("grpc.keepalive_timeout_ms", within_ms),
            # A ping has a time limit of its own, and the longer one wins: 60 s unless set (measured with grpc 1.85).
            ("grpc.http2.ping_timeout_ms", within_ms),
            # Else the third ping in a row without a message between waits for minutes.
            ("grpc.http2.max_pings_without_data", 0),
        )


ENFORCER = Keepalive(20.0, 10.0)
EXTENDER = Keepalive(30.0, 10.0)

LEAST_RECEIVED_MS = 5_000
"""The extender takes pings so often without a message between; an end that sends more is cut off."""
