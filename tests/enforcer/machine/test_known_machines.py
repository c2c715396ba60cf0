"""Every machine that is written down reads back as it was described, and its figures are those of the public dumps."""

from pathlib import Path

import pytest

from enforcer.machine.sysfs import read_machine
from lab.standins.machines import MACHINES, write_procfs, write_sysfs
from numakin.placement.model.cpuset import CpuSet, NumaSet


@pytest.mark.parametrize("name", MACHINES)
def test_a_described_machine_reads_back_as_described(name, tmp_path: Path):
    first = MACHINES[name]
    write_sysfs(first, tmp_path / "sys")
    write_procfs(first, tmp_path / "proc")
    assert read_machine(tmp_path / "sys", first.machine.name, tmp_path / "proc") == first.machine


@pytest.mark.parametrize("first", MACHINES.values(), ids=MACHINES)
def test_every_online_cpu_is_on_a_core_and_in_a_socket(first):
    for groups in (first.machine.cores, first.machine.sockets):
        assert sum(len(group) for group in groups) == len(first.machine.cpus)
        assert CpuSet.of(cpu for group in groups for cpu in group) == first.machine.cpus


@pytest.mark.parametrize("first", MACHINES.values(), ids=MACHINES)
def test_every_description_says_where_its_facts_are_public(first):
    assert first.title
    assert first.source


@pytest.mark.parametrize(
    ("name", "numa_nodes", "cpus", "cores", "caches", "sockets"),
    [
        ("xeon-8380", 2, 160, 80, 2, 2),
        ("xeon-8480-snc4", 8, 224, 112, 2, 2),
        ("xeon-8260-snc2-smt-off", 4, 48, 48, 2, 2),
        ("xeon-e5-2680v4-in-turn", 2, 28, 28, 2, 2),
        ("superdome-flex-8s-snc2", 16, 448, 224, 8, 8),
        ("laptop-no-numa", 1, 16, 12, 1, 1),
        ("epyc-7601", 8, 128, 64, 16, 2),
        ("epyc-7742-nps1", 2, 256, 128, 32, 2),
        ("epyc-7742-nps4", 8, 256, 128, 32, 2),
        ("epyc-9755-nps1", 2, 512, 256, 32, 2),
        ("epyc-9965-nps1", 2, 768, 384, 24, 2),
        ("epyc-7763-nps1", 2, 256, 128, 16, 2),
        ("epyc-7763-nps2", 4, 256, 128, 16, 2),
        ("epyc-7763-nps4", 8, 256, 128, 16, 2),
        ("epyc-9654-nps1", 2, 384, 192, 24, 2),
        ("epyc-9654-nps2", 4, 384, 192, 24, 2),
        ("epyc-9654-nps4", 8, 384, 192, 24, 2),
        ("threadripper-2990wx", 4, 64, 32, 8, 1),
        ("kunpeng-920-2s", 4, 96, 96, 4, 2),
        ("kunpeng-920-4s", 8, 256, 256, 8, 4),
        ("ampere-altra-quadrant", 4, 80, 80, 80, 1),
        ("phytium-s2500-2s", 16, 128, 128, 2, 2),
        ("knl-7250-snc4-flat", 8, 272, 68, 34, 1),
        ("xeon-max-9470-flat", 4, 208, 104, 2, 2),
        ("xeon-cxl", 4, 208, 104, 2, 2),
        ("gb200", 34, 144, 144, 2, 2),
        ("power9-ac922", 6, 128, 32, 16, 2),
        ("power9-six-gpus", 8, 176, 44, 22, 2),
        ("altix-17n", 17, 128, 128, 0, 16),
        ("altix-64n", 64, 256, 256, 0, 64),
        ("power8-smt-off", 2, 10, 10, 10, 2),
        ("qemu-4n", 5, 8, 4, 4, 4),
        ("qemu-holes", 4, 6, 3, 3, 3),
    ],
)
def test_a_machine_has_the_counts_of_its_product_page(name, numa_nodes, cpus, cores, caches, sockets):
    machine = MACHINES[name].machine
    counted = (machine.numa_nodes, machine.cpus, machine.cores, machine.caches, machine.sockets)
    assert tuple(map(len, counted)) == (numa_nodes, cpus, cores, caches, sockets)


@pytest.mark.parametrize(
    ("name", "domains", "first"),
    [
        ("epyc-7601", 2, "0-3,64-67"),
        ("epyc-7742-nps1", 16, "0-3,128-131"),
        ("epyc-7742-nps4", 4, "0-3,128-131"),
        ("epyc-7763-nps1", 8, "0-7,128-135"),
        ("epyc-7763-nps4", 2, "0-7,128-135"),
        ("epyc-9654-nps1", 12, "0-7,192-199"),
        ("epyc-9755-nps1", 16, "0-7,256-263"),
        ("epyc-9965-nps1", 12, "0-15,384-399"),
        ("kunpeng-920-2s", 6, "0-3"),
        ("kunpeng-920-4s", 8, "0-3"),
        ("knl-7250-snc4-flat", 9, "0-1,68-69,136-137,204-205"),
        ("power9-ac922", 8, "0-7"),
        ("xeon-8480-snc4", 0, ""),
        ("xeon-8380", 0, ""),
        ("gb200", 0, ""),
        ("ampere-altra-quadrant", 0, ""),
        ("laptop-no-numa", 0, ""),
    ],
)
def test_a_numa_node_has_as_many_cache_domains_as_it_has_caches_or_else_clusters(name, domains, first):
    machine = MACHINES[name].machine
    here = machine.cache_domains[machine.cpu_nodes.lowest]
    assert (len(here), str(CpuSet(here[0])) if here else "") == (domains, first)


