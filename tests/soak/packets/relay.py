"""python -m tests.soak.packets.relay TUN TUN: carries packets between two TUN devices, whose descriptors it inherits.

Each line on its input is an order, and answered by a line with what was counted so far; it ends with its input, and so
with whoever started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import time
from dataclasses import asdict

from tests.soak.packets.scrambling import Crossing, Shares

ORDERS = 0
LONGEST = 1 << 16
"""Bytes of a packet or an order."""


class Relay:
    """ends: of the link; what is read from one is written to the other."""

    def __init__(self, ends: tuple[int, int]) -> None:
        here, there = ends
        self._ways = {here: (there, Crossing()), there: (here, Crossing())}

    def run(self) -> None:
        while True:
            self._deliver()
            ready, _, _ = select.select([*self._ways, ORDERS], [], [], self._pause_s())
            for end in ready:
                if end != ORDERS:
                    self._take(end)
                elif order := os.read(ORDERS, LONGEST):
                    self._obey(json.loads(order))
                else:
                    return

    def _take(self, end: int) -> None:
        """IPv4 alone: nobody uses the link by IPv6, over which the kernel looks for neighbours by itself."""
        with contextlib.suppress(BlockingIOError):
            packet = os.read(end, LONGEST)
            if packet[0] >> 4 == 4:
                self._ways[end][1].came(packet, time.monotonic())

    def _deliver(self) -> None:
        for to, crossing in self._ways.values():
            for packet in crossing.due(time.monotonic()):
                os.write(to, packet)

    def _obey(self, order: dict[str, float]) -> None:
        """Without an order's content it asks for the counts alone."""
        crossings = [crossing for _, crossing in self._ways.values()]
        if order:
            seed = int(order.pop("seed"))
            for number, crossing in enumerate(crossings):
                crossing.scramble(Shares(**order), 2 * seed + number)
        print(json.dumps(asdict(crossings[0].counts + crossings[1].counts)), flush=True)

    def _pause_s(self) -> float | None:
        times = [at for _, crossing in self._ways.values() if (at := crossing.next_s()) is not None]
        return max(0.0, min(times) - time.monotonic()) if times else None


if __name__ == "__main__":
    Relay((int(sys.argv[1]), int(sys.argv[2]))).run()
