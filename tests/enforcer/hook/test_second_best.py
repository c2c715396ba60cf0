"""Who was left open, or placed as second best, is placed anew when room comes free."""

from __future__ import annotations

import pytest

from enforcer.hook.wiring import Wiring
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.optin.quotas import Quota
from numakin.wire import nri_pb2 as nri
from tests.enforcer.hook.timers import TimersAlone
from tests.enforcer.hook.world import GIB, World, container, member

OWN = {"cpus": "exclusive"}
HOME = "0-3,8-11"
SMALL = GIB >> 4


def comes(world: World, name: str, count: float, **more: str) -> None:
    world.create(member(name, **more), container(name, count, SMALL))


def goes(world: World, name: str, **more: str) -> None:
    """Its container ends, and then its sandbox, whose end has no answer with updates."""
    world.apply(world.agent.stop_container(member(name, **more), container(name)))
    world.agent.stop_pod_sandbox(member(name, **more))


def passes(world: World) -> None:
    """Some seconds, and then the end of a member's container, whose answer may have updates."""
    world.agent.refresh()
    comes(world, "short", 0.001, group="short")
    world.apply(world.agent.stop_container(member("short", group="short"), container("short")))
    world.agent.stop_pod_sandbox(member("short", group="short"))


def crowded(world: World, **more: str) -> None:
    """Two jobs fill the machine beside `kin`, on NUMA node 0, and `web` fits nowhere."""
    comes(world, "kin", 1)
    comes(world, "job-1", 7.5, group="jobs")
    comes(world, "job-0", 7, group="jobs")
    comes(world, "web", 1, **more)
    assert (world.cpus("kin"), world.cpus("web")) == (HOME, "0-15")


def test_a_member_that_was_left_open_comes_home_to_its_kin(world: World) -> None:
    crowded(world)
    goes(world, "job-0", group="jobs")
    passes(world)
    assert world.cpus("web") == HOME
    held = world.agent.occupancy
    assert not held.allocations["web"].open
    assert str(held.reservations["uid-web"].numa_nodes) == "0"
    record = world.agent.records.latest()["web"]
    assert (record.event, str(record.reasons[0].what)) == ("room", "room")
    assert world.agent.records.counts["improved"] == 1


@pytest.mark.parametrize("most", [None, 0, 2, 3], ids=["no limit", "none", "fewer", "as many"])
def test_room_that_comes_free_gives_no_more_than_its_namespaces_quota_of_now(world: World, most: int | None) -> None:
    comes(world, "job", 14, group="jobs")
    comes(world, "own", 3, **OWN)
    world.agent.limited({"shop": Quota(exclusive_cpus=most)})
    goes(world, "job", group="jobs")
    passes(world)
    assert bool(world.agent.occupancy.exclusive) == (most is None or most >= 3)


def test_a_quota_that_is_raised_gives_what_it_has_refused(world: World) -> None:
    world.agent.limited({"shop": Quota(exclusive_cpus=2)})
    comes(world, "own", 3, **OWN)
    assert not world.agent.occupancy.exclusive
    world.agent.refresh()
    world.agent.limited({})
    world.agent.refresh()
    assert world.agent.moves.second_best.found, "though nothing has come or gone"
    passes(world)
    assert len(world.agent.occupancy.exclusive) == 3


def test_who_has_more_than_a_new_quota_keeps_it(world: World) -> None:
    comes(world, "own", 3, **OWN)
    world.agent.limited({"shop": Quota(exclusive_cpus=2, keys=frozenset())})
    passes(world)
    assert len(world.agent.occupancy.exclusive) == 3


def test_who_has_cpus_of_its_own_on_two_numa_nodes_keeps_them_though_its_namespace_may_ask_for_none_any_more(
    world: World,
) -> None:
    """As shared ones they would be together on one."""
    comes(world, "job-0", 5, group="jobs-0")
    comes(world, "job-1", 5, group="jobs-1")
    comes(world, "own", 5, **OWN)
    own = world.cpus("own")
    assert len(world.agent.occupancy.reservations["uid-own"].numa_nodes) == 2
    world.agent.limited({"shop": Quota(keys=frozenset())})
    goes(world, "job-1", group="jobs-1")
    passes(world)
    assert (world.cpus("own"), str(world.agent.occupancy.exclusive)) == (own, own)


def test_it_waits_while_there_is_no_room(world: World) -> None:
    crowded(world)
    passes(world)
    assert world.cpus("web") == "0-15"
    assert not world.agent.moves.second_best.found


def test_a_runtimes_synchronize_brings_it_home_too(world: World) -> None:
    crowded(world)
    goes(world, "job-0", group="jobs")
    left = [("kin", 1), ("job-1", 7.5), ("web", 1)]
    pods = [member(name, **({"group": "jobs"} if name == "job-1" else {})) for name, _ in left]
    world.apply(world.agent.synchronize(pods, [container(name, count, SMALL) for name, count in left]))
    assert world.cpus("web") == HOME


