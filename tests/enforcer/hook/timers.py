"""A loop's timers without a clock."""

from __future__ import annotations

from numakin.process.loop import Callback, Timer


class TimersAlone:
    """A loop with a clock of its own, in seconds, that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[Timer] = []

    def call_later(self, delay_s: float, callback: Callback) -> Timer:
        timer = Timer(self.now + delay_s, len(self._timers), callback)
        self._timers.append(timer)
        return timer

    def go_on(self, seconds: float) -> None:
        until = self.now + seconds
        while due := sorted(timer for timer in self._timers if timer.callback and timer.moment <= until):
            callback, self.now = due[0].callback, due[0].moment
            due[0].cancel()
            assert callback is not None
            callback()
        self.now = until
