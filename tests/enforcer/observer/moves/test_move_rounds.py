"""What becomes of moves between the observer, which looks for them in what it was last told, and the hook, whose members
come, go and move meanwhile. Both ends are the real ones; who runs when is the test's.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from enforcer.local.learned import kin_table, plan_to
from enforcer.observer.moves.candidates import REST
from enforcer.observer.planning_thread import PlanningInput
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.plan.plan import Plan, PlannedSlots
from numakin.wire import local_pb2 as local
from tests.enforcer.hook.world import container, member
from tests.enforcer.observer.hook_and_observer import Node


@pytest.fixture
def pair() -> Node:
    """Two that talk, apart, rested."""
    node = Node("ab")
    node.run("a", "0")
    node.run("b", "1")
    node.told()
    node.window(REST)
    return node


def other_way(node: Node, offer: local.Moves) -> local.Moves:
    """The same pair brought together by the other one's move, which gains just as much: a rounding decides."""
    way = offer.steps[0].ways[0]
    other = "uid-b" if way.reservation == "uid-a" else "uid-a"
    made = local.Moves()
    made.CopyFrom(offer)
    made.steps[0].ways[0].CopyFrom(local.Moves.Way(reservation=other, source=way.target, target=way.source))
    return made


def test_partners_do_not_move_past_each_other(pair: Node) -> None:
    """A plan took so long that the next window's was made of what was before its moves."""
    first = pair.offer(pair.window())
    second = other_way(pair, pair.offer(pair.window()))
    pair.make(first)
    pair.make(second)
    assert len(set(pair.homes("a", "b"))) == 1
    assert pair.counts == (1, 1)


def test_a_plan_that_took_long_looks_for_moves_in_what_is_now(pair: Node) -> None:
    old = pair.window()
    pair.make(pair.offer(old))
    pair.told()
    assert not pair.offer(old).steps


def test_a_step_that_counted_on_another_one_is_not_made_without_it(pair: Node) -> None:
    """c follows a, which stays."""
    pair.run("c", "0")
    pair.talk["uid-a", "uid-c"] = 5e3
    pair.told()
    offer = pair.offer(pair.window(REST + 1))
    follow = local.Moves(generation=offer.generation, traffic=offer.traffic, pays=offer.pays)
    follow.steps.add(gain=0.3, ways=[local.Moves.Way(reservation="uid-c", source="0", target="1")])
    pair.make(follow)
    assert pair.homes("a", "c") == ["0", "0"]
    assert pair.counts == (0, 1)


class TestNewcomer:
    """A replica of a's that is seated beside its server b, while b is to be moved to a."""

    @pytest.fixture
    def offer(self, pair: Node) -> local.Moves:
        offer = pair.offer(pair.window())
        return offer if offer.steps[0].ways[0].reservation == "uid-b" else other_way(pair, offer)

    @pytest.mark.parametrize("weight", [1e3, 1e4])
    def test_it_is_not_left_by_the_move_that_it_carries(self, pair: Node, offer: local.Moves, weight: float) -> None:
        pair.agent.ledger.learned.weighed(kin_table({"uid-n": {"uid-b": weight}, "uid-b": {"uid-a": 1e4}}))
        pair.agent.moves.later(offer)
        assert pair.run("n") == []
        assert pair.homes("a", "b", "n") == ["0", "1", "1"]
        assert pair.counts == (0, 1)

    def test_it_counts_by_its_group_where_nothing_else_is_known_of_it(self, pair: Node, offer: local.Moves) -> None:
        pair.agent.moves.later(offer)
        pair.world.create(member("n", group="b"), container("n"))
        assert pair.homes("b", "n") == ["1", "1"]

    def test_a_stranger_carries_the_move(self, pair: Node, offer: local.Moves) -> None:
        pair.agent.moves.later(offer)
        assert pair.run("n") == ["b"]

    def test_whom_it_joined_rests_and_then_moves_if_they_do_not_talk_after_all(self, pair: Node) -> None:
        pair.world.create(member("n", group="b"), container("n"))
        pair.world.create(member("m", group="a"), container("m"))
        pair.told()
        assert pair.homes("a", "b", "n", "m") == ["0", "1", "1", "0"]
        for _ in range(REST):
            assert not pair.offer(pair.window()).steps
        pair.make(pair.offer(pair.window()))
        assert pair.counts == (1, 0)


