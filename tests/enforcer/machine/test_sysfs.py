"""The machine is read from any kernel's sysfs; what no kernel writes is refused by the file's name."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enforcer.machine.errors import BadFile, MachineError, NotThere
from enforcer.machine.sysfs import read, read_machine
from placement.model.cpuset import CpuSet, NumaSet
from placement.model.topology import Machine, NumaNode
from standins.machines import MACHINES, Description, write_procfs, write_sysfs

CPU = "devices/system/cpu"
NODE = "devices/system/node"


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """The 4n machine's sysfs, to be spoiled."""
    write_sysfs(MACHINES["qemu-4n"], tmp_path / "sys")
    return tmp_path / "sys"


def test_this_machine_is_read():
    machine = read_machine(name="here")
    assert machine.name == "here"
    assert machine.cpus == CpuSet.parse(Path(f"/sys/{CPU}/online").read_text())
    assert machine.mems


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


def test_numa_node_0_may_be_offline(tmp_path: Path):
    """As RHEL 7 shows it: no folder, and the others still tell how far it is."""
    write_sysfs(MACHINES["xeon-8380"], tmp_path)
    cpus = MACHINES["xeon-8380"].machine.node(1).cpus
    shutil.rmtree(tmp_path / NODE / "node0")
    (tmp_path / NODE / "online").write_text("1\n")
    (tmp_path / CPU / "online").write_text(f"{cpus}\n")
    reading = read(tmp_path)
    assert [(node.id, node.cpus, node.distances) for node in reading.machine.numa_nodes] == [(1, cpus, {1: 10})]
    assert reading.machine.mems == NumaSet.of((1,))


def test_many_bad_files_are_told_as_a_few_and_how_many_more(tmp_path: Path):
    write_sysfs(MACHINES["xeon-8380"], tmp_path)
    for cpu in range(160):
        (tmp_path / CPU / f"cpu{cpu}/cache/index2/shared_cpu_list").write_text("\n")
    reading = read(tmp_path)
    assert len(reading.doubts) == 9
    assert reading.doubts[-1] == "and 72 more of that kind"
    assert reading.machine.cores == MACHINES["xeon-8380"].machine.cores


def test_lists_that_end_with_a_nul_are_read(sysfs: Path):
    """As kernels before 3.x write them."""
    for name in ("online", "has_normal_memory", "node1/cpulist"):
        file = sysfs / NODE / name
        file.write_bytes(file.read_bytes() + b"\0")
    assert read(sysfs, "qemu-4n").machine == MACHINES["qemu-4n"].machine


@pytest.mark.parametrize(
    ("isolated", "nohz_full", "left"),
    [
        ("", "", "0-7"),
        ("2-3", "", "0-1,4-7"),
        ("", "6-7", "0-5"),
        ("2", "3,90", "0-1,4-7"),
        ("", "              (null)", "0-7"),
    ],
)
def test_cpus_that_the_kernel_isolates_are_given_to_no_container(sysfs: Path, isolated: str, nohz_full: str, left: str):
    (sysfs / CPU / "isolated").write_text(f"{isolated}\n")
    (sysfs / CPU / "nohz_full").write_text(f"{nohz_full}\n")
    reading = read(sysfs)
    assert (str(reading.machine.cpus), str(reading.machine.all_cpus)) == (left, "0-7")
    assert reading.doubts == ()


def test_memory_of_movable_pages_alone_is_given_to_no_container_but_where_the_operator_says(sysfs: Path):
    (sysfs / NODE / "has_normal_memory").write_text("0-3\n")
    machine = read_machine(sysfs)
    assert (str(machine.mems), str(machine.all_mems)) == ("0-3", "0-4")
    assert not any(machine.lower_tier.values())
    allowed = read(sysfs, tiers=NumaSet.of((4,))).machine
    assert str(allowed.mems) == "0-4"
    assert any(allowed.lower_tier.values())


@pytest.mark.parametrize("file", [f"{NODE}/node0/cpulist", f"{NODE}/node0/meminfo"])
def test_a_missing_file_that_every_kernel_writes_is_named(sysfs: Path, file: str):
    (sysfs / file).unlink()
    with pytest.raises(NotThere) as refusal:
        read_machine(sysfs)
    assert str(refusal.value) == f"{sysfs / file}: there is no such file"