@pytest.mark.parametrize(
    ("name", "numa_node", "cpus"),
    [
        ("xeon-8380", 1, "40-79,120-159"),
        ("xeon-8480-snc4", 1, "14-27,126-139"),
        ("xeon-8260-snc2-smt-off", 1, "4-5,9-11,15-18,21-23"),
        ("xeon-e5-2680v4-in-turn", 0, "0,2,4,6,8,10,12,14,16,18,20,22,24,26"),
        ("epyc-7763-nps4", 7, "112-127,240-255"),
        ("epyc-9654-nps2", 3, "144-191,336-383"),
        ("threadripper-2990wx", 1, "16-23,48-55"),
        ("kunpeng-920-2s", 3, "72-95"),
        ("phytium-s2500-2s", 15, "120-127"),
        ("knl-7250-snc4-flat", 0, "0-17,68-85,136-153,204-221"),
        ("xeon-cxl", 1, "52-103,156-207"),
        ("power9-ac922", 8, "64-127"),
        ("power8-smt-off", 1, "40,48,56,64,72"),
        ("gb200", 2, ""),
    ],
)
def test_cpus_are_numbered_as_in_public_dumps(name, numa_node, cpus):
    assert str(MACHINES[name].machine.node(numa_node).cpus) == cpus


@pytest.mark.parametrize(
    ("name", "numa_node", "row"),
    [
        ("xeon-8480-snc4", 4, "21 21 21 21 10 12 12 12"),
        ("epyc-7763-nps4", 0, "10 12 12 12 32 32 32 32"),
        ("epyc-9654-nps2", 2, "32 32 10 12"),
        ("kunpeng-920-2s", 1, "12 10 22 24"),
        ("kunpeng-920-4s", 1, "12 10 22 24 22 24 22 24"),
        ("phytium-s2500-2s", 12, "100 100 100 100 100 100 100 100 20 50 40 30 10 50 30 20"),
        ("knl-7250-snc4-flat", 1, "21 10 21 21 41 31 41 41"),
        ("xeon-cxl", 3, "24 14 26 10"),
        ("power9-ac922", 252, "80 80 10 80 80 80"),
        ("gb200", 0, "10 40" + " 80" * 16 + " 120" * 16),
        ("altix-17n", 5, "20 20 20 20 17 10 17 17 20 20 20 20 20 20 20 20 14"),
        (
            "altix-64n",
            40,
            "30 30 30 30 34 34 34 34 30 30 30 30 34 34 34 34 30 30 30 30 34 34 34 34 30 30 30 30 34 34 34 34"
            " 26 26 26 26 30 30 30 30 10 22 22 22 26 26 26 26" + " 30 30 30 30 34 34 34 34" * 2,
        ),
        ("gb200", 9, "80 120" + " 11" * 7 + " 10" + " 40" * 24),
        ("qemu-4n", 3, "30 24 18 10 44"),
    ],
)
def test_distances_are_those_of_public_dumps(name, numa_node, row):
    assert " ".join(map(str, MACHINES[name].machine.node(numa_node).distances.values())) == row


@pytest.mark.parametrize(
    ("name", "cpu_nodes", "mems"),
    [
        ("power9-ac922", "0,8", "0,8"),
        ("power9-six-gpus", "0,8", "0,8"),
        ("power8-smt-off", "0-1", "0"),
        ("knl-7250-snc4-flat", "0-3", "0-7"),
        ("threadripper-2990wx", "0-3", "0,2"),
        ("gb200", "0-1", "0-1"),
        ("qemu-holes", "0-2", "0,2-3"),
    ],
)
def test_numa_nodes_of_cpus_or_memory_alone_are_told_apart(name, cpu_nodes, mems):
    machine = MACHINES[name].machine
    assert (machine.cpu_nodes, machine.mems) == (NumaSet.parse(cpu_nodes), NumaSet.parse(mems))


@pytest.mark.parametrize(
    ("name", "cpu", "siblings"),
    [
        ("xeon-8380", 3, "3,83"),
        ("epyc-7763-nps4", 130, "2,130"),
        ("power9-ac922", 66, "64-67"),
        ("knl-7250-snc4-flat", 1, "1,69,137,205"),
        ("laptop-no-numa", 1, "0-1"),
        ("laptop-no-numa", 8, "8"),
        ("kunpeng-920-4s", 7, "7"),
    ],
)
def test_smt_siblings_are_found(name, cpu, siblings):
    assert str(MACHINES[name].machine.core_of(cpu)) == siblings
