"""How the answer changes with the machine: other numbers, more CPUs."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from numakin.placement.decide.decide import Kin, decide
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine, NumaNode
from numakin.placement.optin.parsing import Cpus
from numakin.placement.state.occupancy import Occupancy
from tests import examples, machines
from tests.numakin.placement.asking import asks, settle


def renumbered(machine: Machine, node_to: dict[int, int], cpu_to: dict[int, int]) -> Machine:
    numa_nodes = [
        NumaNode(
            node_to[node.id],
            CpuSet.of(cpu_to[cpu] for cpu in node.cpus),
            node.memory,
            {node_to[other]: far for other, far in node.distances.items()},
        )
        for node in machine.numa_nodes
    ]
    return Machine(tuple(sorted(numa_nodes, key=lambda node: node.id)))


@settings(max_examples=examples.of(80), deadline=None)
@given(st.permutations(range(4)), st.lists(st.sampled_from([1, 3, 5, 8, 13, 24, 45]), max_size=10), st.randoms())
def test_renumbering_numa_nodes_and_cpus_renumbers_the_answer(order, sizes, random):
    machine = machines.KUNPENG_920
    shuffled = [*machine.cpus]
    random.shuffle(shuffled)
    node_to, cpu_to = dict(enumerate(order)), dict(zip(machine.cpus, shuffled, strict=True))
    other = renumbered(machine, node_to, cpu_to)
    here = there = Occupancy()
    for at, size in enumerate(sizes):
        request = asks(f"p{at}", size + at / 1000, group=f"shop/{at % 2}")  # millicores apart: no two sets tie
        room = [decide(machine, here, request, Kin(expected=NumaSet.of([number]))).score for number in range(4)]
        if len(set(room)) < len(room):
            expected = NumaSet.of([random.randrange(4)])  # a tie is broken by number, the one thing that is renumbered
            kin, received = Kin(expected=expected), Kin(expected=NumaSet.of(node_to[entry] for entry in expected))
        else:
            kin = received = Kin()
        first, here = settle(machine, here, request, kin)
        second, there = settle(other, there, request, received)
        if len(first.numa_nodes) > 1 or (kin.expected and first.numa_nodes != kin.expected):
            return  # equally near wide sets tie too, and so does what is left where a nomination is broken
        assert {node_to[numa_node] for numa_node in first.numa_nodes} == set(second.numa_nodes)
        assert first.score == second.score
        assert [reason.what for reason in first.reasons] == [reason.what for reason in second.reasons]


@settings(max_examples=examples.of(100), deadline=None)
@given(
    st.lists(st.sampled_from([1, 2, 3]), max_size=8),
    st.sampled_from([1, 2, 3, 5]),
    st.integers(0, 3),
    st.sampled_from(list(Cpus)),
)
def test_more_cpus_never_make_a_fitting_demand_unfit(sizes, wanted, more, kind):
    small = machines.SMALL
    nodes = small.numa_nodes
    grown = Machine((replace(nodes[0], cpus=nodes[0].cpus | CpuSet.of(range(8, 8 + more))), nodes[1]))
    before = Occupancy()
    for at, size in enumerate(sizes):
        _, before = settle(small, before, asks(f"p{at}", size, 0))
    request = asks("new", wanted, 0, cpus=kind)
    first, second = decide(small, before, request, Kin()), decide(grown, before, request, Kin())
    assert second.fits >= first.fits
    if first.fits:
        assert len(second.numa_nodes) <= len(first.numa_nodes)
