"""A written sysfs changes as the kernel changes it, and that is noticed."""

from pathlib import Path

import pytest

from enforcer.machine.watch import MEMORY_EVERY, SETTLING, MachineWatch
from lab.standins.machines import MACHINES, switch_cpus, write_sysfs
from numakin.placement.model.cpuset import CpuSet

MEMINFO = "devices/system/node/node1/meminfo"


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    write_sysfs(MACHINES["xeon-8380"], tmp_path)
    return tmp_path


def polls(watch: MachineWatch, count: int) -> list[bool]:
    return [watch.changed() for _ in range(count)]


def test_a_machine_that_stays_as_it_is_never_changes(sysfs: Path) -> None:
    assert not any(polls(MachineWatch(sysfs), 2 * MEMORY_EVERY))


def test_cpus_that_go_and_come_are_noticed_at_once_and_read_again_while_files_may_still_change(sysfs: Path) -> None:
    watch = MachineWatch(sysfs)
    for online in ("0-79", "0-159"):
        switch_cpus(sysfs, CpuSet.parse(online))
        assert polls(watch, SETTLING + 2) == [True] * (SETTLING + 1) + [False]


def test_memory_of_a_node_that_shrinks_notably_is_noticed_and_a_balloon_is_not(sysfs: Path) -> None:
    watch = MachineWatch(sysfs)
    before = (sysfs / MEMINFO).read_text()
    total = int(before.split()[3])
    (sysfs / MEMINFO).write_text(before.replace(f"{total} kB", f"{total - total // 100} kB"))
    assert not any(polls(watch, MEMORY_EVERY))
    (sysfs / MEMINFO).write_text(before.replace(f"{total} kB", f"{total // 2} kB"))
    assert any(polls(watch, MEMORY_EVERY))


def test_a_numa_node_of_memory_that_comes_is_noticed(sysfs: Path) -> None:
    watch = MachineWatch(sysfs)
    (sysfs / "devices/system/node/has_memory").write_text("0-2\n")
    assert watch.changed()


def test_what_can_not_be_read_for_a_moment_is_no_change(sysfs: Path) -> None:
    watch = MachineWatch(sysfs)
    (sysfs / MEMINFO).write_text("")
    assert not any(polls(watch, MEMORY_EVERY))


def test_a_change_is_noticed_once_the_memory_of_a_numa_node_that_is_going_can_be_read(sysfs: Path) -> None:
    watch = MachineWatch(sysfs)
    before = (sysfs / MEMINFO).read_text()
    switch_cpus(sysfs, CpuSet.parse("0-79"))
    (sysfs / MEMINFO).write_text("")
    assert not watch.changed()
    (sysfs / MEMINFO).write_text(before)
    assert watch.changed()


def test_a_change_that_could_not_be_taken_is_reported_again(sysfs: Path) -> None:
    watch = MachineWatch(sysfs)
    switch_cpus(sysfs, CpuSet.parse("0-79"))
    assert watch.changed()
    polls(watch, SETTLING)
    watch.forget()
    assert watch.changed()
