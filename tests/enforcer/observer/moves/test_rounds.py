"""What the observer offers the hook once a window, by the operator's options."""

from __future__ import annotations

import pytest

from enforcer.observer.moves.rounds import MoveRounds
from enforcer.observer.planning_thread import PlanningInput
from enforcer.settings.config import Config
from tests.clock import Clock
from tests.enforcer.observer.moves.apart import at
from tests.machines import SMALL

TALK = {("c", "d"): 1e4}
APART = PlanningInput(at(c="0", d="1"), [], {}, TALK, frozenset("cd"))


@pytest.mark.parametrize(("moves", "plan"), [("make", False), ("plan", True)])
def test_the_hook_is_told_whether_to_make_what_is_offered(moves: str, plan: bool) -> None:  # noqa: FBT001
    offer = MoveRounds(Config(moves=moves), SMALL).offer(APART)
    assert len(offer.steps) == 1
    assert offer.plan is plan


def test_outside_the_hours_nothing_is_offered_and_what_waits_is_taken_back() -> None:
    """By an offer without steps, which replaces the one that waits in the hook."""
    clock = Clock(22 * 3600 - 1)
    rounds = MoveRounds(Config(move_hours="22:00-06:00"), SMALL, clock)
    assert not rounds.offer(APART).steps
    clock.now += 1
    assert len(rounds.offer(APART).steps) == 1
    clock.now += 8 * 3600
    assert not rounds.offer(APART).steps
