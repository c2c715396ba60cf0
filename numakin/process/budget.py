"""A budget of changes to what runs, as an option has it: so many for each hundred members, as many at the least."""

from __future__ import annotations

FOR = 100
"""Members for whom the changes are meant: where more run, there are as many more, so that what is large is not slower
to be brought together than what is small.
"""


def allowed(budget: int, members: int) -> int:
    """In one period. members: that run."""
    return max(budget, budget * members // FOR)
