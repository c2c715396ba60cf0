"""What the observer offers the hook once a window, by the operator's options."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType

import pytest

from enforcer.observer.moves import rounds
from enforcer.observer.moves.candidates import REST
from enforcer.observer.moves.rounds import HOLDS, MoveRounds
from enforcer.observer.planning_thread import PlanningInput
from enforcer.settings.config import Config
from numakin.placement.state.occupancy import Occupancy
from tests.clock import Clock
from tests.enforcer.hook.world import two_numa_nodes
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


def test_an_offer_holds_until_it_should_have_been_renewed() -> None:
    assert MoveRounds(Config(window_s=20.0), SMALL).offer(APART).holds_s == HOLDS * 20.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ""),
        ({"move_budget": 0}, "no running member is moved: move_budget is 0"),
        ({"moves": "plan"}, "moves of running members are told, and not made: moves is plan"),
        ({"move_hours": "22:00-06:00"}, "running members are moved at 22:00-06:00 UTC alone: not now"),
        ({"move_hours": "06:00-22:00"}, ""),
    ],
)
def test_what_holds_moves_back_is_said(options: dict[str, object], words: str) -> None:
    noon = Clock(12 * 3600)
    assert MoveRounds(Config.from_json(json.dumps(options)), SMALL, noon).held_back == words


def grouped(homes: dict[str, str], groups: dict[str, str]) -> Occupancy:
    """groups: of each member that has one."""
    occupancy = at(**homes)
    for key, group in groups.items():
        occupancy = occupancy.changed({key: replace(occupancy.reservations[key], group=group)})
    return occupancy


class TestGroupShare:
    """Four of one group, each away from its own peer, who stays and has no group."""

    TALK = MappingProxyType({(key, f"{key}peer"): 1e4 for key in "abcd"})
    PEERS = MappingProxyType({f"{key}peer": "1" for key in "abcd"})

    @pytest.fixture
    def tenth(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rounds, "GROUP_SHARE", 0.1)

    def moved(self, windows: int, groups: dict[str, str], budget: int = 1) -> list[int]:
        """How many in each window, as they are offered; each is made at once."""
        movers, homes = MoveRounds(Config(move_budget=budget), two_numa_nodes()), dict.fromkeys("abcd", "0")
        counts = []
        for _ in range(windows):
            occupancy = grouped({**homes, **self.PEERS}, groups)
            movable = frozenset(key for key, home in homes.items() if home == "0")
            offer = movers.offer(PlanningInput(occupancy, [], {}, self.TALK, movable))
            ways = [way for step in offer.steps for way in step.ways]
            homes |= {way.reservation: way.target for way in ways}
            counts.append(len(ways))
        return counts

    def test_half_of_a_group_is_moved_and_no_more_until_what_they_did_is_seen(self) -> None:
        counts = self.moved(REST + 4, dict.fromkeys("abcd", "ns/shop"))
        assert counts == [1, 1, *[0] * (REST - 1), 1, 1, 0]

    @pytest.mark.usefixtures("tenth")
    def test_one_is_always_allowed(self) -> None:
        counts = self.moved(REST + 2, dict.fromkeys("abcd", "ns/shop"))
        assert counts == [1, *[0] * REST, 1]

    @pytest.mark.usefixtures("tenth")
    def test_what_is_offered_at_once_counts_together(self) -> None:
        counts = self.moved(REST + 2, dict.fromkeys("abcd", "ns/shop"), budget=2)
        assert counts == [1, *[0] * REST, 1]

    def test_other_groups_go_on_meanwhile(self) -> None:
        counts = self.moved(3, {"a": "ns/one", "b": "ns/one", "c": "ns/two", "d": "ns/two"})
        assert counts == [1, 1, 0]

    @pytest.mark.usefixtures("tenth")
    def test_without_a_group_the_budget_alone_counts(self) -> None:
        assert self.moved(4, {}) == [1, 1, 1, 1]
