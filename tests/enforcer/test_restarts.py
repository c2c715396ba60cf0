"""What was given outlives the process that gave it: no CPU is exclusive twice, nothing of ours is taken for another
owner's, nothing of another owner's for ours.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from placement.model.cpuset import CpuSet, NumaSet
from placement.state.pools import shared
from tests.enforcer.hook.world import two_numa_nodes
from tests.enforcer.restarts import Restarting, container, ours, path_of, pod


@pytest.fixture
def node(tmp_path: Path) -> Restarting:
    return Restarting(two_numa_nodes(), tmp_path)


def test_members_pinned_at_synchronize_are_ours_after_another_restart(node: Restarting) -> None:
    """The normal path: installed beside running pods, then upgraded. They carry no mark."""
    node.kill()
    node.create(pod("a", group="web"), container("a"))
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.start()
    before = dict(node.cgroups)
    assert len(node.cpus("own")) == 2
    node.kill()
    node.start()
    assert node.cgroups == before
    assert ours(node, "a")
    assert ours(node, "own")
    node.create(pod("new", group="web", cpus="exclusive"), container("new", 2))
    assert node.cpus("new").isdisjoint(node.cpus("own") | node.cpus("a"))
    node.release()
    assert {node.cpus(name) for name in ("a", "own", "new")} == {node.machine.cpus}


def test_members_pinned_at_synchronize_are_ours_though_the_run_folder_took_nothing(node: Restarting) -> None:
    """They carry no mark either; what they were given is kept in memory."""
    node.kill()
    node.create(pod("a", group="web"), container("a"))
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.fill()
    for _ in range(3):
        node.start()
        node.kill()
    node.start()
    assert ours(node, "a")
    assert ours(node, "own")
    node.create(pod("new", group="web", cpus="exclusive"), container("new", 2))
    assert node.cpus("new").isdisjoint(node.cpus("own") | node.cpus("a"))


def test_exclusive_cpus_given_at_synchronize_are_taken_from_the_pool_of_those_who_run(node: Restarting) -> None:
    node.create(pod("a", group="web"), container("a"))
    node.recorder.write()
    node.kill()
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.start()
    assert node.cpus("own").isdisjoint(node.cpus("a"))


def test_a_pool_that_shrank_after_the_last_record_is_still_ours(node: Restarting) -> None:
    node.create(pod("a", group="web"), container("a"))
    node.recorder.write()
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.kill()  # before that was written down
    node.start()
    assert ours(node, "a")
    assert ours(node, "own")
    assert node.cpus("own").isdisjoint(node.cpus("a"))


def test_a_pool_without_the_cpus_of_a_container_that_came_and_went_around_a_kill_is_still_ours(
    node: Restarting,
) -> None:
    """Which CPUs those were is written down nowhere."""
    node.create(pod("a", group="web"), container("a"))
    wide = node.cpus("a")
    node.recorder.write()
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.kill()  # before that was written down
    node.stop("own")
    assert node.cpus("a") <= wide != node.cpus("a")
    node.start()
    assert ours(node, "a")
    assert node.cpus("a") == wide


def test_a_pool_whose_update_was_never_carried_out_is_set_once_more(node: Restarting) -> None:
    node.create(pod("a", group="web"), container("a"))
    wide = node.cgroups[path_of("a")]
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.recorder.write()
    node.cgroups[path_of("a")] = wide
    node.kill()
    node.start()
    assert node.cpus("own").isdisjoint(node.cpus("a"))
    assert ours(node, "a")


@pytest.mark.parametrize("restarted", [False, True], ids=["the same process", "a new process"])
def test_a_pool_that_never_grew_because_our_answer_was_lost_is_still_ours(node: Restarting, *, restarted: bool) -> None:
    """A runtime that waited too long hangs up, and makes no update of the answer that comes after all."""
    node.create(pod("a", group="web"), container("a"))
    for name in ("own", "next"):
        node.create(pod(name, group="web", cpus="exclusive"), container(name, 2))
    node.stop("own", lost=True)
    node.recorder.write()
    agent, node.agent = node.agent, None
    node.stop("next")
    if restarted:
        node.start(joined=False)
    else:
        node.agent = agent
    pods, containers = zip(*node.running.values(), strict=True)
    assert len(node.agent.synchronize(pods, containers)) == 1
    assert ours(node, "a"), "that answer is lost, too"
    node.synchronize()
    assert ours(node, "a")
    assert node.cpus("a") == shared(node.machine, node.agent.occupancy, NumaSet.parse("0"))


def test_what_we_stood_aside_for_stays_another_owners_though_it_carries_our_mark(node: Restarting) -> None:
    node.create(pod("a", group="web"), container("a"))
    taken = node.running["a"]
    claim = container("a", claim="5").linux.resources
    assert node.agent.update_container(*taken, claim) == []
    node.cgroups[path_of("a")] = CpuSet.parse("5"), NumaSet.parse("0")
    node.recorder.write()
    node.kill()
    node.start()
    assert node.agent.occupancy.allocations["a"].externally_managed
    assert str(node.cpus("a")) == "5"


def test_a_cpuset_that_somebody_else_wrote_while_we_were_away_is_theirs(node: Restarting) -> None:
    node.create(pod("a", group="web"), container("a"))
    node.recorder.write()
    node.kill()
    node.cgroups[path_of("a")] = CpuSet.parse("2-3"), NumaSet.parse("0")
    node.start()
    assert node.agent.occupancy.allocations["a"].externally_managed


def test_a_mark_that_the_pods_author_wrote_is_not_believed(node: Restarting) -> None:
    node.kill()
    forged = pod("a", group="web", cpus="exclusive")
    forged.annotations["pinned.numakin.io"] = "cpus=0-7 mems=0 exclusive=0-7 homes=0"
    made = container("a", 8)
    made.annotations.update(forged.annotations)
    node.create(forged, made)
    node.cgroups[path_of("a")] = CpuSet.parse("0-6,12"), NumaSet.parse("0")
    node.start()
    assert node.agent.occupancy.allocations["a"].externally_managed


def test_a_release_outlives_the_runtimes_restart_and_ours_until_it_is_ended(node: Restarting) -> None:
    node.create(pod("a", group="web"), container("a"))
    node.release()
    node.synchronize()
    assert node.cpus("a") == node.machine.cpus
    node.kill()
    node.create(pod("b", group="web"), container("b"))
    node.start()
    assert {node.cpus("a"), node.cpus("b")} == {node.machine.cpus}
    node.agent.resume()
    node.synchronize()
    assert node.cpus("a") == node.cpus("b") != node.machine.cpus


def test_a_release_that_was_not_carried_out_is_at_the_next_synchronize(node: Restarting) -> None:
    node.kill()
    node.create(pod("own", group="web", cpus="exclusive"), container("own", 2))
    node.start()
    node.agent.release()
    node.recorder.write()
    node.kill()
    node.start()
    assert node.cpus("own") == node.machine.cpus