def test_a_root_that_is_no_sysfs_is_refused(tmp_path: Path):
    with pytest.raises(NotThere, match="no CPU is online"):
        read_machine(tmp_path)


@pytest.mark.parametrize(
    "gone",
    [
        f"{NODE}/online",
        f"{NODE}/has_memory",
        f"{CPU}/online",
        f"{CPU}/possible",
        f"{CPU}/cpu0/topology/core_id",
        f"{CPU}/isolated",
        f"{CPU}/nohz_full",
    ],
)
def test_files_that_some_kernels_lack_are_not_missed(sysfs: Path, gone: str):
    (sysfs / gone).unlink()
    assert read_machine(sysfs, "qemu-4n") == MACHINES["qemu-4n"].machine


def test_without_distances_the_kernels_own_assumption_holds(sysfs: Path):
    for node in range(5):
        (sysfs / NODE / f"node{node}/distance").unlink()
    machine = read_machine(sysfs)
    assert (machine.distance(2, 2), machine.distance(0, 4)) == (10, 20)


def test_without_caches_none_are_told(sysfs: Path):
    for cpu in range(8):
        shutil.rmtree(sysfs / CPU / f"cpu{cpu}/cache")
    assert read_machine(sysfs).caches == ()


def test_without_topology_no_cores_or_sockets_are_told(sysfs: Path):
    for cpu in range(8):
        shutil.rmtree(sysfs / CPU / f"cpu{cpu}/topology")
    machine = read_machine(sysfs)
    assert (machine.cores, machine.sockets) == ((), ())


def _without_package_lists(sysfs: Path) -> None:
    for cpu in range(8):
        for name in ("package_cpus_list", "core_siblings_list"):
            (sysfs / CPU / f"cpu{cpu}/topology" / name).unlink()


def test_sockets_are_found_by_package_id_where_no_list_is(sysfs: Path):
    _without_package_lists(sysfs)
    assert read_machine(sysfs).sockets == MACHINES["qemu-4n"].machine.sockets


def test_firmware_without_package_ids_tells_of_no_socket(sysfs: Path):
    _without_package_lists(sysfs)
    for cpu in range(8):
        (sysfs / CPU / f"cpu{cpu}/topology/physical_package_id").write_text("-1\n")
    assert read_machine(sysfs).sockets == ()


def test_a_cpu_that_goes_offline_leaves_its_core_and_its_numa_node(sysfs: Path):
    (sysfs / CPU / "online").write_text("0-2,4-7\n")
    machine = read_machine(sysfs)
    assert str(machine.node(1).cpus) == "2"
    assert str(machine.core_of(2)) == "2"


def test_offline_cpus_are_known_by_their_own_files_where_no_list_is(sysfs: Path):
    (sysfs / CPU / "online").unlink()
    (sysfs / CPU / "cpu3/online").write_text("0\n")
    assert str(read_machine(sysfs).cpus) == "0-2,4-7"


def test_siblings_that_tell_different_stories_leave_disjoint_cores(sysfs: Path):
    (sysfs / CPU / "cpu2/topology/core_cpus_list").write_text("1-3\n")
    assert [str(core) for core in read_machine(sysfs).cores] == ["0-1", "2-3", "4-5", "6-7"]


def test_an_instruction_cache_is_no_last_level_cache(sysfs: Path):
    (sysfs / CPU / "cpu0/cache/index2/type").write_text("Instruction\n")
    (sysfs / CPU / "cpu0/cache/index0/shared_cpu_list").write_text("0\n")
    assert str(read_machine(sysfs).caches[0]) == "0"


def test_hugepages_are_told_in_bytes_by_size(sysfs: Path):
    for size, pages in (("2048kB", 8), ("1048576kB", 0)):
        folder = sysfs / NODE / f"node1/hugepages/hugepages-{size}"
        folder.mkdir(parents=True)
        (folder / "nr_hugepages").write_text(f"{pages}\n")
    assert read_machine(sysfs).node(1).hugepages == {2 << 20: 16 << 20}


def test_a_kernel_without_numa_is_one_numa_node_with_all_memory(tmp_path: Path):
    write_sysfs(MACHINES["laptop-no-numa"], tmp_path / "sys")
    write_procfs(MACHINES["laptop-no-numa"], tmp_path / "proc")
    machine = read_machine(tmp_path / "sys", proc_root=tmp_path / "proc")
    assert [(node.id, node.memory) for node in machine.numa_nodes] == [(0, 15_700 << 20)]


