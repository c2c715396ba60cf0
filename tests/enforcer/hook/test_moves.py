"""Running members that move: what the agent makes of the observer's steps."""

from __future__ import annotations

import pytest

from enforcer.hook.moves import STOPS_S, MoveExecutor
from numakin.placement.optin.quotas import Quota
from numakin.placement.state.occupancy import Occupancy
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb
from tests.clock import Clock
from tests.enforcer.hook.moving import HOLDS_S, ON, make, offer, run, talk
from tests.enforcer.hook.world import GIB, World, container, member, pod


@pytest.fixture
def apart(world: World) -> World:
    """a on NUMA node 0, b on 1, and they talk."""
    run(world, "a", "0")
    run(world, "b", "1")
    talk(world, "ab")
    return world


def test_a_member_moves_to_its_kin_and_its_pages_stay(apart: World) -> None:
    make(apart, ("a", "0", "1"))
    assert apart.cpus("a") == ON["1"]
    assert apart.mems("a") == "0-1"


def test_its_pages_follow_where_it_allows_that(world: World) -> None:
    run(world, "a", "0", move="cpus-and-memory")
    run(world, "b", "1")
    talk(world, "ab")
    make(world, ("a", "0", "1"))
    assert (world.cpus("a"), world.mems("a")) == (ON["1"], "1")


def test_two_change_places_at_once(world: World) -> None:
    run(world, "a", "0", cpus_asked=7)
    run(world, "b", "1", cpus_asked=7)
    run(world, "c", "0")
    run(world, "d", "1")
    talk(world, "ad", "bc")
    make(world, ("a", "0", "1"), ("b", "1", "0"))
    assert (world.cpus("a"), world.cpus("b")) == (ON["1"], ON["0"])


def test_people_are_told_why(apart: World) -> None:
    make(apart, ("a", "0", "1"))
    assert apart.last.event == "move"
    assert (apart.last.pod_name, apart.last.container_name, apart.last.numa_nodes) == ("a", "app", "1")
    output = [f"{reason.what} {reason.number}: {reason.effect}" for reason in apart.last.reasons]
    assert output[0] == "moved 25.0%: of the traffic here comes home, from NUMA node 0"
    assert "planned : NUMA node 1" in output
    assert apart.agent.records.counts["moved"] == 1


@pytest.mark.parametrize(
    "stale",
    [
        [("a", "1", "0")],
        [("gone", "0", "1")],
        [("a", "0", "1"), ("b", "0", "1")],
    ],
    ids=["it is elsewhere", "it is gone", "one of two is elsewhere"],
)
def test_a_step_that_is_too_old_moves_nobody(apart: World, stale: list[tuple[str, str, str]]) -> None:
    before = apart.agent.occupancy
    assert make(apart, *stale) == []
    assert apart.agent.occupancy is before
    assert apart.agent.records.counts["move declined"] == 1


def test_a_member_that_does_not_fit_there_stays(world: World) -> None:
    run(world, "a", "0", cpus_asked=7)
    run(world, "b", "1", cpus_asked=7)
    talk(world, "ab")
    assert make(world, ("a", "0", "1")) == []
    assert world.cpus("a") == ON["0"]


@pytest.mark.parametrize("quota", [Quota(exclusive_cpus=0), Quota(keys=frozenset())], ids=str)
def test_who_has_cpus_of_its_own_that_its_namespace_may_not_ask_for_any_more_keeps_them(
    world: World, quota: Quota
) -> None:
    run(world, "a", "0", cpus="exclusive", cpus_asked=2)
    run(world, "b", "1")
    talk(world, "ab")
    own = world.cpus("a")
    world.agent.limited({"shop": quota})
    assert make(world, ("a", "0", "1")) == []
    assert (world.cpus("a"), str(world.agent.occupancy.exclusive)) == (own, own)


def test_who_said_never_stays(world: World) -> None:
    run(world, "a", "0", move="never")
    run(world, "b", "1")
    talk(world, "ab")
    assert make(world, ("a", "0", "1")) == []


