"""Moves that were made are looked at afterwards: by a real hook and what the observer does once a window."""

from __future__ import annotations

from typing import cast

import pytest

from enforcer.hook import status_report
from enforcer.machine.sysfs import read_machine
from enforcer.observer.moves.candidates import REST
from tests.enforcer.hook.world import container, member
from tests.enforcer.observer.moves.whole import WholeNode
from tests.trees import sysfs

HELPED, NO_HELP, NOT_JUDGED = "move helped", "move did not help", "move not judged"


@pytest.fixture
def node() -> WholeNode:
    """m, who may move, on NUMA node 0 with c; d on 1. m talks with both, more with d, and is brought there."""
    node = WholeNode()
    node.run("m", "0")
    node.run("c", "0", move="never")
    node.run("d", "1", move="never")
    node.talk = {("uid-c", "uid-m"): 1e4, ("uid-d", "uid-m"): 4e4}
    node.rest()
    assert node.windows(1) == [["m"]]
    assert node.homes("m") == ["1"]
    return node


def results(node: WholeNode) -> tuple[int, int, int]:
    """Those that helped, that did not, and that could not be told."""
    counts = node.agent.records.counts
    return counts[HELPED], counts[NO_HELP], counts[NOT_JUDGED]


def proven(node: WholeNode) -> list[str]:
    """What `status` says of the moves' results."""
    containers = cast("list[dict[str, list[str]]]", status_report.of(node.agent)["containers"])
    every = [reason for container in containers for reason in container["reasons"]]
    return [reason for reason in every if reason.startswith("proven")]


def test_a_move_that_brought_what_it_promised_helped(node: WholeNode) -> None:
    assert not any(node.windows(REST))
    assert results(node) == (0, 0, 0)
    assert not any(node.windows(REST))
    assert results(node) == (1, 0, 0)
    where = "of what the movers exchange here stays inside a NUMA node"
    assert proven(node) == [f"proven 80%: {where}, 20% before, 80% promised: the move helped"]


def test_one_that_did_not_is_said_too_and_nobody_goes_back_for_next_to_nothing(node: WholeNode) -> None:
    """m talks with c as much as with d by now."""
    node.talk = {("uid-c", "uid-m"): 5.001e4, ("uid-d", "uid-m"): 4.999e4}
    assert not any(node.windows(2 * REST))
    assert results(node) == (0, 1, 0)
    assert proven(node)[0].startswith("proven 50%: ")
    assert proven(node)[0].endswith("20% before, 80% promised: the move did not help")


def test_who_talks_with_two_in_turn_goes_back_once_and_stays_there() -> None:
    """Nothing stayed inside before either."""
    node = WholeNode("dm")
    node.run("m", "0")
    node.run("c", "0", move="never")
    node.run("d", "1", move="never")
    node.rest()
    moved = [node.windows(1)]
    for pair in ("cm", "dm", "cm", "dm"):
        node.talks(pair)
        moved.append([members for members in node.windows(2 * REST) if members])
    assert moved == [[["m"]], [["m"]], [], [], []]


class TestBetterOffBefore:
    """m talks with c alone by the time that its move can be seen: nothing of it stays inside."""

    @pytest.fixture
    def left(self, node: WholeNode) -> WholeNode:
        node.talks("cm")
        return node

    def test_it_is_taken_back(self, left: WholeNode) -> None:
        offered = left.windows(REST + 1)
        assert offered == [[]] * REST + [["m"]]
        assert left.homes("m") == ["0"]
        assert results(left) == (0, 1, 0)

    def test_what_came_of_the_way_back_is_looked_at_too(self, left: WholeNode) -> None:
        left.windows(2 * REST + 3)
        assert results(left) == (1, 1, 0)

    def test_it_is_not_made_again(self, left: WholeNode) -> None:
        """Whatever the traffic says then."""
        left.windows(REST + 1)
        left.talks("dm")
        assert not any(left.windows(4 * REST))
        assert left.homes("m") == ["0"]

    def test_the_way_back_is_offered_once(self, left: WholeNode) -> None:
        """Here there is no room any more, and the hook declines it."""
        left.run("f", "0", 7)
        left.told()
        assert sum(map(bool, left.windows(4 * REST))) == 1
        assert left.homes("m") == ["1"]


def test_of_a_member_that_is_gone_nothing_is_said(node: WholeNode) -> None:
    node.windows(1)
    node.agent.stop_container(member("m", group="m"), container("m"))
    node.agent.remove_container(member("m", group="m"), container("m"))
    node.told()
    node.windows(REST)
    assert results(node) == (0, 0, 0)


def test_of_those_who_talk_no_more_nothing_is_known(node: WholeNode) -> None:
    node.talks("cd")
    node.windows(REST + 1)
    assert results(node) == (0, 0, 1)


def test_a_move_between_caches_is_looked_at_by_caches() -> None:
    node = WholeNode(machine=read_machine(sysfs("epyc-7763-nps1")))
    for name in "ab":
        node.run(name, "0", span="cache")
    node.talk = {("uid-a", "uid-b"): 1e4}
    node.rest()
    moved = [members for members in node.windows(REST + 2) if members]
    assert len(moved) == 1
    assert results(node) == (1, 0, 0)
    where = "of what the movers exchange here stays inside a cache"
    assert proven(node) == [f"proven 100%: {where}, 0% before, 100% promised: the move helped"]
