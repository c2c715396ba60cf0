"""What a budget allows, by how many members run."""

from __future__ import annotations

import pytest

from numakin.process.budget import allowed


@pytest.mark.parametrize(
    ("budget", "members", "expected"), [(2, 0, 2), (2, 99, 2), (2, 149, 2), (2, 150, 3), (2, 1000, 20), (0, 5000, 0)]
)
def test_a_budget_is_for_each_hundred_members_and_as_many_at_the_least(budget, members, expected):
    assert allowed(budget, members) == expected
