"""What no kernel writes is refused by the file's name, or costs its own fact and is named."""

from dataclasses import replace
from pathlib import Path

import pytest

from enforcer.machine.errors import BadFile, MachineError, NotThere
from enforcer.machine.sysfs import read, read_machine
from lab.standins.machines import MACHINES, write_sysfs
from tests.enforcer.machine.sysfs_files import CPU, NODE


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (f"{CPU}/online", "0-x", "'0-x': '0-x' is not a list of ids: '0-x' is neither an id nor a range"),
        (f"{CPU}/online", "", None),
        (f"{NODE}/node1/cpulist", "2-1", "'2-1': '2-1' is not a list of ids: 2-1 runs backwards"),
        (f"{NODE}/node1/meminfo", "Node 1 MemFree: 1 kB", "'Node 1 MemFree: 1 kB': holds no MemTotal"),
    ],
)
def test_bad_content_of_what_must_be_known_is_refused_word_for_word(
    sysfs: Path, file: str, content: str, message: str | None
):
    (sysfs / file).parent.mkdir(parents=True, exist_ok=True)
    (sysfs / file).write_text(content)
    with pytest.raises(MachineError) as refusal:
        read_machine(sysfs)
    if message is not None:
        assert isinstance(refusal.value, BadFile)
        assert str(refusal.value) == f"{sysfs / file}: {message}"


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (f"{CPU}/online", "", f"{CPU}: no CPU is online"),
        (f"{NODE}/online", "", f"{NODE}: no NUMA node is online"),
    ],
)
def test_a_contradictory_machine_is_refused_word_for_word(sysfs: Path, file: str, content: str, message: str):
    (sysfs / file).write_text(content)
    with pytest.raises(NotThere) as refusal:
        read_machine(sysfs)
    assert str(refusal.value) == f"{sysfs}/{message}"


BACKWARDS = "is not a list of ids: 2-1 runs backwards"


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (f"{CPU}/cpu0/topology/core_cpus_list", "4-5", "'4-5': leaves out CPU 0 itself"),
        (f"{CPU}/cpu0/topology/package_cpus_list", "2-1", f"'2-1': '2-1' {BACKWARDS}"),
        (f"{CPU}/cpu0/cache/index2/shared_cpu_list", "9", "'9': leaves out CPU 0 itself"),
        (f"{CPU}/cpu0/cache/index2/shared_cpu_list", "", "'': leaves out CPU 0 itself"),
        (f"{CPU}/cpu0/cache/index2/level", "three", "'three': not a number"),
        (f"{CPU}/isolated", "2-1", f"'2-1': '2-1' {BACKWARDS}"),
        (f"{CPU}/nohz_full", "2-1", f"'2-1': '2-1' {BACKWARDS}"),
        (f"{NODE}/node1/distance", "10 20", "'10 20': 2 distances where 5 NUMA nodes are online"),
        (f"{NODE}/node1/distance", "18 10 28 22 0", "'18 10 28 22 0': a distance is within 1..255"),
        (f"{NODE}/node1/distance", "18 10 28 22 near", "'18 10 28 22 near': not a row of distances"),
        (f"{NODE}/node1/distance", "", "'': not a row of distances"),
        (f"{NODE}/node1/hugepages/hugepages-2048kB/nr_hugepages", "-1", "'-1': negative"),
        (f"{NODE}/has_normal_memory", "2-1", f"'2-1': '2-1' {BACKWARDS}"),
        (f"{NODE}/has_normal_memory", "0-7", " names NUMA nodes 0-7 where 0-4 are online"),
        (f"{NODE}/has_normal_memory", "", " names NUMA nodes none where 0-4 are online"),
    ],
)
def test_bad_content_of_any_other_file_costs_its_own_fact_and_is_named(
    sysfs: Path, file: str, content: str, message: str
):
    (sysfs / file).parent.mkdir(parents=True, exist_ok=True)
    (sysfs / file).write_text(content)
    reading = read(sysfs, "qemu-4n")
    assert reading.doubts == (f"{sysfs / file}:{message if message[0] == ' ' else ' ' + message}",)
    good, result = MACHINES["qemu-4n"].machine, reading.machine
    assert (result.cpus, result.all_mems) == (good.cpus, good.all_mems)
    other = 2  # of the NUMA nodes none of whose facts were spoiled
    assert replace(result.node(other), distances={}) == replace(good.node(other), distances={})
    assert [result.core_of(cpu) for cpu in range(2, 8)] == [good.core_of(cpu) for cpu in range(2, 8)]


def test_a_sound_machine_leaves_no_doubt(sysfs: Path):
    assert read(sysfs).doubts == ()


def test_a_bad_row_of_distances_is_what_the_other_numa_nodes_say(sysfs: Path):
    (sysfs / NODE / "node1/distance").write_text("18 10 28 22 0")
    machine = read_machine(sysfs)
    assert machine.node(1).distances == {0: 16, 1: 10, 2: 28, 3: 24, 4: 40}


def test_a_machine_without_a_true_distance_has_those_that_the_kernel_assumes(sysfs: Path):
    """Old firmware: nothing but zeros."""
    for node in range(5):
        (sysfs / NODE / f"node{node}/distance").write_text("0 0 0 0 0")
    reading = read(sysfs)
    assert (reading.machine.distance(2, 2), reading.machine.distance(0, 4)) == (10, 20)
    assert len(reading.doubts) == 5


def test_a_cpu_that_two_numa_nodes_list_is_on_the_first(sysfs: Path):
    (sysfs / NODE / "node1/cpulist").write_text("1-3")
    reading = read(sysfs)
    assert [str(reading.machine.node(number).cpus) for number in (0, 1)] == ["0-1", "2-3"]
    listed = sysfs / NODE / "node1/cpulist"
    assert reading.doubts == (f"{listed}: CPUs 1 are on another NUMA node too: taken to be there alone",)


def test_a_cpu_on_no_numa_node_is_given_to_nobody_and_taken_from_nobody(sysfs: Path):
    (sysfs / NODE / "node1/cpulist").write_text("2")
    reading = read(sysfs)
    assert (str(reading.machine.cpus), str(reading.machine.all_cpus)) == ("0-2,4-7", "0-7")
    assert reading.doubts == (f"{sysfs / NODE}: CPUs 3 are online but on no NUMA node: no container is given them",)


def test_a_numa_node_without_a_folder_is_left_out(sysfs: Path):
    (sysfs / NODE / "online").write_text("0-4,7")
    reading = read(sysfs, "qemu-4n")
    assert reading.machine == MACHINES["qemu-4n"].machine
    assert reading.doubts == (f"{sysfs / NODE}: NUMA nodes 7 are online but have no folder",)


def test_many_bad_files_are_told_as_a_few_and_how_many_more(tmp_path: Path):
    write_sysfs(MACHINES["xeon-8380"], tmp_path)
    for cpu in range(160):
        (tmp_path / CPU / f"cpu{cpu}/cache/index2/shared_cpu_list").write_text("\n")
    reading = read(tmp_path)
    assert len(reading.doubts) == 9
    assert reading.doubts[-1] == "and 72 more of that kind"
    assert reading.machine.cores == MACHINES["xeon-8380"].machine.cores


def test_a_file_that_is_a_folder_is_refused_by_name(sysfs: Path):
    (sysfs / CPU / "online").unlink()
    (sysfs / CPU / "online").mkdir()
    with pytest.raises(NotThere, match="cpu/online: cannot be read: Is a directory"):
        read_machine(sysfs)
