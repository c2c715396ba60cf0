"""The bypass, the runtime or the enforcer ends and comes back; and the bypass lives while the kernel keeps it waiting."""

from __future__ import annotations

import os
import select
from pathlib import Path

import pytest

from enforcer.cli.status import ask
from lab.standins.patience import PATIENCE_S, until
from numakin.placement.model.cpuset import CpuSet
from tests.enforcer.bypass.following import GROUP, HALVES, HURRIED, Bypassed


def test_a_runtime_that_restarts_is_joined_and_its_containers_are_known(node: Bypassed) -> None:
    before = node.member("a")
    home = node.pinned(before)
    node.runtime.stop()
    until(lambda: not node.status()["registered"], "the runtime is missed")
    node.runtime.start()
    assert node.pinned(node.member("b")) == home
    assert node.cpus(before) == home
    assert node.status()["counts"].get("yielded", 0) == 0


def test_what_ended_while_the_runtime_was_away_holds_no_room(node: Bypassed) -> None:
    own = {"cpus.numakin.io": "exclusive"}
    first = node.member("a", own, shares=79 * 1024, memory=1 << 30)
    taken = node.pinned(first)
    node.runtime.stop()
    until(lambda: not node.status()["registered"], "the runtime is missed")
    node.runtime.end_pod("sandbox-1")
    node.runtime.start()
    assert node.pinned(node.member("b", own, shares=79 * 1024, memory=1 << 30)) == taken


def noted(node: Bypassed) -> tuple[str, str]:
    """A member whose exclusive CPUs are in the enforcer's note, and these CPUs."""
    own = node.member("a", {"cpus.numakin.io": "exclusive"}, shares=2048)
    cpus = node.pinned(own)
    until((node.run_dir / "allocations.json").exists, "the note")
    return own, cpus


def test_started_again_it_knows_its_own_work_by_what_it_noted(node: Bypassed) -> None:
    own, cpus = noted(node)
    node.stop()
    missed = node.member("b")
    node.start()
    assert node.pinned(missed)
    assert node.cpus(own) == cpus
    assert node.status()["counts"].get("yielded", 0) == 0


def test_killed_it_is_started_again_and_goes_on(node: Bypassed) -> None:
    own, cpus = noted(node)
    node.kill_bypass()
    later = node.member("b")
    assert node.pinned(later)
    assert node.cpus(own) == cpus
    assert node.said("a process ended and is started again")[-1]["process"] == "bypass"
    assert node.status()["counts"].get("yielded", 0) == 0


@pytest.mark.parametrize("what", ["sandbox", "container"])
def test_what_the_runtime_can_not_tell_just_now_is_not_taken_for_ended(hurried: Bypassed, what: str) -> None:
    """It would be placed anew as a newcomer, over another owner's cpuset."""
    pod = hurried.runtime.run_pod("m", GROUP)
    taken = hurried.runtime.run(pod)
    hurried.pinned(taken)
    until(lambda: hurried.said("cpuset written"), "it is known as written")
    hurried.cgroups.set_cpus(hurried.runtime.path(taken), "3")
    until(lambda: hurried.status()["counts"].get("yielded"), "the other owner is seen")
    hurried.stop()
    hurried.runtime.failing[pod if what == "sandbox" else taken] = 2
    hurried.start()
    later = hurried.member("later")
    assert hurried.pinned(later)
    assert hurried.cpus(taken) == "3"
    assert not hurried.runtime.failing.total(), "it was asked again"


def test_a_container_that_the_runtime_can_never_tell_of_keeps_no_other_waiting_for_long(node: Bypassed) -> None:
    broken = node.member("broken")
    node.pinned(broken)
    node.stop()
    node.runtime.failing[broken] = 1 << 30
    other = node.member("other")
    node.start()
    assert node.pinned(other) == HALVES[0]


def killed_while_the_runtime_is_away(node: Bypassed) -> None:
    """Started again, it knows by its note alone what it has pinned."""
    node.runtime.stop()
    until(lambda: not node.status()["registered"], "the runtime is missed")
    node.kill_bypass()
    until(lambda: node.said("a process ended and is started again"), "its end is seen")
    until(node.status, "it answers")


def test_a_release_while_it_is_not_known_what_runs_is_not_called_carried_out(node: Bypassed) -> None:
    own, cpus = noted(node)
    killed_while_the_runtime_is_away(node)
    answer = node.release()
    assert node.cpus(own) == cpus
    assert answer["released"] == 0
    assert "the runtime is away" in answer["error"]
    assert [left["id"] for left in answer["failed"]] == [own]
    node.runtime.start()
    until(lambda: node.cpus(own) == "0-159", "it is released as soon as that is there")


def test_what_was_noted_is_known_though_a_start_over_is_asked_for_before_the_runtime_is_back(node: Bypassed) -> None:
    own, cpus = noted(node)
    killed_while_the_runtime_is_away(node)
    assert ask(node.run_dir, "resume") == {"resumed": True}
    node.runtime.start()
    until(lambda: node.status()["registered"], "the runtime is followed")
    (held,) = node.status()["containers"]
    assert (held["id"], held["cpus"], held["state"]) == (own, cpus, "pinned")


def test_while_the_kernel_moves_pages_it_gives_signs_of_life(folder: Path) -> None:
    """Or its supervisor would kill it for a container of many pages."""
    node = Bypassed(folder, program=HURRIED)
    node.runtime.start()
    received, written = os.pipe()
    node.start(written)
    try:
        created = node.runtime.create(node.runtime.run_pod("m", GROUP))
        until(lambda: node.said("container pinned"), "the decision")
        node.cgroups.make(node.runtime.path(created))
        moving = node.cgroups.delay(node.runtime.path(created))
        node.runtime.start_container(created)
        for _ in range(3):  # the first may be from before
            assert select.select([received], [], [], PATIENCE_S)[0]
            os.read(received, 1 << 10)
        assert not node.said("cpuset written")
        assert {*moving.read_text().split()} == {HALVES[0]}, "it may have been written anew meanwhile"
        until(lambda: node.said("cpuset written"), "the write's end")
    finally:
        node.close()
        os.close(received)
        os.close(written)


def test_a_note_that_cannot_be_read_is_told_and_does_no_harm(node: Bypassed) -> None:
    pool = node.member("a")
    own = node.member("b", {"cpus.numakin.io": "exclusive"}, shares=2048)
    taken = CpuSet.parse(node.pinned(own))
    until(lambda: taken.isdisjoint(CpuSet.parse(node.cpus(pool))), "the pool without exclusive CPUs")
    before = node.cpus(pool), node.cpus(own)
    node.stop()
    (node.run_dir / "allocations.json").write_text("{]")
    node.start()
    assert node.said("what containers were given before is not known: the file is made anew")
    until(lambda: node.status()["counts"].get("yielded"), "exclusive CPUs without a note are somebody's")
    assert (node.cpus(pool), node.cpus(own)) == before