@pytest.mark.parametrize("says", [{"move": "never"}, {"policy": "none"}], ids=str)
def test_who_asked_to_be_left_alone_is(world: World, says: dict[str, str]) -> None:
    crowded(world, **says)
    goes(world, "job-0", group="jobs")
    passes(world)
    assert world.cpus("web") == "0-15"


class TestQuietNode:
    """No event comes whose answer could have updates."""

    @pytest.fixture
    def loop(self) -> TimersAlone:
        return TimersAlone()

    @pytest.fixture
    def wiring(self, world: World, loop: TimersAlone) -> Wiring:
        made = Wiring(loop)
        made.agent = world.agent
        loop.call_later(0, made._refresh)
        return made

    def test_the_runtime_is_registered_with_anew_as_its_synchronize_may_have_updates(
        self, world: World, loop: TimersAlone, wiring: Wiring
    ) -> None:
        reasons: list[str] = []
        wiring.register_again = reasons.append
        crowded(world)
        loop.go_on(60)
        assert reasons == []
        goes(world, "job-0", group="jobs")
        loop.go_on(60)
        assert reasons == ["members that had no room could be placed better now"], "once"

    def test_where_updates_are_safe_at_any_time_it_comes_home_at_the_next_look(
        self, world: World, loop: TimersAlone, wiring: Wiring
    ) -> None:
        wiring.at_any_time = True
        wiring.carry_out = lambda updates, _on_answer: world.apply(updates)
        crowded(world)
        goes(world, "job-0", group="jobs")
        loop.go_on(6)
        assert world.cpus("web") == HOME


def test_a_rolling_update_of_an_exclusive_pod_ends_with_exclusive_cpus(world: World) -> None:
    """The new pod comes while the old one still has its CPUs, and two do not fit."""
    for number in range(3):
        comes(world, f"own-{number}", 9, **OWN)
        if number:
            assert not world.agent.occupancy.allocations[f"own-{number}"].exclusive
            goes(world, f"own-{number - 1}", **OWN)
            passes(world)
        assert len(world.agent.occupancy.allocations[f"own-{number}"].exclusive) == 9
        assert world.cpus(f"own-{number}") == str(world.agent.occupancy.allocations[f"own-{number}"].exclusive)


def test_a_pod_over_two_numa_nodes_comes_together_on_one_of_them(world: World) -> None:
    comes(world, "job-0", 5, group="jobs-0")
    comes(world, "job-1", 5, group="jobs-1")
    comes(world, "web", 6)
    assert world.cpus("web") == "0-15"
    goes(world, "job-1", group="jobs-1")
    passes(world)
    assert world.cpus("web") == str(world.machine.node(1).cpus)


def test_what_no_numa_node_could_hold_is_not_looked_at(world: World) -> None:
    comes(world, "wide", 12)
    passes(world)
    assert world.cpus("wide") == "0-15"
    assert not world.agent.moves.second_best.found


def resize(world: World, name: str, count: float) -> list[nri.ContainerUpdate]:
    resources = nri.LinuxResources()
    resources.cpu.shares.value = int(count * 1024)
    updates = world.agent.update_container(member(name, **OWN), container(name, 0, SMALL), resources)
    world.apply(updates)
    return updates


def test_a_resized_exclusive_container_has_as_many_cpus_as_it_asks_for(world: World) -> None:
    comes(world, "neighbour", 1)
    comes(world, "own", 2, **OWN)
    two = CpuSet.parse(world.cpus("own"))
    resize(world, "own", 4)
    four = CpuSet.parse(world.cpus("own"))
    assert (len(four), two <= four) == (4, True)
    assert world.cpus("neighbour") == str(CpuSet.parse(HOME) - four)
    resize(world, "own", 1)
    one = CpuSet.parse(world.cpus("own"))
    assert (len(one), one <= four) == (1, True)
    assert world.cpus("neighbour") == str(CpuSet.parse(HOME) - one)
    assert "resized" in [reason.what for reason in world.agent.records.latest()["own"].reasons]


def test_one_that_is_resized_to_what_its_pod_has_room_for_gets_it(world: World) -> None:
    """The pod's reservation is as large as when its container before asked for more."""
    comes(world, "own", 4, **OWN)
    world.apply(world.agent.stop_container(member("own", **OWN), container("own")))
    comes(world, "own", 1, **OWN)
    assert len(CpuSet.parse(world.cpus("own"))) == 1
    resize(world, "own", 4)
    assert len(CpuSet.parse(world.cpus("own"))) == 4


def test_one_that_is_resized_beyond_what_can_be_spared_shares_and_says_so(world: World) -> None:
    comes(world, "own", 2, **OWN)
    comes(world, "job-0", 5.5, group="jobs")
    comes(world, "job-1", 7.5, group="jobs")
    resize(world, "own", 2.4)
    assert world.cpus("own") == HOME
    assert "it shares instead" in str(world.agent.records.latest()["own"].reasons)
