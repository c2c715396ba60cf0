"""Bypass mode as a real process on a real unix socket, with a runtime at the other end that speaks CRI alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from enforcer.bypass.changes import RuntimeSnapshot
from enforcer.bypass.process import Inbox
from lab.standins.machines import MACHINES, switch_cpus, write_sysfs
from lab.standins.patience import until
from numakin.placement.model.cpuset import CpuSet
from numakin.process.loop import Loop
from tests.enforcer.bypass.following import GROUP, HALVES, Bypassed


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


def test_a_cpuset_that_somebody_else_writes_is_theirs_from_then_on(hurried: Bypassed) -> None:
    """But for memory that we have bound, which nobody else would open."""
    taken, ours = hurried.member("a"), hurried.member("b")
    hurried.pinned(taken)
    home = hurried.pinned(ours)
    until(lambda: len(hurried.said("cpuset written")) == 2, "both written")
    hurried.cgroups.set_cpus(hurried.runtime.path(taken), "3")
    until(lambda: hurried.status()["counts"].get("yielded"), "the other owner to be seen")
    until(lambda: hurried.cgroups.cpuset(hurried.runtime.path(taken)) == ("3", "0-1"), "its memory is open")
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
    assert [container["id"] for container in node.release()["failed"]] == [first]


def test_the_doctor_asks_the_runtime_and_says_how_late_a_pin_will_be(node: Bypassed) -> None:
    _, result = node.doctor()
    assert result["CRI", "good"].startswith("containerd 2.1.9 answers at unix:///")
    assert "pinned after their start" in result["CRI", "note"]
    assert not any(topic == "NRI" for topic, _ in result)
    node.runtime.stop()
    status, result = node.doctor()
    assert status == 1
    assert result["CRI", "bad"].startswith("no CRI at unix:///")


class Taking:
    """Of bypass mode, what takes the polls."""

    def __init__(self) -> None:
        self.taken: list[RuntimeSnapshot | None] = []
        self.polled = self.taken.append


def test_polls_that_come_while_the_kernel_moves_memory_are_all_taken_afterwards() -> None:
    loop, bypass = Loop(), Taking()
    inbox = Inbox(loop, bypass)  # type: ignore[arg-type]
    polls = [RuntimeSnapshot() for _ in range(2000)]
    for poll in polls:
        inbox.put(poll)
    loop.run_once(0)
    assert bypass.taken == polls
    inbox.close()
    loop.close()
