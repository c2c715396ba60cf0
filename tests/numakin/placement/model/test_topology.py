"""The machine: what contradicts itself is refused, what is odd but real is understood."""

from __future__ import annotations

from dataclasses import replace

import pytest

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.errors import BadTopology
from numakin.placement.model.topology import UNREACHABLE, Machine, NumaNode, uniform_distances
from tests import machines

TWO = uniform_distances((0, 1))


def node(first, cpus, memory=1, distances=None, **more):
    return NumaNode(first, CpuSet.parse(cpus), memory, distances or TWO[first], **more)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: Machine(()), "a machine has at least one NUMA node"),
        (lambda: Machine((node(1, "0"), node(0, "1"))), "NUMA node ids must ascend without repeats, not [1, 0]"),
        (lambda: Machine((node(0, "0-1"), node(1, "1"))), "CPUs 1 are on NUMA node 1 and on another"),
        (lambda: Machine((node(0, ""), node(1, ""))), "a machine has at least one online CPU that is not isolated"),
        (
            lambda: Machine((node(0, "0", distances={0: 10}), node(1, "1"))),
            "NUMA node 0 has distances to [0], the machine has [0, 1]",
        ),
        (
            lambda: Machine((node(0, "0", distances={0: 10, 1: 0}), node(1, "1"))),
            "NUMA node 0 has a distance outside 1..255",
        ),
        (
            lambda: Machine((node(0, "0"), node(1, "1")), cores=(CpuSet.parse("0,9"),)),
            "cores name CPUs 9, which are not online",
        ),
        (
            lambda: Machine((node(0, "0-1"), node(1, "2")), caches=(CpuSet.parse("0-1"), CpuSet.parse("1-2"))),
            "caches name CPUs 1 twice",
        ),
        (lambda: node(0, "0", memory=-1), "NUMA node 0 has negative memory"),
        (lambda: node(0, "0", hugepages={0: 5}), "NUMA node 0 has hugepages of {0: 5}"),
        (
            lambda: Machine(tuple(NumaNode(number, CpuSet.of([number]), 1, {}) for number in range(1025))),
            "a machine has at most 1024 NUMA nodes, not 1025",
        ),
    ],
)
def test_a_machine_that_contradicts_itself_is_refused_word_for_word(build, says):
    with pytest.raises(BadTopology) as refused:
        build()
    assert str(refused.value) == says


@pytest.mark.parametrize("machine", machines.ALL, ids=lambda entry: entry.name)
def test_every_known_machine_is_understood(machine):
    assert machine.cpus
    assert set(machine.cpus) == {cpu for cpu_node in machine.cpu_nodes for cpu in machine.node(cpu_node).cpus}
    for cpu in machine.cpus:
        assert cpu in machine.node(machine.node_of(cpu)).cpus
        assert cpu in machine.core_of(cpu)
    for cpu_node in machine.cpu_nodes:
        cores = machine.cores_by_node[cpu_node]
        caches = machine.caches_by_node[cpu_node]
        assert sum(cores) & machine.node(cpu_node).cpus.mask == sum(caches) == machine.node(cpu_node).cpus.mask
        for parts in (cores, caches, machine.cache_domains[cpu_node]):
            assert [*parts] == sorted(parts, key=lambda part: CpuSet(part).lowest), "by their lowest CPU"
        assert machine.outward[cpu_node][0] == cpu_node
        assert machine.nearest_mems(NumaSet.of([cpu_node])) <= machine.mems


def test_memory_of_a_cpu_only_numa_node_is_the_nearest():
    assert machines.CPU_ONLY_NODE.nearest_mems(NumaSet.of([1])) == NumaSet.of([0])
    assert machines.CPU_ONLY_NODE.mems == NumaSet.of([0])


def test_memory_only_numa_nodes_are_a_lower_tier_of_the_nearest():
    assert machines.CXL.cpu_nodes == NumaSet.of([0, 1])
    assert machines.CXL.lower_tier == {0: NumaSet.of([2]), 1: NumaSet()}
    assert machines.KNL_FLAT.lower_tier[2] == NumaSet.of([6])


def test_a_machine_that_tells_of_no_memory_has_no_mems():
    bare = Machine((replace(machines.NO_NUMA.numa_nodes[0], memory=0),))
    assert not bare.mems
    assert not bare.nearest_mems(NumaSet.of([0]))


def test_closeness_falls_with_distance_and_is_nothing_without_a_connection():
    assert machines.KUNPENG_920.closeness(0, 0) == 1.0
    assert machines.KUNPENG_920.closeness(0, 3) == 10 / 22
    apart = Machine((node(0, "0", distances={0: 10, 1: UNREACHABLE}), node(1, "1")))
    assert apart.closeness(0, 1) == 0.0
    assert apart.closeness(1, 0) == 0.5


def test_ids_may_have_gaps():
    assert machines.POWER9.nodes_of(CpuSet.parse("60-70")) == NumaSet.of([0, 8])
    assert machines.POWER9.cpus_of(NumaSet.of([8])) == CpuSet.parse("64-127")


def test_hugepages_are_not_ordinary_memory():
    assert machines.HUGE.node(1).ordinary_memory == 20 * machines.GIB


SAME = {0: 20, 1: 20, 2: 20, 3: 20}
"""Firmware that tells of no distances."""


def untold() -> Machine:
    """Four NUMA nodes of two CPUs; 0 and 2 are on one socket, 1 and 3 on the other."""
    nodes = tuple(node(at, f"{2 * at}-{2 * at + 1}", distances=SAME | {at: 10}) for at in range(4))
    return Machine(nodes, sockets=(CpuSet.parse("0-1,4-5"), CpuSet.parse("2-3,6-7")))


def test_where_distances_do_not_tell_numa_nodes_of_one_socket_are_the_nearer():
    assert untold().outward[0] == (0, 2, 1, 3)
    assert untold().outward[3] == (3, 1, 0, 2)
    assert replace(untold(), sockets=()).outward[0] == (0, 1, 2, 3)
