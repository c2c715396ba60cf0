"""The machine is read from any kernel's sysfs."""

import shutil
from pathlib import Path

import pytest

from enforcer.machine.errors import NotThere
from enforcer.machine.sysfs import read, read_machine
from lab.standins.machines import MACHINES, write_procfs, write_sysfs
from numakin.placement.model.cpuset import CpuSet, NumaSet
from tests.enforcer.machine.sysfs_files import CPU, NODE


def test_this_machine_is_read():
    machine = read_machine(name="here")
    assert machine.name == "here"
    assert machine.cpus == CpuSet.parse(Path(f"/sys/{CPU}/online").read_text())
    assert machine.mems


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
