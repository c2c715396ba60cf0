"""Whether the pods that are compared were placed by numakin at all, and how much of them together, as a real extender
knows it.
"""

from __future__ import annotations

import pytest

from numakin.compare.running import Run
from numakin.compare.workloads import Figures
from numakin.kubectl.comparing.command import doubts, placed
from numakin.kubectl.comparing.measuring import Placed
from numakin.kubectl.comparing.templates import WITH
from numakin.kubectl.reach import Direct
from tests.extender.running import Extender
from tests.numakin.kubectl.conftest import POD


def test_their_locality_is_that_of_the_groups_that_have_them(extender: Extender):
    (row,) = extender.get("/api/v1/groups")["groups"]
    at = Direct(f"http://{extender.web_address}", "", "")
    assert placed(lambda: at, {POD, "1d"}) == Placed(1.0, pytest.approx(row["locality"]))
    assert 0 < row["locality"] < 1, "two of the members are on one NUMA node, not all"


def test_those_that_no_enforcer_has_reported_are_not_placed(extender: Extender):
    at = Direct(f"http://{extender.web_address}", "", "")
    some = placed(lambda: at, {POD, "nobody", "cart-9"})
    assert some is not None
    assert some.share == pytest.approx(1 / 3), "cart-9 was scored"
    assert placed(lambda: at, {"nobody"}) == Placed(0.0, None)


def test_without_an_extender_it_is_not_known(nothing_there: str):
    assert placed(lambda: Direct(nothing_there, "", ""), {POD}) is None


def rounds(*shares: float | None) -> list[dict[str, Run]]:
    return [{WITH: Run(WITH, Figures(1.0, None), None, None, share)} for share in shares]


def test_where_they_were_not_it_is_said_beside_what_is_concluded():
    """Else no difference is told where numakin did nothing."""
    assert [*doubts(rounds(0.0, 0.0))] == ["with numakin, it placed 0.0% of the pods: see kubectl numakin doctor"]
    assert [*doubts(rounds(1.0, None))] == []
    assert [*doubts(rounds(None))] == ["whether numakin placed the pods is not known: no extender answered"]
