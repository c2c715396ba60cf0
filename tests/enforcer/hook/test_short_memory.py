"""Memory that others take after a member was bound there: the kernel would kill it, or another one, though the machine
has memory.
"""

from __future__ import annotations

import pytest

from tests.enforcer.hook.world import GIB, World, container, member


def time_passes(world: World) -> None:
    world.agent.refresh()
    world.apply(world.agent.moves.unsent_updates())


@pytest.mark.parametrize("memory", ["auto", "bind"])
def test_members_of_a_numa_node_that_runs_short_of_memory_are_bound_no_more(world: World, memory: str) -> None:
    """Their pages still come from there first, as their CPUs are there."""
    world.create(member("a", memory=memory), container("a", memory=4 * GIB))
    world.create(member("x", group="other", memory=memory), container("x", memory=4 * GIB))
    assert (world.mems("a"), world.mems("x")) == ("0", "1")
    world.used[0] = 14 * GIB
    time_passes(world)
    assert world.mems("a") == "0", "there is some left"
    world.used[0] = 16 * GIB - (GIB >> 1)
    time_passes(world)
    assert (world.cpus("a"), world.mems("a")) == ("0-3,8-11", "0-1")
    assert world.mems("x") == "1"
    assert world.agent.records.counts["memory opened"] == 1


def test_one_that_was_opened_stays_so_when_memory_comes_free_and_at_a_restart(world: World) -> None:
    made = container("a", memory=4 * GIB)
    world.create(member("a"), made)
    for used in (16 * GIB, 0):
        world.used[0] = used
        time_passes(world)
        assert world.mems("a") == "0-1"
    assert world.started().synchronize([member("a")], [made]) == []


def test_while_it_is_not_known_how_much_is_free_none_is_opened(world: World) -> None:
    world.create(member("a"), container("a", memory=4 * GIB))
    world.agent.ledger.occupancy = world.agent.occupancy.with_live(type(world.agent.occupancy.live)())
    world.used = None
    time_passes(world)
    assert world.mems("a") == "0"
