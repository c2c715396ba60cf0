"""Bypass mode as a real process on a real unix socket, with a runtime at the other end that speaks CRI alone."""

from __future__ import annotations

import os
import select
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement.model.cpuset import CpuSet
from standins.machines import MACHINES, switch_cpus, write_sysfs
from standins.patience import PATIENCE_S, until
from tests.enforcer.bypass.following import GROUP, HALVES, HURRIED, Bypassed


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: a unix socket's has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="numakin.") as made:
        yield Path(made)


@pytest.fixture
def node(folder: Path) -> Iterator[Bypassed]:
    made = Bypassed(folder)
    made.runtime.start()
    made.start()
    yield made
    made.close()


@pytest.fixture
def hurried(folder: Path) -> Iterator[Bypassed]:
    """For what comes every ten seconds."""
    made = Bypassed(folder, program=HURRIED)
    made.runtime.start()
    made.start()
    yield made
    made.close()


def test_what_the_kernel_narrowed_when_cpus_went_is_widened_when_they_are_back_and_taken_for_nobodys_work(
    folder: Path,
) -> None:
    write_sysfs(MACHINES["xeon-8380"], folder / "sys")
    node = Bypassed(folder, folder / "sys")
    node.runtime.start()
    node.start()
    try:
        member = node.member()
        path = node.runtime.path(member)
        assert node.pinned(member) == HALVES[0]
        switch_cpus(node.sysfs, CpuSet.parse("0-79"))
        node.cgroups.set_cpus(path, "0-39")  # as cgroup v1 does
        until(lambda: len(node.said("the machine has changed")) == 1, "noticed")
        switch_cpus(node.sysfs, CpuSet.parse("0-159"))
        until(lambda: node.cgroups.cpuset(path)[0] == HALVES[0], "widened")
        assert not node.status()["counts"].get("yielded")
    finally:
        node.close()


def test_members_are_pinned_together_and_others_are_not_touched(node: Bypassed) -> None:
    members = [node.member(f"m{number}") for number in range(3)]
    plain = node.runtime.run(node.runtime.run_pod("plain"))
    assert {node.pinned(member) for member in members} == {HALVES[0]}
    assert node.cgroups.cpuset(node.runtime.path(members[0])) == (HALVES[0], "0")
    assert node.cgroups.cpuset(node.runtime.path(plain)) == ("", "")


def test_the_memory_of_a_pod_whose_containers_are_not_all_limited_stays_open(node: Bypassed) -> None:
    pod = node.runtime.run_pod("m", GROUP, memory=None)
    limited, other = node.runtime.run(pod), node.runtime.run(pod, memory=0)
    assert node.pinned(limited) == node.pinned(other) == HALVES[0]
    assert [node.cgroups.cpuset(node.runtime.path(entry)) for entry in (limited, other)] == [(HALVES[0], "")] * 2


def test_a_container_is_decided_upon_when_it_is_created_and_pinned_when_its_cgroup_is_there(node: Bypassed) -> None:
    created = node.runtime.create(node.runtime.run_pod("m", GROUP))
    until(lambda: node.status()["counts"].get("pinned"), "the decision")
    assert not node.said("cpuset written")
    node.runtime.start_container(created)
    assert node.pinned(created) == HALVES[0]


def test_the_reasons_say_that_the_pin_came_late(node: Bypassed) -> None:
    node.pinned(node.member())
    (shown,) = node.status()["containers"]
    late = [reason for reason in shown["reasons"] if reason.startswith("late: ")]
    assert late == ["late: written once it runs: memory that it touched before is moved"]


def test_exclusive_cpus_are_free_again_when_the_container_ends(node: Bypassed) -> None:
    own = {"cpus.numakin.io": "exclusive"}
    first = node.member("a", own, shares=40 * 1024, memory=1 << 30)
    taken = node.pinned(first)
    sharer = node.member("b")
    assert node.pinned(sharer)
    node.runtime.end_pod("sandbox-1")
    again = node.member("c", own, shares=40 * 1024, memory=1 << 30)
    assert node.pinned(again) == taken


@pytest.mark.parametrize(
    "runtime",
    [
        {"events": False},
        {"events": False, "name": "cri-o", "version": "1.33.0"},
        {"version": "1.7.24"},
        {"version": "1.6.0", "events": False},
        {"name": "docker", "version": "27.0.1", "events": False},
    ],
    ids=lambda runtime: "-".join(map(str, runtime.values())),
)
def test_without_events_the_runtime_is_looked_at(folder: Path, runtime: dict[str, object]) -> None:
    node = Bypassed(folder, **runtime)
    node.runtime.start()
    node.start()
    try:
        assert node.pinned(node.member()) == HALVES[0]
        if runtime.get("version") == "1.7.24":
            assert node.runtime.listeners == 0, "its one queue of events is the kubelet's"
    finally:
        node.close()


def test_lost_events_cost_time_only(hurried: Bypassed) -> None:
    hurried.pinned(hurried.member("a"))
    hurried.runtime.dropped = True
    assert hurried.pinned(hurried.member("b")) == HALVES[0]


def test_while_events_are_heard_the_runtime_is_asked_for_nothing_twice(node: Bypassed) -> None:
    members = [node.member(f"m{number}") for number in range(3)]
    for member in members:
        node.pinned(member)
    asked = [node.runtime.calls.count(member) for member in members]
    assert all(times <= 2 for times in asked), "once created, once running"


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