def test_a_pod_with_a_container_that_is_somebody_elses_stays(apart: World) -> None:
    claimed = container("a2")
    claimed.linux.resources.cpu.cpus = "0-1"
    claimed.name = "other"
    apart.agent.create_container(member("a", group="a"), claimed)
    apart.agent.update_container(member("a", group="a"), container("a"), claimed.linux.resources)
    assert make(apart, ("a", "0", "1")) == []


def test_exclusive_cpus_come_from_the_new_numa_node_and_its_pool_shrinks(world: World) -> None:
    run(world, "a", "0", cpus="exclusive", cpus_asked=2)
    run(world, "b", "1")
    talk(world, "ab")
    make(world, ("a", "0", "1"))
    own = world.agent.occupancy.allocations["a"].exclusive
    assert str(own) == world.cpus("a")
    assert world.agent.occupancy.allocations["b"].cpus == world.machine.node(1).cpus - own
    assert world.cpus("b") == str(world.machine.node(1).cpus - own)


def test_what_the_runtime_did_not_move_is_where_it_was(apart: World) -> None:
    before, (step,) = apart.agent.occupancy, offer([("a", "0", "1")]).steps
    make(apart, ("a", "0", "1"))
    apart.agent.moves.take_back(step, ["a"], before)
    assert apart.agent.occupancy.allocations["a"] == before.allocations["a"]
    assert apart.agent.occupancy.reservations["uid-a"] == before.reservations["uid-a"]


def taken_back(world: World, step: local.Moves.Step, failed: list[str], before: Occupancy) -> None:
    """The runtime did not move these."""
    really = {name: world.cgroups[f"/kubepods/{name}"] for name in failed}
    world.apply(world.agent.moves.make(step, offer([])))
    world.cgroups |= {f"/kubepods/{name}": cpuset for name, cpuset in really.items()}
    world.apply(world.agent.moves.take_back(step, failed, before))


def as_the_ledger_has_it(world: World) -> dict[str, bool]:
    return {key: str(held.cpus) == world.cpus(key) for key, held in world.agent.occupancy.allocations.items()}


def test_an_exclusive_member_that_was_not_moved_has_its_cpus_for_itself(world: World) -> None:
    """They had become its neighbour's again."""
    run(world, "a", "0", cpus="exclusive", cpus_asked=2)
    run(world, "b", "1")
    run(world, "c", "0")
    talk(world, "ab")
    before, (step,) = world.agent.occupancy, offer([("a", "0", "1")]).steps
    taken_back(world, step, ["a"], before)
    held = world.agent.occupancy.allocations
    assert held["a"] == before.allocations["a"]
    assert all(as_the_ledger_has_it(world).values())
    run(world, "new", "0", cpus="exclusive", cpus_asked=2)
    assert held["a"].exclusive.isdisjoint(world.agent.occupancy.allocations["new"].exclusive)


@pytest.mark.parametrize("failed", [["a", "b"], ["a"], ["b"]], ids=" and ".join)
def test_of_two_exclusive_ones_that_were_to_change_places_none_has_the_others_cpus(
    world: World, failed: list[str]
) -> None:
    for name, home in (("a", "0"), ("b", "1")):
        run(world, name, home, cpus="exclusive", cpus_asked=7)
    run(world, "c", "0")
    run(world, "d", "1")
    talk(world, "ad", "bc")
    before, (step,) = world.agent.occupancy, offer([("a", "0", "1"), ("b", "1", "0")]).steps
    taken_back(world, step, failed, before)
    after = world.agent.occupancy
    assert after.allocations["a"].exclusive.isdisjoint(after.allocations["b"].exclusive)
    assert all(as_the_ledger_has_it(world).values())


def test_who_moved_to_where_an_exclusive_one_stayed_that_has_all_of_it_comes_back_with_it(world: World) -> None:
    """On the NUMA node that it moved to nothing is left to share."""
    run(world, "a", "0")
    run(world, "b", "1", cpus="exclusive", cpus_asked=8)
    before, (step,) = world.agent.occupancy, offer([("a", "0", "1"), ("b", "1", "0")]).steps
    step.whole = True
    taken_back(world, step, ["b"], before)
    assert all(as_the_ledger_has_it(world).values())
    assert {name: world.cpus(name) for name in "ab"} == {"a": ON["0"], "b": ON["1"]}


