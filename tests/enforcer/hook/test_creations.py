"""Containers that were answered and never created, as another plugin that is asked after us claims their cpusets."""

from dataclasses import replace

import pytest

from enforcer.hook.agent import Agent
from enforcer.hook.creations import MOST, REMEMBERED_S, Attempt, Creations, Shown
from numakin.placement.model.rules import Rules
from numakin.placement.state.yielded import Yielded
from tests.enforcer.hook.world import World, container, member, pod


def replica(name: str):
    made = member(name)
    made.labels["pod-template-hash"] = "6d4cf"
    made.name = f"web-6d4cf-{name}"
    return made


def test_the_second_try_is_left_open_and_what_the_first_held_is_free(world: World) -> None:
    of = member("a", cpus="exclusive")
    assert world.fail(of, container("a1", cpus=6)) is not None
    assert world.create(of, container("a2", cpus=6), other="0-3") is None, "no second claim is made"
    assert not world.agent.occupancy.exclusive
    assert world.agent.occupancy.allocations.keys() == {"a2"}
    assert world.agent.occupancy.allocations["a2"].externally_managed, "another plugin sets its cpuset"
    assert world.last.event == "conflict"
    assert (world.agent.records.counts["never created"], world.agent.records.counts["conflict"]) == (1, 1)


def test_what_the_other_plugin_gave_it_is_known_once_it_is_created(world: World) -> None:
    world.fail(member("a"), container("a1", cpus=2))
    world.create(member("a"), container("a2", cpus=2), other="5-6")
    assert str(world.agent.occupancy.allocations["a2"].cpus) == "5-6"
    assert world.agent.occupancy.cpu_load(world.machine) == {0: 0, 1: 2000}
    world.create(member("b", cpus="exclusive"), container("b", cpus=6))
    assert world.agent.occupancy.exclusive.isdisjoint(world.agent.occupancy.allocations["a2"].cpus)


def test_whose_cpus_the_first_try_took_has_them_back_with_the_seconds_answer(world: World) -> None:
    world.create(member("shared"), container("shared"))
    of = member("a", cpus="exclusive")
    world.fail(of, container("a1", cpus=2))
    assert world.cpus("shared") != "0-3,8-11"
    world.create(of, container("a2", cpus=2))
    assert world.cpus("shared") == "0-3,8-11"


@pytest.mark.parametrize("shown", ["created", "started", "has started"])
def test_a_container_that_was_created_may_come_again(world: World, shown: str) -> None:
    """Its start may fail ("exec not found"), which no event tells."""
    first = container("a1")
    world.fail(member("a"), first)
    {
        "created": world.agent.post_create_container,
        "started": world.agent.start_container,
        "has started": world.agent.post_start_container,
    }[shown](member("a"), first)
    assert world.create(member("a"), container("a2")) is not None
    assert not world.agent.records.counts["conflict"]


def test_that_the_runtime_undoes_a_creation_does_not_show_it_created(world: World) -> None:
    """containerd does so by StopContainer."""
    first = container("a1")
    world.fail(member("a"), first)
    world.agent.stop_container(member("a"), first)
    assert world.create(member("a"), container("a2")) is None


def test_another_container_of_the_pod_is_no_second_try(world: World) -> None:
    first, other = container("a1"), container("b1")
    other.name = "sidecar"
    assert world.fail(member("a"), first) is not None
    assert world.fail(member("a"), other) is not None


def test_once_it_is_proven_the_replicas_of_the_workload_lose_no_try(world: World) -> None:
    world.fail(replica("a"), container("a1"))
    world.create(replica("a"), container("a2"), other="0-3")
    assert world.create(replica("b"), container("b1"), other="0-3") is None
    assert world.agent.creations.proven == [("shop/Deployment/web", "app")]
    assert world.create(member("other"), container("other")) is not None, "of other workloads nothing is known"


def test_a_container_that_fails_without_us_too_is_placed_again(world: World) -> None:
    for number, is_open in enumerate([False, True, False, True]):
        adjust = world.fail(replica("a"), container(f"a{number}"))
        assert (adjust is None) == is_open
    assert not world.agent.creations.proven


