"""What holds of moves whatever comes, window after window: how long members rest, and how many are moved."""

from __future__ import annotations

from itertools import accumulate, combinations

import hypothesis.strategies as st
from hypothesis import given
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from enforcer.observer.moves.candidates import LONGEST, REST, SAVED, Allowance, Rested
from enforcer.observer.moves.limits import Limits
from enforcer.observer.moves.made import MadeMoves
from enforcer.observer.planning_thread import PlanningInput
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.optin.options import Move
from numakin.placement.plan.group_limit import GroupLimit
from numakin.placement.plan.memory_limit import MemoryLimit
from numakin.placement.plan.rebalance import Relocation
from numakin.process.budget import allowed
from tests.enforcer.observer.moves.apart import at
from tests.machines import SMALL

PODS, HOMES = st.sampled_from("abc"), st.sampled_from("01")


class Resting(RuleBasedStateMachine):
    """Three members that talk with each other, on two NUMA nodes. came, settled: the windows in which each came to
    where it is, and in which it came or might move last.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rested, self.window = Rested(), 0
        self.homes: dict[str, str] = {}
        self.there: dict[str, str] = {}
        self.came: dict[str, int] = {}
        self.settled: dict[str, int] = {}
        self.movable = frozenset[str]()

    @rule(pod=PODS, home=HOMES)
    def a_member_comes_or_moves(self, pod: str, home: str) -> None:
        self.homes[pod] = home

    @rule(pod=PODS)
    def a_member_ends(self, pod: str) -> None:
        self.homes.pop(pod, None)

    @rule(count=st.integers(1, LONGEST + 2), flaps=st.booleans())
    def windows_pass(self, count: int, *, flaps: bool) -> None:
        """flaps: c comes and goes all the time."""
        for _ in range(count):
            if flaps and self.homes.pop("c", None) is None:
                self.homes["c"] = "0"
            self._passes()

    def _passes(self) -> None:
        self.window += 1
        kin = {pod: dict.fromkeys("abc", 1.0) for pod in "abc"}
        self.movable = self.rested.movable(at(**self.homes), dict.fromkeys("abc", Move.CPUS), kin)
        moved = {pod for pod, home in self.homes.items() if self.there.get(pod) != home}
        self.there = dict(self.homes)
        self.came |= dict.fromkeys(moved, self.window)
        assert all(self.window - self.came[pod] >= REST for pod in self.movable), "it rests where it came"
        self.settled |= dict.fromkeys(moved | self.movable, self.window)
        assert all(self.window - self.settled[pod] <= LONGEST + 1 for pod in self.homes), "nobody rests for ever"


class Counting(RuleBasedStateMachine):
    """A hook that makes what it is offered, if ever, as long as it has been offered nothing newer and all are where it
    begins. reported: where members were by the node's last report, which is a window late at the most; of those that
    moved, told are in it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.made, self.homes = MadeMoves(SMALL), dict.fromkeys("abcd", "0")
        self.waits: list[tuple[Relocation, ...]] = []
        self.reported = dict(self.homes)
        self.counted = self.moved = self.told = self.moved_by_window = 0

    @rule()
    def the_node_reports(self) -> None:
        self.reported, self.told = dict(self.homes), self.moved

    @rule(members=st.lists(st.sampled_from("abcd"), unique=True, max_size=4), cut=st.integers(0, 4))
    def a_window_ends(self, members: list[str], cut: int) -> None:
        """Some are offered to go where they are not, in two steps."""
        if self.told < self.moved_by_window:
            self.the_node_reports()
        self.moved_by_window = self.moved
        situation = PlanningInput(at(**self.reported), [], {}, {}, frozenset())
        self.made.seen(situation)
        self.counted += self.made.members_moved
        assert self.counted == self.told
        limits = Limits(
            GroupLimit.of(situation.occupancy, 1.0, ()), MemoryLimit(SMALL, situation.occupancy, lambda _: {}, 0)
        )
        steps = [tuple(map(self._way, part)) for part in (members[:cut], members[cut:]) if part]
        self.made.offered(steps, situation, limits)
        self.waits = steps

    @rule(first=st.integers(0, 1))
    def a_step_is_made(self, first: int) -> None:
        for step in self.waits[first : first + 1]:
            if all(self.homes[way.reservation] == str(way.source) for way in step):
                self.homes |= {way.reservation: str(way.target) for way in step}
                self.moved += len(step)
        del self.waits[first : first + 1]

    @invariant()
    def each_member_that_was_moved_counts_once(self) -> None:
        waiting = self.moved - self.counted
        assert 0 <= waiting <= 4

    def _way(self, member: str) -> Relocation:
        source = NumaSet.parse(self.reported[member])
        return Relocation(member, source, NumaSet.parse("1" if self.reported[member] == "0" else "0"), 0.5)


TestResting, TestCounting = Resting.TestCase, Counting.TestCase


def test_a_member_counts_once_though_an_older_offer_had_it_too():
    node = Counting()
    node.a_window_ends(list("abcd"), 0)
    for members in ("d", "abc", ""):
        node.a_window_ends(list(members), 0)
        node.a_step_is_made(0)
        node.the_node_reports()
    assert (node.counted, node.moved) == (4, 4)


@given(st.lists(st.tuples(st.integers(0, 500), st.floats(0, 1)), max_size=30))
def test_no_more_are_moved_in_any_windows_than_these_allow_and_what_was_saved(windows):
    """Each: how many members run, and which share of what may be moved is."""
    allowance, moved = Allowance(2), []
    for members, share in windows:
        budget = allowance.now(members)
        moved.append(int(share * budget.chain))
        allowance.used(moved[-1])
    may = [allowed(2, members) for members, _ in windows]
    sums = [*zip(accumulate(moved, initial=0), accumulate(may, initial=0), strict=True)]
    for (before, may_before), (after, may_after) in combinations(sums, 2):
        assert after - before <= may_after - may_before + (SAVED - 1) * max(may)