@pytest.mark.parametrize(
    ("whole", "beside", "goes"),
    [(False, "1", False), (True, "1", True), (True, "0", False)],
    ids=["by itself it does not pay", "towards a whole that pays", "it would lose its kin by now"],
)
def test_a_step_towards_a_whole_only_has_to_bring_anything_home(world: World, whole, beside, goes) -> None:
    run(world, "a", "0")
    run(world, "b", beside)
    talk(world, "ab", weight=0.001)
    offered = offer([("a", "0", "1")])
    offered.steps[0].whole = whole
    world.apply(world.agent.moves.make(offered.steps[0], offered))
    assert world.cpus("a") == ON["1" if goes else "0"]


def test_who_can_not_go_back_is_asked_to_move_once_more(world: World) -> None:
    """Its exclusive CPUs are a newcomer's by now."""
    run(world, "a", "0", cpus="exclusive", cpus_asked=7)
    run(world, "b", "1")
    talk(world, "ab")
    before, offered = world.agent.occupancy, offer([("a", "0", "1")])
    really = world.cgroups["/kubepods/a"]
    world.apply(world.agent.moves.make(offered.steps[0], offered))
    world.cgroups["/kubepods/a"] = really
    run(world, "new", "0", cpus="exclusive", cpus_asked=7)
    again = world.agent.moves.take_back(offered.steps[0], ["a"], before)
    assert [update.container_id for update in again] == ["a"]
    world.apply(again)
    assert all(as_the_ledger_has_it(world).values())
    after = world.agent.occupancy
    assert after.allocations["a"].exclusive.isdisjoint(after.allocations["new"].exclusive)


def test_who_shared_a_pool_that_is_a_newcomers_alone_by_now_is_asked_to_move_once_more(world: World) -> None:
    run(world, "a", "0")
    run(world, "b", "1")
    talk(world, "ab")
    before, offered = world.agent.occupancy, offer([("a", "0", "1")])
    really = world.cgroups["/kubepods/a"]
    world.apply(world.agent.moves.make(offered.steps[0], offered))
    world.cgroups["/kubepods/a"] = really
    run(world, "new", "0", cpus="exclusive", cpus_asked=8)
    again = world.agent.moves.take_back(offered.steps[0], ["a"], before)
    assert [update.container_id for update in again] == ["a"]
    world.apply(again)
    assert all(as_the_ledger_has_it(world).values())
    assert world.agent.occupancy.allocations["a"].cpus.isdisjoint(world.agent.occupancy.exclusive)


def test_who_can_not_go_back_to_cpus_that_a_newcomer_has_for_good_is_asked_to_move_once_more(world: World) -> None:
    run(world, "a", "0", cpus="exclusive", cpus_asked=7)
    run(world, "b", "1")
    talk(world, "ab")
    before, offered = world.agent.occupancy, offer([("a", "0", "1")])
    really = world.cgroups["/kubepods/a"]
    world.apply(world.agent.moves.make(offered.steps[0], offered))
    world.cgroups["/kubepods/a"] = really
    run(world, "new", "0", cpus="shared-stable")
    world.apply(world.agent.moves.take_back(offered.steps[0], ["a"], before))
    after = world.agent.occupancy
    assert after.allocations["new"].stable
    assert after.allocations["a"].exclusive.isdisjoint(after.allocations["new"].cpus)
    assert all(as_the_ledger_has_it(world).values())


def test_who_was_not_moved_has_its_cpus_though_an_answer_named_others_meanwhile(world: World) -> None:
    """The exclusive CPUs of a newcomer were taken off the pool to which it was to go."""
    run(world, "a", "0")
    run(world, "b", "1")
    talk(world, "ab")
    before, offered = world.agent.occupancy, offer([("a", "0", "1")])
    really = world.cgroups["/kubepods/a"]
    world.apply(world.agent.moves.make(offered.steps[0], offered))
    world.cgroups["/kubepods/a"] = really
    run(world, "new", "1", cpus="exclusive", cpus_asked=2)
    assert world.cgroups["/kubepods/a"] != really
    world.apply(world.agent.moves.take_back(offered.steps[0], ["a"], before))
    assert all(as_the_ledger_has_it(world).values())
    assert world.cgroups["/kubepods/a"][0] == really[0]


