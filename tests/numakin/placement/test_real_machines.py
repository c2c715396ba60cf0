"""Real machine types, as the enforcer reads them (tests/enforcer/machine): every one is filled and decided on."""

from __future__ import annotations

import pytest

from lab.standins.machines import MACHINES
from numakin.placement.decide.decide import Kin, decide
from numakin.placement.optin.parsing import Cpus, Policy
from numakin.placement.state import pools
from numakin.placement.state.occupancy import Occupancy
from tests.machines import GIB
from tests.numakin.placement.asking import asks, settle

KINDS = (Cpus.SHARED, Cpus.EXCLUSIVE, Cpus.SHARED, Cpus.EXCLUSIVE_CORES)


@pytest.fixture(params=MACHINES)
def machine(request):
    return MACHINES[request.param].machine


def test_a_machine_is_filled_without_oversubscription(machine):
    size = max(1, min(machine.cpu_counts[cpu_node] for cpu_node in machine.cpu_nodes) // 6)
    occupancy, capacity, asked = Occupancy(), 700 * len(machine.cpus), 0
    number = 0
    while asked + 1000 * size <= capacity and number < 200:
        request = asks(f"p{number}", size, 0.1, group=f"shop/{number // 5}", cpus=KINDS[number % len(KINDS)])
        decision, occupancy = settle(machine, occupancy, request)
        assert decision.fits
        asked += 1000 * max(size, len(decision.exclusive))
        number += 1
    load = occupancy.cpu_load(machine)
    assert all(load[cpu_node] <= 1000 * machine.cpu_counts[cpu_node] for cpu_node in machine.cpu_nodes)
    assert pools.due(machine, occupancy) == ()
    for allocation in occupancy.allocations.values():
        assert allocation.cpus <= machine.cpus
        assert allocation.mems <= machine.mems
        assert allocation.mems.isdisjoint(machine.all_mems - machine.mems)


def test_a_group_that_fits_one_numa_node_is_on_one(machine):
    size = min(machine.cpu_counts[cpu_node] for cpu_node in machine.cpu_nodes) / 5
    occupancy = Occupancy()
    for number in range(4):
        _, occupancy = settle(machine, occupancy, asks(f"p{number}", size, 0.1))
    assert len({reservation.numa_nodes for reservation in occupancy.reservations.values()}) == 1


def test_what_is_wider_than_a_numa_node_lies_close_together(machine):
    if len(machine.cpu_nodes) < 2:
        assert decide(machine, Occupancy(), asks("a", len(machine.cpus) / 2), Kin()).admitted
        return
    largest = max(machine.cpu_counts.values())
    decision = decide(machine, Occupancy(), asks("a", largest * 1.5, 0.1, policy=Policy.RESTRICTED), Kin())
    assert (decision.fits, decision.admitted, len(decision.numa_nodes)) == (True, True, 2)
    a, b = decision.numa_nodes
    nearest = min(machine.distance(x, y) for x in machine.cpu_nodes for y in machine.cpu_nodes if x != y)
    assert min(machine.distance(a, b), machine.distance(b, a)) == nearest


def test_memory_of_more_than_one_numa_node_takes_two_at_most(machine):
    largest = max(machine.node(cpu_node).memory for cpu_node in machine.cpu_nodes)
    decision = decide(machine, Occupancy(), asks("a", 1, 1.25 * largest / GIB), Kin())
    if len(machine.mems & machine.cpu_nodes) > 1:
        assert decision.fits
        assert len(decision.numa_nodes) <= 2