def test_started_again_it_knows_its_own_work_by_what_it_noted(node: Bypassed) -> None:
    own = node.member("a", {"cpus.numakin.io": "exclusive"}, shares=2048)
    cpus = node.pinned(own)
    until((node.run_dir / "allocations.json").exists, "the note")
    node.stop()
    missed = node.member("b")
    node.start()
    assert node.pinned(missed)
    assert node.cpus(own) == cpus
    assert node.status()["counts"].get("yielded", 0) == 0


def test_killed_it_is_started_again_and_goes_on(node: Bypassed) -> None:
    own = node.member("a", {"cpus.numakin.io": "exclusive"}, shares=2048)
    cpus = node.pinned(own)
    until((node.run_dir / "allocations.json").exists, "the note")
    node.kill_bypass()
    later = node.member("b")
    assert node.pinned(later)
    assert node.cpus(own) == cpus
    assert node.said("a process ended and is started again")[-1]["process"] == "bypass"
    assert node.status()["counts"].get("yielded", 0) == 0


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
        assert moving.read_text().strip() == HALVES[0]
        until(lambda: node.said("cpuset written"), "the write's end")
    finally:
        node.close()


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


def test_a_cpuset_that_somebody_else_writes_is_theirs_from_then_on(hurried: Bypassed) -> None:
    taken, ours = hurried.member("a"), hurried.member("b")
    hurried.pinned(taken)
    home = hurried.pinned(ours)
    until(lambda: len(hurried.said("cpuset written")) == 2, "both written")
    hurried.cgroups.set_cpus(hurried.runtime.path(taken), "3")
    until(lambda: hurried.status()["counts"].get("yielded"), "the other owner to be seen")
    assert hurried.cpus(taken) == "3"
    assert hurried.cpus(ours) == home


def test_a_cpuset_that_the_kubelet_asked_for_is_never_touched(node: Bypassed) -> None:
    claimed = node.member(cpuset="5-6")
    until(lambda: node.status()["counts"].get("yielded"), "it yielded")
    assert node.cgroups.cpuset(node.runtime.path(claimed)) == ("", "")


def test_a_cpuset_that_the_kernel_refuses_is_told_counted_and_left_alone(node: Bypassed) -> None:
    created = node.runtime.create(node.runtime.run_pod("m", GROUP))
    node.cgroups.make(node.runtime.path(created))
    node.cgroups.refuse(node.runtime.path(created))
    node.runtime.start_container(created)
    until(lambda: node.status()["counts"].get("refused"), "the refusal")
    (output,) = node.said("cpuset refused; the container is left alone")
    assert output["pod"] == "default/m"
    assert output["why"].endswith(f"the kernel refuses '{HALVES[0]}': Permission denied")
    assert node.pinned(node.member("other")) == HALVES[0]


def test_a_cpuset_wider_than_the_parents_is_refused_before_the_kernel_would_quietly_widen_it(node: Bypassed) -> None:
    created = node.runtime.create(node.runtime.run_pod("m", GROUP))
    node.cgroups.narrow(node.runtime.path(created).rpartition("/")[0], "100-159")
    node.runtime.start_container(created)
    until(lambda: node.status()["counts"].get("refused"), "the refusal")
    assert node.cpus(created) == ""


def test_a_container_that_runs_without_a_cgroup_is_told_and_holds_no_cpus(hurried: Bypassed) -> None:
    inside = hurried.runtime.create(hurried.runtime.run_pod("vm", GROUP))
    hurried.runtime.start_container(inside, cgroup=False)
    until(lambda: hurried.status()["counts"].get("refused"), "it is given up")
    (output,) = hurried.said("cpuset refused; the container is left alone")
    assert output["why"].startswith("it runs, but its cgroup is not there: /kubepods/")


def test_a_container_that_ends_before_it_could_be_pinned_is_no_error(node: Bypassed) -> None:
    short = node.member("short")
    node.runtime.end(short)
    assert node.pinned(node.member("next")) == HALVES[0]
    assert node.status()["counts"].get("refused", 0) == 0


def test_release_opens_every_pinned_cgroup_and_pins_no_more(node: Bypassed) -> None:
    members = [node.member("a"), node.member("b")]
    for member in members:
        node.pinned(member)
    assert node.release() == {"released": 2, "failed": [], "error": ""}
    assert [node.cgroups.cpuset(node.runtime.path(member)) for member in members] == [("0-159", "0-1")] * 2
    later, last = node.member("later"), node.member("last")
    until(lambda: last in {row["id"] for row in node.status()["containers"]}, "the one before it was seen running")
    assert node.cpus(later) == ""


def test_release_works_while_the_runtime_is_away(node: Bypassed) -> None:
    first = node.member()
    node.pinned(first)
    node.runtime.stop()
    until(lambda: not node.status()["registered"], "the runtime is missed")
    assert node.release()["released"] == 1
    assert node.cpus(first) == "0-159"


def test_release_names_what_could_not_be_given_back(node: Bypassed) -> None:
    first = node.member()
    node.pinned(first)
    node.cgroups.refuse(node.runtime.path(first))
    assert node.release()["failed"] == [first]


def test_the_doctor_asks_the_runtime_and_says_how_late_a_pin_will_be(node: Bypassed) -> None:
    _, result = node.doctor()
    assert result["CRI", "good"].startswith("containerd 2.1.9 answers at unix:///")
    assert "pinned after their start" in result["CRI", "note"]
    assert not any(topic == "NRI" for topic, _ in result)
    node.runtime.stop()
    status, result = node.doctor()
    assert status == 1
    assert result["CRI", "bad"].startswith("no CRI at unix:///")
