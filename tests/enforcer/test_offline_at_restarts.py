"""CPUs go offline and come back around a restart. A cgroup of version 2 goes on naming those that are offline: nobody
loses a home for it, nothing of another owner's is taken for ours, and what has not opted in never notices.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.rules import Rules
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb
from tests.enforcer.hook.changing import without
from tests.enforcer.hook.world import GIB, container, path_of, pod, two_numa_nodes
from tests.enforcer.restarts import Restarting, ours

SECOND = NumaSet.parse("1")


@pytest.fixture
def node(tmp_path: Path) -> Restarting:
    return Restarting(two_numa_nodes(), tmp_path / "run", unified=True)


@pytest.fixture(autouse=True)
def _run_dir(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()


@pytest.fixture
def for_everyone(tmp_path: Path) -> Restarting:
    """By `--shared-pool all` what has not opted in is kept off exclusive CPUs."""
    return Restarting(two_numa_nodes(), tmp_path / "run", rules=Rules(everyone=True), unified=True)


def restarts_with(node: Restarting, offline: str, gone: NumaSet = NumaSet()) -> None:
    """They go while no enforcer is there."""
    node.recorder.write()
    node.kill()
    node.becomes(without(two_numa_nodes(), CpuSet.parse(offline), gone=gone))
    node.start()


def home(node: Restarting, name: str) -> str:
    occupancy = node.agent.occupancy
    return str(occupancy.reservations[occupancy.allocations[name].reservation].numa_nodes)


def test_a_member_keeps_the_home_that_lost_some_cpus(node: Restarting) -> None:
    """Its memory is there."""
    for name in ("a", "b"):
        node.create(pod(name, group=name), container(name, 6))
        node.begin(name)
    assert {home(node, name) for name in ("a", "b")} == {"0", "1"}
    second = next(name for name in ("a", "b") if home(node, name) == "1")
    restarts_with(node, "6,7,14,15")
    assert home(node, second) == "1"
    assert node.cpus(second) == CpuSet.parse("4-5,12-13")


def test_a_member_left_open_while_its_cpus_are_offline_has_all_when_they_are_back(node: Restarting) -> None:
    """Others take the room that it had."""
    for name in ("a", "b"):
        node.create(pod(name, group=name), container(name, 6))
        node.begin(name)
    last = next(name for name in ("a", "b") if home(node, name) == "1")
    restarts_with(node, "4-7,12-15", SECOND)
    assert node.agent.occupancy.allocations[last].open
    asks = container(last, 15).linux.resources
    node.apply(node.agent.update_container(*node.running[last], asks))
    node.becomes(two_numa_nodes())
    assert node.agent.occupancy.allocations[last].open
    assert node.cpus(last) == node.machine.all_cpus


@pytest.mark.parametrize("restarted", [True, False])
def test_a_member_on_two_numa_nodes_takes_all_that_it_asks_for_from_the_one_whose_cpus_are_left(
    node: Restarting, *, restarted: bool
) -> None:
    """Else the next one comes where there is no room."""
    node.create(pod("wide", group="wide"), container("wide", 10))
    node.begin("wide")
    assert home(node, "wide") == "0-1"
    if restarted:
        restarts_with(node, "4-7,12-15")
    else:
        node.becomes(without(two_numa_nodes(), CpuSet.parse("4-7,12-15")))
    assert node.agent.occupancy.cpu_load(node.machine) == {0: 10_000, 1: 0}


def test_cpus_that_are_back_are_none_of_a_cpuset_that_was_given_anew_meanwhile(node: Restarting) -> None:
    """What was left of it is what was given."""
    node.create(pod("still", group="web", cpus="shared-stable"), container("still"))
    node.begin("still")
    assert node.cpus("still") == CpuSet.parse("2-3,10-11")
    restarts_with(node, "1,3-15")
    assert node.cpus("still") == CpuSet.parse("2")
    node.becomes(two_numa_nodes())
    assert node.cpus("still") == node.agent.occupancy.allocations["still"].cpus == CpuSet.parse("2")


def test_cpus_that_are_back_are_none_of_an_exclusive_member_whose_cpuset_another_wrote_meanwhile(
    node: Restarting,
) -> None:
    """As many as it may have are left of that, and are its own from then on."""
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 1))
    node.begin("own")
    node.recorder.write()
    node.kill()
    node.cgroups[path_of("own")] = CpuSet.parse("1,15"), node.machine.mems
    node.becomes(without(two_numa_nodes(), CpuSet.parse("15")))
    node.start()
    node.becomes(two_numa_nodes())
    assert node.cpus("own") == node.agent.occupancy.exclusive == CpuSet.parse("1")


def test_one_that_starts_after_a_release_with_cpus_that_are_offline_has_all_when_they_are_back(
    node: Restarting,
) -> None:
    """It was being created."""
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2), under_way=True)
    given = node.cpus("own")
    node.becomes(without(two_numa_nodes(), given))
    node.release()
    node.synchronize()
    node.begin("own")
    node.becomes(two_numa_nodes())
    assert node.cpus("own") == node.machine.all_cpus


def test_a_member_whose_home_is_gone_gets_another(node: Restarting) -> None:
    for name in ("a", "b"):
        node.create(pod(name, group=name), container(name, 3))
        node.begin(name)
    restarts_with(node, "", gone=SECOND)
    assert {home(node, name) for name in ("a", "b")} == {"0"}
    assert node.agent.records.counts["failed"] == 0
    assert all(ours(node, name) for name in ("a", "b"))


def test_another_owners_cpuset_stays_another_owners(node: Restarting) -> None:
    node.kill()
    node.create(pod("a", group="web"), container("a", claim="1,15"))
    node.begin("a")
    node.becomes(without(two_numa_nodes(), CpuSet.parse("4-7,12-15")))
    node.start()
    assert node.set_to("a") == CpuSet.parse("1,15")
    assert not ours(node, "a")


def test_another_owners_cpuset_is_not_widened_by_the_rule_for_everyone_though_all_of_it_was_offline(
    for_everyone: Restarting,
) -> None:
    node = for_everyone
    node.kill()
    node.create(pod("plain"), container("plain", claim="4,15"))
    node.begin("plain")
    node.becomes(without(two_numa_nodes(), CpuSet.parse("4-7,12-15")))
    node.start()
    node.becomes(two_numa_nodes())
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    assert node.set_to("plain") == CpuSet.parse("4,15")


def test_a_pod_that_takes_no_place_has_its_cpuset_from_another_owner_though_it_looks_like_a_pool(
    node: Restarting,
) -> None:
    node.kill()
    node.create(pod("a", group="web", policy="none"), container("a", claim="0-3,8-11"))
    node.begin("a")
    node.start()
    assert not ours(node, "a")


def test_a_container_kept_off_exclusive_cpus_gets_all_of_them_back_though_some_were_offline_meanwhile(
    for_everyone: Restarting,
) -> None:
    node = for_everyone
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.create(pod("plain"), container("plain"))
    for name in ("own", "plain"):
        node.begin(name)
    restarts_with(node, "12-15")
    node.stop("own")
    assert node.cpus("plain") == node.machine.all_cpus
    restarts_with(node, "12-15")
    node.becomes(two_numa_nodes())
    assert node.cpus("plain") == node.machine.all_cpus


@pytest.mark.parametrize("released", [False, True], ids=["while members are pinned", "while the node is released"])
def test_so_does_one_of_whose_cpus_none_was_there_at_the_restart(for_everyone: Restarting, *, released: bool) -> None:
    """It runs on all CPUs meanwhile, and what its cgroup names comes back."""
    node = for_everyone
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.create(pod("plain"), container("plain"))
    for name in ("own", "plain"):
        node.begin(name)
    kept = node.cpus("plain")
    if released:
        node.release(lost_after=0)
    else:
        node.stop("own", lost=True)
    restarts_with(node, str(kept))
    node.becomes(two_numa_nodes())
    assert node.cpus("plain") == node.machine.all_cpus


def test_what_another_owner_gave_while_the_node_is_released_stays_though_it_was_all_that_was_online(
    for_everyone: Restarting,
) -> None:
    """Since the release nothing is our work but what was given before it."""
    node = for_everyone
    node.release()
    node.create(pod("a", group="web"), container("a", claim="0-14"))
    node.kill()
    node.becomes(without(two_numa_nodes(), CpuSet.parse("7,15")))
    node.start()
    node.begin("a")
    node.becomes(two_numa_nodes())
    assert node.set_to("a") == CpuSet.parse("0-14")


def test_what_was_kept_off_exclusive_cpus_until_a_release_has_those_too_that_were_offline_then(
    for_everyone: Restarting,
) -> None:
    node = for_everyone
    node.becomes(without(two_numa_nodes(), CpuSet.parse("12-15")))
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.create(pod("plain"), container("plain"))
    for name in ("own", "plain"):
        node.begin(name)
    node.release()
    restarts_with(node, "")
    assert node.cpus("plain") == node.machine.all_cpus


def test_what_is_being_created_while_cpus_become_exclusive_starts_off_them(for_everyone: Restarting) -> None:
    """The runtime passes over an update of a container that it does not list yet."""
    node = for_everyone
    node.create(pod("plain"), container("plain"), under_way=True)
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.begin("own")
    node.begin("plain")
    assert node.cpus("plain") == node.machine.all_cpus - node.cpus("own")


@pytest.mark.parametrize("seen", [True, False], ids=["while an enforcer is there", "around a restart"])
def test_the_last_cpus_that_are_left_are_nobodys_alone(node: Restarting, *, seen: bool) -> None:
    """Others would run on them all the same."""
    node.create(pod("own", group="a", cpus="exclusive"), container("own", 4))
    node.create(pod("b", group="b"), container("b", 2))
    for name in ("own", "b"):
        node.begin(name)
    offline = node.machine.all_cpus - node.cpus("own")
    if seen:
        node.becomes(without(two_numa_nodes(), offline))
    else:
        restarts_with(node, str(offline))
    assert not node.agent.occupancy.exclusive
    assert node.cpus("own") == node.cpus("b") == node.machine.all_cpus


def test_whole_cores_are_whole_after_smt_was_switched_on_around_a_restart(node: Restarting) -> None:
    node.becomes(without(two_numa_nodes(), CpuSet.parse("8-15")))
    node.create(pod("own", group="a", cpus="exclusive-cores"), container("own", 3))
    node.create(pod("b", group="b"), container("b", 1))
    for name in ("own", "b"):
        node.begin(name)
    restarts_with(node, "")
    own = node.cpus("own")
    assert own == node.agent.occupancy.allocations["own"].exclusive
    assert len(own) == 4
    assert all(node.machine.core_of(cpu) <= own for cpu in own)
    assert own.isdisjoint(node.cpus("b"))


def test_a_cpuset_that_stays_does_so_though_another_container_of_the_pod_has_no_home(node: Restarting) -> None:
    node.becomes(without(two_numa_nodes(), CpuSet.parse("2-7,10-15")))
    stable = pod("a", group="web", cpus="shared-stable")
    node.create(stable, container("a", 4))
    node.begin("a")
    other = container("a-side", 40)
    other.name, other.pod_sandbox_id = "side", stable.id
    node.create(stable, other)
    node.begin("a-side")
    before = node.cpus("a")
    assert node.agent.occupancy.allocations["a"].stable
    assert node.agent.occupancy.allocations["a-side"].open
    node.becomes(two_numa_nodes())
    assert node.cpus("a") == before


def opened(node: Restarting, name: str) -> None:
    """A member whose memory was bound, and opened as it may use more than its NUMA node has."""
    made = container(name)
    node.create(pod(name, group="web", memory="bind"), made)
    made.linux.resources.memory.limit.value = 20 * GIB
    node.apply(node.agent.update_container(*node.running[name], made.linux.resources))
    assert node.mems(name) == node.machine.all_mems


@pytest.mark.parametrize("restarted", [False, True], ids=["before the enforcer's eyes", "while it was away"])
def test_memory_that_is_open_is_all_of_it_when_more_comes(node: Restarting, *, restarted: bool) -> None:
    """Its cgroup names what there was. Once it was told, a restart changes nothing."""
    node.becomes(without(two_numa_nodes(), mems=SECOND))
    node.becomes(two_numa_nodes())
    machine = without(two_numa_nodes(), mems=SECOND)
    node.becomes(machine)
    opened(node, "a")
    if restarted:
        node.recorder.write()
        node.kill()
        node.becomes(two_numa_nodes())
        node.start()
    else:
        node.becomes(two_numa_nodes())
    assert node.mems("a") == node.machine.all_mems == NumaSet.parse("0-1")
    node.recorder.write()
    node.kill()
    node.start(joined=False)
    assert node.synchronize() == []


def test_who_was_bound_to_memory_that_went_while_the_enforcer_was_away_is_placed_anew(node: Restarting) -> None:
    node.create(pod("a", group="web", memory="bind"), container("a"))
    assert node.mems("a") == NumaSet.parse("0")
    node.recorder.write()
    node.kill()
    node.becomes(without(two_numa_nodes(), mems=NumaSet.parse("0")))
    node.start()
    assert node.agent.occupancy.allocations["a"].mems == node.mems("a") == SECOND
    assert node.agent.records.latest()["a"].reasons[0].number == "NUMA node 1"
    node.becomes(two_numa_nodes())
    assert node.mems("a") == SECOND


def test_so_is_one_whose_creation_nobody_knew_of(node: Restarting) -> None:
    made = container("a")
    made.state = nri.CONTAINER_CREATED
    node.create(pod("a", group="web", memory="bind"), made, under_way=True)
    node.kill()
    node.becomes(without(two_numa_nodes(), mems=NumaSet.parse("0")))
    node.start()
    assert not node.agent.occupancy.allocations
    node.begin("a")
    assert node.agent.occupancy.allocations["a"].mems == node.mems("a") == SECOND


def test_so_is_who_was_let_out_of_a_numa_node_that_is_gone_and_resized_meanwhile(node: Restarting) -> None:
    made = container("a")
    node.agent.expect(pb.Expect(pod="uid-a", numa_nodes="1"))
    node.create(pod("a", group="web", memory="bind"), made)
    assert node.mems("a") == SECOND
    ledger = node.agent.ledger
    out = replace(ledger.occupancy.reservations["uid-a"], let_out=NumaSet.parse("0-1"))
    ledger.occupancy = ledger.occupancy.changed(reservations={"uid-a": out})
    node.tell(ledger.settle())
    made.linux.resources.cpu.shares.value = 2048
    restarts_with(node, "", gone=SECOND)
    assert node.mems("a") == node.agent.occupancy.allocations["a"].mems == NumaSet.parse("0")


def test_who_is_bound_to_all_memory_that_is_left_is_still_bound_after_a_restart(node: Restarting) -> None:
    """More may come."""
    node.becomes(without(two_numa_nodes(), mems=SECOND))
    node.create(pod("a", group="web", memory="bind"), container("a"))
    before = node.agent.occupancy.allocations["a"]
    assert before.mems == node.machine.all_mems
    node.recorder.write()
    node.kill()
    node.start()
    assert node.agent.occupancy.allocations["a"] == before
