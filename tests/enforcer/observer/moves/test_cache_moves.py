"""Members that were kept within one cache each before they were seen to talk come together in one: the observer's offers
and the hook's steps, on Rome and Milan as such machines show themselves.
"""

from __future__ import annotations

import pytest

from enforcer.machine.sysfs import read_machine
from enforcer.observer.moves.candidates import REST, MoveBudget
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.live_usage import Live
from numakin.wire import report_pb2 as pb
from tests.enforcer.observer.hook_and_observer import BUDGET, Node
from tests.trees import sysfs

MACHINES = ["epyc-7742-nps1", "epyc-7763-nps1"]
KEPT = {"span": "cache"}
PAIRS = ("ab", "cd", "ef")


class Caches(Node):
    """A node whose members say that they are to be kept within a cache."""

    def start(self, names: str, cpus: float = 1, **annotations: str) -> None:
        """On NUMA node 0, nobody known to talk, so that each comes to another cache; then rested."""
        talk, self.talk = self.talk, {}
        self.window()
        for name in names:
            self.run(name, "0", cpus, **{**KEPT, **annotations})
        self.talk = talk
        self.told()
        self.window(REST)

    def caches(self, names: str) -> list[CpuSet]:
        return [self.agent.occupancy.reservations[f"uid-{name}"].cache_domain for name in names]

    def round(self) -> int:
        """One window: its offer, made; how many members it moves."""
        offer = self.offer(self.window())
        self.make(offer)
        self.told()
        return sum(len(step.ways) for step in offer.steps)


@pytest.fixture(params=MACHINES)
def node(request: pytest.FixtureRequest) -> Caches:
    return Caches(*PAIRS, machine=read_machine(sysfs(request.param)))


def test_those_who_talk_come_together_in_one_cache_with_one_move_a_pair_and_rest_then(node: Caches) -> None:
    node.start("abcdef")
    assert len(set(node.caches("abcdef"))) == 6
    mems = [node.world.mems(name) for name in "abcdef"]
    moved = [node.round() for _ in range(3 * REST)]
    assert max(moved) <= BUDGET.single
    assert sum(moved) == len(PAIRS)
    for first, other in PAIRS:
        (cache,) = set(node.caches(first + other))
        assert {node.world.cpus(first), node.world.cpus(other)} == {str(cache)}
    assert [node.world.mems(name) for name in "abcdef"] == mems
    assert node.counts == (len(PAIRS), 0)


def test_two_who_would_lose_each_other_go_together(node: Caches) -> None:
    """c stays, as its pod says; what a window does not use of the budget is saved for those who go together."""
    node.start("a")
    kin = [pb.KinWeight(pod="uid-a", weight=1.0)]
    node.world.nominations.add(pb.Expect(pod="uid-b", numa_nodes="0", kin=kin))
    node.run("b", **KEPT)
    node.start("c", move="never")
    assert len(set(node.caches("ab"))) == 1
    node.talk = {("uid-a", "uid-b"): 1e5, ("uid-a", "uid-c"): 6e4, ("uid-b", "uid-c"): 6e4}
    node.budget = MoveBudget(2, 4)
    cache = node.caches("c")
    assert [node.round() for _ in range(2 * REST)].count(2) == 1
    assert node.caches("ab") == [*cache, *cache]
    assert node.counts == (2, 0)


def test_nobody_moves_before_it_has_rested(node: Caches) -> None:
    node.start("ab")
    node.run("x", "0", **KEPT)
    node.talk = {("uid-a", "uid-x"): 1e4}
    node.told()
    assert [node.round() for _ in range(REST + 1)] == [0] * REST + [1], "its kin rest again too"
    assert node.caches("a") == node.caches("x")


def test_without_the_annotation_nobody_moves(node: Caches) -> None:
    node.start("abcdef", span="numa")
    assert [node.round() for _ in range(REST)] == [0] * REST


def test_who_says_never_stays(node: Caches) -> None:
    node.start("ab", move="never")
    node.start("cd")
    before = node.caches("ab")
    assert sum(node.round() for _ in range(3 * REST)) == 1
    assert node.caches("ab") == before


def test_people_are_told_from_which_cache_and_why(node: Caches) -> None:
    node.start("ab")
    before = node.caches("ab")
    node.make(node.offer(node.window()))
    assert node.world.last.event == "move"
    first, *others = (f"{reason.what} {reason.number}: {reason.effect}" for reason in node.world.last.reasons)
    assert first in [f"moved 100.0%: of the traffic here comes into one cache, from CPUs {cache}" for cache in before]
    assert any(reason.startswith("cache CPUs") for reason in others)


def test_a_step_that_has_become_too_old_is_declined(node: Caches) -> None:
    node.start("ab")
    offer = node.offer(node.window())
    node.make(offer)
    node.make(offer)
    assert node.counts == (1, 1)


def test_a_cache_that_became_hot_meanwhile_takes_nobody_and_is_not_offered_again(node: Caches) -> None:
    node.start("ab")
    offer, ledger = node.offer(node.window()), node.agent.ledger
    hot = {cache.mask: True for cache in node.caches("ab")}
    ledger.occupancy = ledger.occupancy.with_live(ledger.occupancy.live.after(Live(hot=hot)))
    node.make(offer)
    assert node.counts == (0, 1)
    node.told()
    assert not node.offer(node.window()).steps


def test_a_member_beside_whom_kin_have_just_come_stays(node: Caches) -> None:
    node.start("ab")
    offer = node.offer(node.window())
    (way,) = offer.steps[0].ways
    mover = way.reservation.removeprefix("uid-")
    kin = [pb.KinWeight(pod=way.reservation, weight=1.0)]
    node.world.nominations.add(pb.Expect(pod="uid-n", numa_nodes="0", kin=kin))
    node.run("n", **KEPT)
    assert node.caches("n") == node.caches(mover)
    before = node.caches(mover)
    node.make(offer)
    assert node.caches(mover) == before


def test_what_the_runtime_did_not_make_is_where_it_was(node: Caches) -> None:
    node.start("ab")
    before, caches, offer = node.agent.occupancy, node.caches("ab"), node.offer(node.window())
    updates = node.agent.moves.make(offer.steps[0], offer)
    node.agent.moves.take_back(offer.steps[0], [update.container_id for update in updates], before)
    assert node.caches("ab") == caches
    assert node.agent.occupancy.allocations == before.allocations
