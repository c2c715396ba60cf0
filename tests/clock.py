"""A clock that stands still until the test moves it."""


class Clock:
    """`now`: seconds, as the monotonic clock has them."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