def test_old_and_new_names_of_the_topology_files_read_alike(tmp_path: Path):
    described = MACHINES["xeon-8260-snc2-smt-off"]
    assert described.old_kernel
    write_sysfs(described, tmp_path)
    assert (tmp_path / CPU / "cpu0/topology/thread_siblings_list").exists()
    assert not (tmp_path / CPU / "cpu0/topology/core_cpus_list").exists()
    assert not read_machine(tmp_path).cpus & described.offline


@st.composite
def descriptions(draw: st.DrawFn) -> Description:
    """Small machines of any shape: gaps between ids, NUMA nodes of nothing, offline CPUs, cores of any width, isolated
    CPUs, and memory of movable pages alone.
    """
    ids = sorted(draw(st.sets(st.integers(0, 300), min_size=1, max_size=6)))
    order = draw(st.permutations(range(draw(st.integers(1, 24)))))
    width = draw(st.integers(1, 4))
    cores = [CpuSet.of(order[first : first + width]) for first in range(0, len(order), width)]
    home = [draw(st.sampled_from(ids)) for _ in cores]
    far = st.integers(1, 255)
    isolated = CpuSet.of(draw(st.sets(st.sampled_from(order), max_size=len(order) - 1)))
    memory = {entry: draw(st.integers(0, 1 << 30)) * 1024 for entry in ids}
    withheld = draw(st.sets(st.sampled_from(ids[1:]))) if ids[1:] and memory[ids[0]] else set()
    nodes = tuple(
        NumaNode(
            id=entry,
            cpus=(every := CpuSet.of(cpu for core, at in zip(cores, home, strict=True) if at == entry for cpu in core))
            - isolated,
            memory=memory[entry],
            distances={other: draw(far) for other in ids},
            isolated=every & isolated,
            withheld=entry in withheld and bool(memory[entry]),
        )
        for entry in ids
    )
    ascending = tuple(sorted(cores, key=lambda core: core.lowest))
    whole = CpuSet.of(order)
    machine = Machine(nodes, cores=ascending, caches=ascending, sockets=(whole,), name="drawn")
    offline = CpuSet.of(range(24, 24 + draw(st.integers(0, 3))))
    return Description("", machine, "", offline=offline, old_kernel=draw(st.booleans()))


@settings(max_examples=30, deadline=None)
@given(descriptions())
def test_any_machine_that_is_written_reads_back(tmp_path_factory, description: Description):
    folder = tmp_path_factory.mktemp("drawn")
    write_sysfs(description, folder)
    assert read_machine(folder, "drawn") == description.machine


FILES_THAT_MATTER = (
    f"{CPU}/online",
    f"{CPU}/cpu0/topology/core_cpus_list",
    f"{CPU}/cpu0/topology/package_cpus_list",
    f"{CPU}/cpu0/cache/index2/level",
    f"{CPU}/cpu0/cache/index2/shared_cpu_list",
    f"{CPU}/isolated",
    f"{NODE}/online",
    f"{NODE}/has_normal_memory",
    f"{NODE}/node1/cpulist",
    f"{NODE}/node1/distance",
    f"{NODE}/node1/meminfo",
)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(FILES_THAT_MATTER), st.one_of(st.binary(max_size=40), st.from_regex(rb"[-0-9,:/ kB]{1,20}")))
def test_whatever_a_file_holds_there_is_a_machine_or_an_error_of_ours(spoilable: Path, file: str, content: bytes):
    good = (spoilable / file).read_bytes()
    (spoilable / file).write_bytes(content)
    try:
        outcome: Machine | str = read_machine(spoilable)
    except MachineError as error:
        outcome = str(error)
    finally:
        (spoilable / file).write_bytes(good)
    assert isinstance(outcome, Machine) or str(spoilable) in outcome


@pytest.fixture(scope="module")
def spoilable(tmp_path_factory) -> Path:
    """A sysfs of its own for a test that puts each file back."""
    folder = tmp_path_factory.mktemp("spoilable")
    write_sysfs(MACHINES["qemu-4n"], folder)
    return folder


def test_a_file_that_is_a_folder_is_refused_by_name(sysfs: Path):
    (sysfs / CPU / "online").unlink()
    (sysfs / CPU / "online").mkdir()
    with pytest.raises(NotThere, match="cpu/online: cannot be read: Is a directory"):
        read_machine(sysfs)