def test_what_the_kernel_refused_is_left_alone_and_not_taken_back(apart: World) -> None:
    before, (step,) = apart.agent.occupancy, offer([("a", "0", "1")]).steps
    make(apart, ("a", "0", "1"))
    apart.agent.refused(member("a", group="a"), container("a"), "no space left")
    apart.agent.moves.take_back(step, ["a"], before)
    assert apart.agent.occupancy.allocations["a"].externally_managed


def create(world: World, name: str) -> list[str]:
    """Of a stranger to all: who is updated along with it."""
    _, updates = world.agent.create_container(member(name, group=name), container(name))
    return [update.container_id for update in updates]


class TestOnAnOlderRuntime:
    """Which may lock up over an update out of turn: moves ride in the answers about members."""

    def test_a_step_goes_with_the_next_newcomer(self, apart: World) -> None:
        apart.agent.moves.later(offer([("a", "0", "1")]))
        _, updates = apart.agent.create_container(member("c", group="c"), container("c"))
        assert [update.container_id for update in updates] == ["a"]
        _, later = apart.agent.create_container(member("d", group="d"), container("d"))
        assert later == []

    def test_a_step_goes_with_the_end_of_a_member(self, apart: World) -> None:
        apart.agent.moves.later(offer([("a", "0", "1")]))
        assert [entry.container_id for entry in apart.agent.stop_container(member("b"), container("b"))] == ["a"]

    def test_where_containers_stop_now_and_then_no_newcomer_waits_for_a_step(self, apart: World) -> None:
        clock = Clock()
        agent = apart.agent
        agent.moves = MoveExecutor(agent.ledger, clock)
        create(apart, "c")
        agent.stop_container(member("c", group="c"), container("c"))
        agent.moves.later(offer([("a", "0", "1")]))
        clock.now += STOPS_S - 1
        assert create(apart, "d") == []
        clock.now += 1
        assert create(apart, "e") == ["a"]

    def test_a_newcomer_is_created_without_the_cpus_that_a_mover_takes_along(self, world: World) -> None:
        """And gets no update: it is not there yet."""
        run(world, "a", "0", cpus="exclusive", cpus_asked=2)
        run(world, "b", "1")
        talk(world, "ab")
        world.agent.moves.later(offer([("a", "0", "1")]))
        world.nominations.add(pb.Expect(pod="uid-c", numa_nodes="1"))
        adjust, updates = world.agent.create_container(member("c", group="c"), container("c"))
        own = world.agent.occupancy.allocations["a"].exclusive
        assert adjust is not None
        assert adjust.linux.resources.cpu.cpus == str(world.machine.node(1).cpus - own)
        assert sorted(update.container_id for update in updates) == ["a", "b"]

    def test_a_container_that_both_the_answer_and_a_move_change_gets_one_update(self, world: World) -> None:
        run(world, "a", "0", cpus="exclusive", cpus_asked=2)
        run(world, "b", "1")
        talk(world, "ab")
        world.agent.moves.later(offer([("a", "0", "1")]))
        world.nominations.add(pb.Expect(pod="uid-c", numa_nodes="1"))
        _, updates = world.agent.create_container(member("c", group="c", cpus="exclusive"), container("c", 2))
        assert sorted(update.container_id for update in updates) == ["a", "b"]
        (last,) = (update for update in updates if update.container_id == "b")
        assert last.linux.resources.cpu.cpus == str(world.agent.occupancy.allocations["b"].cpus)
        taken = [world.agent.occupancy.allocations[entry].exclusive for entry in "ac"]
        assert world.agent.occupancy.allocations["b"].cpus == world.machine.node(1).cpus - taken[0] - taken[1]

    def test_nobody_else_is_made_to_carry_it(self, apart: World) -> None:
        apart.agent.moves.later(offer([("a", "0", "1")]))
        assert apart.agent.create_container(pod("plain"), container("plain")) == (None, [])

    def test_newer_steps_replace_those_that_wait(self, apart: World) -> None:
        apart.agent.moves.later(offer([("a", "0", "1")]))
        apart.agent.moves.later(offer())
        assert apart.agent.stop_container(member("b"), container("b")) == []

    def test_steps_that_wait_are_not_made_any_more_where_the_observer_renews_them_no_longer(self, apart: World) -> None:
        """It has ended, or its planner fails: neither today's traffic nor the operator's hours are in them."""
        clock = Clock()
        apart.agent.moves = MoveExecutor(apart.agent.ledger, clock)
        apart.agent.moves.later(offer([("a", "0", "1")]))
        clock.now += HOLDS_S
        assert apart.agent.stop_container(member("b"), container("b")) == []

    def test_one_that_fails_costs_no_other(self, apart: World) -> None:
        apart.agent.moves.later(offer([("a", "0", "1")], [("b", "1", "not a list")]))
        assert [entry.container_id for entry in apart.agent.stop_container(member("c"), container("c"))] == []
        _, updates = apart.agent.create_container(member("c", group="c"), container("c"))
        assert [update.container_id for update in updates] == ["a"]

    def test_the_newcomers_pin_does_not_depend_on_it(self, apart: World) -> None:
        apart.agent.moves.later(offer([("a", "0", "not a list")]))
        adjust, updates = apart.agent.create_container(member("c", group="c"), container("c"))
        assert isinstance(adjust, nri.ContainerAdjustment)
        assert updates == []


