"""How many examples hypothesis draws for a test that says how many: fewer in `make test`, whose profile is FEWER.

Each run draws others. All of them are drawn where a folder of tests is run by itself, and by `make test-all`.
"""

from __future__ import annotations

from hypothesis import settings

FEWER = "fewer"
"""The profile of hypothesis that `make test` chooses, by name: a quarter."""

ALL = 100
"""Hypothesis' own number, of a test that does not say how many."""

LEAST = 5


def of(number: int) -> int:
    """What is drawn of so many."""
    return min(number, max(LEAST, number * settings.default.max_examples // ALL))
