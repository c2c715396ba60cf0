"""How much of what is compared was together, as a real extender knows it."""

from __future__ import annotations

import pytest

from numakin.kubectl.comparing.command import locality
from numakin.kubectl.reach import Direct
from tests.extender.running import Extender


def test_it_is_that_of_the_groups_that_are_compared(extender: Extender):
    (row,) = extender.get("/api/v1/groups")["groups"]
    at = Direct(f"http://{extender.web_address}", "", "")
    assert locality(lambda: at, {row["group"]}) == pytest.approx(row["locality"])
    assert 0 < row["locality"] < 1, "two of the members are on one NUMA node, not all"
    assert locality(lambda: at, {"shop/other"}) is None


def test_without_an_extender_it_is_not_known(nothing_there: str):
    assert locality(lambda: Direct(nothing_there, "", ""), {"shop/boutique"}) is None
