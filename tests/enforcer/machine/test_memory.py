"""Free memory is what can be bound to without harm: free and reclaimable, above the watermarks."""

import shutil
from pathlib import Path

import pytest

from enforcer.machine.errors import NotThere
from enforcer.machine.memory import PAGE_SIZE, available, free_hugepages, free_memory
from enforcer.machine.sysfs import read_machine
from lab.standins.machines import MACHINES, write_procfs, write_sysfs

MIB = 1 << 20


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    described = MACHINES["qemu-holes"]
    write_sysfs(described, tmp_path / "sys")
    write_procfs(described, tmp_path / "proc")
    return tmp_path / "sys", tmp_path / "proc"


@pytest.mark.parametrize(
    ("info", "watermark", "expected"),
    [
        ({"MemFree": 100}, 0, 100),
        ({"MemFree": 100}, 30, 70),
        ({"MemFree": 100}, 130, 0),
        ({"MemFree": 100, "Inactive(file)": 50}, 0, 150),
        ({"MemFree": 100, "Active(file)": 50}, 0, 100),
        ({"MemFree": 100, "SReclaimable": 50}, 0, 125),
        ({"MemFree": 100, "SReclaimable": 50, "Inactive(file)": 10, "AnonPages": 900}, 20, 115),
        ({}, 10, 0),
    ],
)
def test_reclaimable_memory_counts_and_watermarks_are_kept(info, watermark, expected):
    assert available(info, watermark) == expected


def test_every_numa_node_is_told_those_without_memory_too(roots):
    sysfs, proc = roots
    free = free_memory(sysfs, proc)
    assert sorted(free) == [0, 1, 2, 3]
    assert free[1] == 0
    assert 0 < free[3] < 512 * MIB


def test_a_watermark_is_the_sum_of_the_zones_of_its_numa_node(roots):
    sysfs, proc = roots
    (proc / "zoneinfo").unlink()
    without = free_memory(sysfs, proc)
    (proc / "zoneinfo").write_text(
        "Node 0, zone      DMA\n  pages free     3840\n        min      51\n        low      63\n        high     75\n"
        "  pagesets\n    cpu: 0\n              high:  9999\n"
        "Node 0, zone   Normal\n        high     25\n"
        "Node 2, zone  Movable\n        high     7\n"
    )
    held_back = {node: without[node] - now for node, now in free_memory(sysfs, proc).items()}
    assert held_back == {0: 100 * PAGE_SIZE, 1: 0, 2: 7 * PAGE_SIZE, 3: 0}


def test_a_kernel_without_numa_tells_its_memory_as_numa_node_0(roots):
    sysfs, proc = roots
    shutil.rmtree(sysfs / "devices/system/node")
    assert list(free_memory(sysfs, proc)) == [0]
    assert free_hugepages(sysfs) == {}


def test_a_machine_without_meminfo_is_refused_by_name(roots):
    sysfs, proc = roots
    missing = sysfs / "devices/system/node/node2/meminfo"
    missing.unlink()
    with pytest.raises(NotThere, match=str(missing)):
        free_memory(sysfs, proc)


def test_this_machine_has_free_memory_but_not_more_than_it_has():
    machine, free = read_machine(), free_memory()
    assert free.keys() == {node.id for node in machine.numa_nodes}
    assert all(0 <= free[node.id] <= node.memory for node in machine.numa_nodes)
    assert any(free.values())


def test_free_hugepages_are_told_in_bytes_by_size(tmp_path: Path):
    write_sysfs(MACHINES["xeon-8380"], tmp_path)
    taken = tmp_path / "devices/system/node/node1/hugepages/hugepages-1048576kB/free_hugepages"
    taken.write_text("3\n")
    assert free_hugepages(tmp_path) == {0: {1 << 30: 16 << 30}, 1: {1 << 30: 3 << 30}}