def test_after_a_release_nobody_moves(apart: World) -> None:
    apart.agent.release()
    assert make(apart, ("a", "0", "1")) == []


def test_a_moved_member_is_found_where_it_is_after_a_restart(apart: World) -> None:
    make(apart, ("a", "0", "1"))
    moved = container("a", memory=GIB)
    moved.annotations["pinned.numakin.io"] = "cpus=0-3,8-11 mems=0"
    apart.started().synchronize([member("a", group="a")], [moved])
    assert str(apart.agent.occupancy.reservations["uid-a"].numa_nodes) == "1"


class TestRemovedWithoutAStop:
    """As when a container fails to start: the runtime takes no updates then."""

    def test_moves_wait_for_an_answer_that_takes_them(self, apart: World) -> None:
        run(apart, "c", "0")
        apart.agent.moves.later(offer([("a", "0", "1")]))
        apart.agent.remove_container(member("c", group="c"), container("c"))
        assert str(apart.agent.occupancy.reservations["uid-a"].numa_nodes) == "0"
        run(apart, "d", "0")
        assert apart.cpus("a") == ON["1"]

    def test_what_it_leaves_to_others_comes_with_the_next_answer(self, apart: World) -> None:
        run(apart, "own", "0", cpus="exclusive")
        assert apart.cpus("a") != ON["0"]
        apart.agent.remove_container(member("own", group="own", cpus="exclusive"), container("own"))
        run(apart, "c", "1")
        assert apart.cpus("a") == ON["0"]

    def test_not_for_who_has_another_owner_by_then(self, apart: World) -> None:
        run(apart, "own", "0", cpus="exclusive")
        apart.agent.remove_container(member("own", group="own", cpus="exclusive"), container("own"))
        claimed = nri.LinuxResources()
        claimed.cpu.cpus = "4-5"
        apart.agent.update_container(member("a", group="a"), container("a"), claimed)
        run(apart, "c", "1")
        updates = apart.agent.stop_container(member("c", group="c"), container("c"))
        assert "a" not in {update.container_id for update in updates}
        assert apart.agent.occupancy.allocations["a"].externally_managed


def test_a_pod_does_not_move_with_the_answer_about_its_own_next_container(apart: World) -> None:
    """Which says where it was when it was decided."""
    apart.agent.moves.later(offer([("a", "0", "1")]))
    second = container("a2")
    second.name, second.pod_sandbox_id = "side", "sandbox-a"
    apart.create(member("a", group="a"), second)
    assert apart.cpus("a2") == apart.cpus("a") == ON["0"]
    run(apart, "c", "1")
    assert apart.cpus("a2") == apart.cpus("a") == ON["1"]