def test_one_that_nobody_else_claims_is_placed_at_its_start_and_its_workload_stays_with_us(world: World) -> None:
    """CRI-O fails a creation, and undoes nothing towards plugins, where a program or a mount is not there."""
    world.fail(replica("a"), container("a1", cpus=6))
    second = container("a2", cpus=6)
    assert world.create(replica("a"), second) is None
    world.start(replica("a"), second)
    assert world.cpus("a2") in ("0-3,8-11", "4-7,12-15")
    assert not world.agent.occupancy.allocations["a2"].externally_managed
    assert world.agent.ledger.yielded == Yielded(containers=0, members=1, conflicts=0)
    assert not world.agent.creations.proven
    assert world.create(replica("b"), container("b1")) is not None


def test_a_conflict_that_is_over_costs_the_next_replica_nothing_but_its_start(world: World) -> None:
    world.fail(replica("a"), container("a1"))
    world.create(replica("a"), container("a2"), other="0-3")
    late = container("b1")
    assert world.create(replica("b"), late) is None
    world.start(replica("b"), late)
    assert world.cpus("b1") in ("0-3,8-11", "4-7,12-15")
    assert not world.agent.creations.proven


def test_by_the_operators_rule_what_has_not_opted_in_is_spared_too(world: World) -> None:
    world.agent = Agent(replace(world.facts(), rules=Rules(everyone=True)), world.nominations)
    world.create(member("own", cpus="exclusive"), container("own"))
    assert world.fail(pod("plain"), container("plain1")) is not None
    assert world.create(pod("plain"), container("plain2")) is None
    assert world.agent.ledger.settle() == []


def test_what_opts_in_no_more_has_no_tries(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """It is answered before it is decoded, and its creation is not listened to."""
    world.fail(replica("a"), container("a1"))
    world.create(replica("a"), container("a2"), other="0-3")
    plain = replica("b")
    plain.annotations.clear()
    for name in ("b1", "b2"):
        assert world.fail(plain, container(name)) is None
        assert not world.agent.occupancy.allocations[name].externally_managed
    world.agent.records.compose()
    assert "creation fails" not in caplog.text


def test_a_proven_conflict_is_tried_anew_after_a_while() -> None:
    now = 0.0
    creations = Creations(lambda: now)
    creations.answered("pod", "app", Attempt("a2", "ns/Deployment/web", opened=True))
    assert creations.created("pod", "app", "another's", claimed=True) is Shown.NOTHING
    assert creations.created("pod", "app", "a2", claimed=True) is Shown.CONFLICT
    assert creations.conflicts("ns/Deployment/web", "app")
    now = REMEMBERED_S
    assert not creations.conflicts("ns/Deployment/web", "app")


def test_what_is_remembered_is_bounded() -> None:
    creations = Creations()
    for number in range(MOST + 1):
        creations.answered(f"pod{number}", "app", Attempt("c", f"ns/Deployment/{number}", opened=True))
    assert creations.again("pod0", "app") is None, "the oldest went"
    for number in range(MOST + 1):
        creations.answered("pod", "app", Attempt("c", f"ns/Deployment/{number}", opened=True))
        creations.created("pod", "app", "c", claimed=True)
    assert len(creations.proven) == MOST
    assert not creations.conflicts("ns/Deployment/0", "app")


def test_the_end_of_a_pod_ends_its_attempts(world: World) -> None:
    world.fail(member("a"), container("a1"))
    world.agent.stop_pod_sandbox(member("a"))
    assert world.create(member("a"), container("a2")) is not None


def test_of_the_members_it_is_counted_what_others_have(world: World) -> None:
    world.create(member("placed"), container("placed"))
    claimed = container("claimed")
    claimed.linux.resources.cpu.cpus = "2-3"
    world.create(member("claimed"), claimed)
    world.fail(member("a"), container("a1"))
    world.create(member("a"), container("a2"), other="2-3")
    plain = container("plain")
    plain.linux.resources.cpu.cpus = "2-3"
    world.create(pod("plain"), plain)
    assert world.agent.ledger.yielded == Yielded(containers=2, members=3, conflicts=1)
    world.agent.stop_container(member("claimed"), claimed)
    assert world.agent.ledger.yielded == Yielded(containers=1, members=2, conflicts=1)