def test_a_newcomer_follows_its_kin_that_was_moved_and_not_a_plan_from_before(pair: Node) -> None:
    """The plan of this window keeps a reservation for it where b is, and b's move goes out with the same window's kin table."""
    situation = pair.window()
    kept = Plan(
        {"shop/Pod/n": (PlannedSlots(NumaSet.parse("1"), 1),)}, {"shop/Pod/n": {1: 1.0}}, {"shop/Pod/n": Demand()}
    )
    pair.agent.ledger.learned.planned(plan_to(replace(kept, generation=situation.occupancy.generation)))
    offer = pair.offer(replace(situation, movable=frozenset(["uid-b"])))
    pair.agent.ledger.learned.weighed(kin_table({"uid-b": {"uid-a": 1e4}, "shop/Pod/n": {"uid-b": 1.0}}))
    pair.make(offer)
    pair.run("n")
    assert pair.homes("b", "n") == ["0", "0"]


def test_reserved_cpus_are_no_room_to_move_into() -> None:
    """b would fit beside a only on them: it stays, no step is wasted on it, and the other pair comes together."""
    node = Node("ab", "cd", reserved="0-3")
    for name, home, cpus in (
        ("a", "0", 2),
        ("f", "0", 1),
        ("c", "0", 0.5),
        ("b", "1", 3),
        ("g", "1", 4),
        ("d", "1", 0.5),
    ):
        node.run(name, home, cpus)
    node.told()
    for _ in range(3 * REST):
        node.make(node.offer(node.window()))
        node.told()
    assert node.homes("a", "b") == ["0", "1"]
    assert len(set(node.homes("c", "d"))) == 1
    assert node.counts == (1, 0)


def only_a(situation: PlanningInput) -> PlanningInput:
    return replace(situation, movable=situation.movable & {"uid-a"})


class TestDeclined:
    """a can't be moved, by its device, of which the observer does not know when it looks for moves."""

    @pytest.fixture
    def node(self) -> Node:
        node = Node("ab")
        device = local.Devices.Row(namespace="shop", pod="a", container="app", numa_nodes=["0"])
        node.agent.ledger.pod_devices.learn(local.Devices(rows=[device]))
        node.run("a", "0")
        node.run("b", "1")
        node.told()
        node.window(REST)
        return node

    def test_a_step_is_not_offered_again_while_nothing_has_changed(self, node: Node) -> None:
        for _ in range(3):
            node.make(node.offer(only_a(node.window())))
            node.told()
        assert node.counts == (0, 1)

    def test_the_next_best_is(self, node: Node) -> None:
        for _ in range(2):
            node.make(node.offer(node.window()))
            node.told()
        assert node.homes("a", "b") == ["0", "0"]

    @pytest.mark.parametrize("where", ["0", "1"])
    def test_it_is_offered_again_when_somebody_came_where_it_is_or_would_go(self, node: Node, where: str) -> None:
        node.make(node.offer(only_a(node.window())))
        node.told()
        node.run("n", where)
        node.told()
        node.make(node.offer(only_a(node.window())))
        assert node.counts == (0, 2)

    def test_it_is_offered_again_when_something_changed_before_the_observer_heard(self, node: Node) -> None:
        node.make(node.offer(only_a(node.window())))
        node.run("n")
        node.told()
        node.make(node.offer(only_a(node.window())))
        assert node.counts == (0, 2)


def test_what_the_runtime_did_not_make_counts_as_declined(pair: Node) -> None:
    before, offer = pair.agent.occupancy, pair.offer(only_a(pair.window()))
    pair.make(offer)
    pair.agent.moves.take_back(offer.steps[0], ["a"], before)
    pair.told()
    assert not pair.offer(only_a(pair.window())).steps
