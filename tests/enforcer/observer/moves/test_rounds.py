"""What the observer offers the hook once a window, by the operator's options."""

from __future__ import annotations

import pytest

from enforcer.observer.moves.rounds import MoveRounds
from enforcer.observer.planning_thread import PlanningInput
from enforcer.settings.config import Config
from tests.enforcer.observer.moves.apart import at
from tests.machines import SMALL

TALK = {("c", "d"): 1e4}
APART = PlanningInput(at(c="0", d="1"), [], {}, TALK, frozenset("cd"))


@pytest.mark.parametrize(("moves", "plan"), [("make", False), ("plan", True)])
def test_the_hook_is_told_whether_to_make_what_is_offered(moves: str, plan: bool) -> None:  # noqa: FBT001
    offer = MoveRounds(Config(moves=moves), SMALL).offer(APART)
    assert len(offer.steps) == 1
    assert offer.plan is plan
