"""What the observer offers where members have memory: no more of it is left at a time than MOST_MEMORY."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import pytest

from enforcer.observer.moves import rounds
from enforcer.observer.moves.candidates import REST
from enforcer.observer.moves.rounds import MOST_NAMED, MoveRounds
from enforcer.observer.planning_thread import PlanningInput
from enforcer.settings.config import Config
from numakin.placement.plan.problem import Weights
from numakin.placement.state.occupancy import Occupancy
from numakin.wire import local_pb2 as local
from tests.enforcer.hook.world import two_numa_nodes
from tests.enforcer.observer.moves.apart import at
from tests.enforcer.observer.moves.whole import WholeNode

GIB = 1 << 30


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets how many GiB may be left."""
    return lambda gib: monkeypatch.setattr(rounds, "MOST_MEMORY", int(gib * GIB))


class Movers:
    """Members on the first NUMA node, each away from its own peer, who stays on the second. gib: what each mover has on
    the first NUMA node, and keeps there when it has moved.
    """

    def __init__(self, gib: Mapping[str, float], budget: int = 1, moves: str = "make") -> None:
        self._gib, self._homes = gib, dict.fromkeys(gib, "0")
        config = Config(move_budget=budget, moves=moves)
        self.rounds = MoveRounds(config, two_numa_nodes(), memory=self._memory, name="ns/{}".format)
        self.talk: Weights = {(key, f"{key}peer"): 1e4 for key in gib}

    def _memory(self, _occupancy: Occupancy, key: str) -> dict[int, int]:
        return {0: int(self._gib.get(key, 0) * GIB)}

    def offer(self) -> local.Moves:
        """In one window."""
        occupancy = at(**self._homes, **{f"{key}peer": "1" for key in self._homes})
        movable = frozenset(key for key, home in self._homes.items() if home == "0")
        return self.rounds.offer(PlanningInput(occupancy, [], {}, self.talk, movable))

    def windows(self, count: int) -> list[str]:
        """Who is offered in each; all of them are made at once."""
        moved = []
        for _ in range(count):
            ways = [way for step in self.offer().steps for way in step.ways]
            self._homes |= {way.reservation: way.target for way in ways}
            moved.append("".join(sorted(way.reservation for way in ways)))
        return moved


def test_what_is_left_within_six_windows_counts_together(most: Callable[[float], None]) -> None:
    most(7)
    moved = Movers({"a": 3, "b": 3, "c": 3}).windows(REST + 3)
    assert moved == ["a", "b", *[""] * (REST - 1), "c", ""]


def test_what_is_offered_at_once_counts_together(most: Callable[[float], None]) -> None:
    most(7)
    moved = Movers({"a": 3, "b": 3, "c": 3}, budget=3).windows(REST + 2)
    assert moved == ["ab", *[""] * REST, "c"]


def test_who_has_too_much_waits_and_the_next_best_goes(most: Callable[[float], None]) -> None:
    """By name a is first."""
    most(6)
    movers = Movers({"a": 5, "b": 3, "c": 3})
    assert movers.windows(1) == ["a"]
    assert Movers({"a": 7, "b": 3, "c": 3}).windows(2) == ["b", "c"]


def test_a_member_with_more_than_all_that_may_be_left_is_never_moved_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    movers = Movers({"a": 24})
    with caplog.at_level(logging.INFO):
        assert movers.windows(3 * REST) == [""] * 3 * REST
    assert movers.rounds.held_back == "not moved, as at most 16.0 GiB are left behind at a time: ns/a (24.0 GiB, never)"
    told = [record for record in caplog.records if record.getMessage() == "a move is left out for its memory"]
    assert [vars(record)["fields"] for record in told] == [{"members": "ns/a", "memory": 24 * GIB, "never": True}]


def test_one_that_waits_is_named_until_it_goes(most: Callable[[float], None]) -> None:
    most(3)
    movers = Movers({"a": 3, "b": 0.5})
    assert movers.windows(2) == ["a", ""]
    assert movers.rounds.held_back == "not moved, as at most 3.0 GiB are left behind at a time: ns/b (512 MiB, not yet)"
    assert movers.windows(REST)[-1] == "b"
    assert movers.rounds.held_back == ""


def test_one_that_would_gain_too_little_is_not_named() -> None:
    movers = Movers({"a": 24, "b": 0})
    movers.talk = {("a", "apeer"): 1.0, ("b", "bpeer"): 1e6}
    assert movers.windows(1) == ["b"]
    assert movers.rounds.held_back == ""


def test_those_with_most_memory_are_named_first_and_the_others_counted() -> None:
    movers = Movers({key: 20 + at for at, key in enumerate("abcdefg")})
    movers.windows(1)
    words = ", ".join(f"ns/{key} ({gib}.0 GiB, never)" for key, gib in zip("gfedc", range(26, 21, -1), strict=True))
    assert (
        movers.rounds.held_back
        == f"not moved, as at most 16.0 GiB are left behind at a time: {words} and {7 - MOST_NAMED} more"
    )


def test_within_the_limit_the_member_budget_alone_counts() -> None:
    assert Movers({"a": 4, "b": 4, "c": 4}).windows(4) == ["a", "b", "c", ""]


def test_memory_that_is_not_known_counts_as_nothing() -> None:
    rounds = MoveRounds(Config(), two_numa_nodes())
    situation = PlanningInput(at(c="0", d="1"), [], {}, {("c", "d"): 1e4}, frozenset("cd"))
    assert len(rounds.offer(situation).steps) == 1


def test_planned_moves_leave_nothing(most: Callable[[float], None]) -> None:
    """They are told again in each window, the first as the last."""
    most(3)
    movers = Movers({"a": 3, "b": 3}, moves="plan")
    offers = [[way.reservation for step in movers.offer().steps for way in step.ways] for _ in range(3)]
    assert offers == [["a"]] * 3
    assert "moves is plan" in movers.rounds.held_back


def test_of_two_that_change_places_both_count(most: Callable[[float], None]) -> None:
    """Each goes where the other's peers are; the NUMA nodes have no room for one more."""
    occupancy = at(a="0", b="1", apeer="1", bpeer="0")
    talk = {("a", "apeer"): 1e4, ("b", "bpeer"): 1e4}

    def memory(_occupancy: Occupancy, key: str) -> dict[int, int]:
        return {0: 2 * GIB} if key == "a" else {1: 2 * GIB}

    def offered(gib: int) -> int:
        most(gib)
        steps = (
            MoveRounds(Config(), two_numa_nodes(), memory=memory)
            .offer(PlanningInput(occupancy, [], {}, talk, frozenset("ab")))
            .steps
        )
        return sum(len(step.ways) for step in steps)

    assert offered(4) == 2
    assert offered(3) == 1
    assert offered(1) == 0


@pytest.mark.parametrize(("gib", "moved"), [(4, [["m"]]), (2, [])], ids=["there is enough left", "it has too much"])
def test_a_way_back_counts_too(most: Callable[[float], None], gib: int, moved: list[list[str]]) -> None:
    """m has touched memory where it was moved to, and talks with another than before."""
    most(gib)
    node = WholeNode("dm")
    node.run("m", "0")
    node.run("c", "0", move="never")
    node.run("d", "1", move="never")
    node.rest()
    assert node.windows(1) == [["m"]]
    node.memory = {"uid-m": {1: 3 * GIB}}
    node.talks("cm")
    assert [members for members in node.windows(3 * REST) if members] == moved
    assert node.rounds.held_back == (
        "" if moved else "not moved, as at most 2.0 GiB are left behind at a time: uid-m (3.0 GiB, never)"
    )
