"""How busy each NUMA node is, from two readings of /proc/stat; and the kernel's pressure stall information."""

from pathlib import Path

import pytest

from enforcer.machine import load
from enforcer.machine.errors import BadFile, NotThere
from enforcer.machine.formats import CpuTime, stall_share
from enforcer.machine.load import cpu_times, memory_stall, shares, used_cpus
from enforcer.machine.sysfs import read_machine
from lab.standins.machines import MACHINES
from tests.machines import machine

FOUR = MACHINES["qemu-4n"].machine
"""NUMA node 0 has CPUs 0-1, NUMA node 1 has CPUs 2-3."""

TWO = machine("two NUMA nodes, one without memory", ["0-3", "4-7", "8"], [32, 32, 0])


def _times(**busy_of_100: int) -> dict[int, CpuTime]:
    return {int(cpu.removeprefix("cpu")): CpuTime(busy, 100) for cpu, busy in busy_of_100.items()}


ZERO = {cpu: CpuTime(0, 0) for cpu in FOUR.cpus}


@pytest.mark.parametrize(
    ("after", "numa_node", "used"),
    [
        (_times(cpu0=50, cpu1=100), 0, 1.5),
        (_times(cpu2=25), 1, 0.25),
        (_times(cpu2=25), 0, 0.0),
        ({0: CpuTime(110, 100)}, 0, 1.0),
        ({0: CpuTime(0, 0)}, 0, 0.0),
        ({99: CpuTime(1, 1)}, 0, 0.0),
        (_times(cpu0=50), 4, 0.0),
    ],
)
def test_used_cpus_are_summed_by_numa_node(after, numa_node, used):
    assert used_cpus(FOUR, shares(ZERO, after))[numa_node] == pytest.approx(used)


def test_a_cpu_whose_clock_ran_backwards_counts_as_idle():
    assert used_cpus(FOUR, shares({0: CpuTime(500, 1000)}, {0: CpuTime(1, 2)}))[0] == 0.0


def test_stolen_time_is_busy_and_guest_time_is_not_counted_twice(tmp_path: Path):
    (tmp_path / "stat").write_text("cpu  9 9 9 9\ncpu3 10 1 2 30 4 5 6 7 8 9\nintr 1 2\n")
    assert cpu_times(tmp_path) == {3: CpuTime(busy=10 + 1 + 2 + 5 + 6 + 7, total=65)}


@pytest.mark.parametrize("content", ["", "cpu 1 2 3 4", "garbage"])
def test_a_stat_without_cpus_is_refused_by_name(tmp_path: Path, content: str):
    (tmp_path / "stat").write_text(content)
    with pytest.raises(BadFile, match=f"{tmp_path / 'stat'}: .*holds no CPU's time"):
        cpu_times(tmp_path)


def test_this_machine_uses_no_more_than_its_cpus():
    machine = read_machine()
    used = used_cpus(machine, shares(ZERO, cpu_times()))
    assert 0 < sum(used.values()) <= len(machine.cpus)


def test_pressure_is_read_with_and_without_its_full_line():
    some = "some avg10=12.88 avg60=4.99 avg300=1.63 total=11952192"
    assert stall_share(some) == 0.1288
    assert stall_share(f"{some}\n{some.replace('some', 'full')}\n") == 0.1288


@pytest.mark.parametrize(
    ("available", "stalled"),
    [
        ({0: 16, 1: 16}, {0: 0.0, 1: 0.0}),
        ({0: 16, 1: 1}, {0: 0.0, 1: 0.25}),
        ({0: 0, 1: 0}, {0: 0.25, 1: 0.25}),
        ({0: 16}, {0: 0.0, 1: 0.25}),
    ],
    ids=["somebody's own limit", "where memory is scarce", "everywhere", "where it is not known"],
)
def test_the_machines_pressure_is_put_down_to_where_memory_is_scarce(available, stalled):
    assert load.stalled(TWO, 0.25, {entry: gib << 30 for entry, gib in available.items()}) == stalled
    assert load.stalled(TWO, None, {0: 0, 1: 0}) == {0: 0.0, 1: 0.0}, "a kernel without PSI vetoes nothing"


@pytest.mark.parametrize("content", ["", "some", "full avg10=0.00 avg60=0.00 avg300=0.00 total=0", "some avg10=x"])
def test_bad_pressure_is_refused_by_name(tmp_path: Path, content: str):
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure/memory").write_text(content)
    with pytest.raises(BadFile, match=r"pressure/memory.*: not a pressure stall record"):
        memory_stall(tmp_path)


def test_a_kernel_without_pressure_has_none(tmp_path: Path):
    assert memory_stall(tmp_path) is None


def test_a_missing_stat_is_refused_by_name(tmp_path: Path):
    with pytest.raises(NotThere, match=f"{tmp_path / 'stat'}: there is no such file"):
        cpu_times(tmp_path)
