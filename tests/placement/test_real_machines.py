"""Real machine types, read from the sysfs trees that they show: every one is filled and decided on."""

from __future__ import annotations

from pathlib import Path

import pytest

from enforcer.machine.sysfs import read_machine
from placement import pools
from placement.decide import Kin, decide
from placement.occupancy import Occupancy
from placement.optin import Cpus, Policy
from standins.machines import MACHINES, write_procfs, write_sysfs
from tests.placement.asking import asks, settle

KINDS = (Cpus.SHARED, Cpus.EXCLUSIVE, Cpus.SHARED, Cpus.EXCLUSIVE_CORES)


@pytest.fixture(params=MACHINES)
def machine(request, tmp_path: Path):
    write_sysfs(MACHINES[request.param], tmp_path / "sys")
    write_procfs(MACHINES[request.param], tmp_path / "proc")
    return read_machine(tmp_path / "sys", request.param, tmp_path / "proc")


def test_a_machine_is_filled_without_oversubscription(machine):
    size = max(1, min(machine.cpu_counts[one] for one in machine.cpu_nodes) // 6)
    occupancy, capacity, asked = Occupancy(), 700 * len(machine.cpus), 0
    number = 0
    while asked + 1000 * size <= capacity and number < 200:
        request = asks(f"p{number}", size, 0.1, group=f"shop/{number // 5}", cpus=KINDS[number % len(KINDS)])
        decision, occupancy = settle(machine, occupancy, request)
        assert decision.fits
        asked += 1000 * max(size, len(decision.exclusive))
        number += 1
    load = occupancy.cpu_load(machine)
    assert all(load[one] <= 1000 * machine.cpu_counts[one] for one in machine.cpu_nodes)
    assert pools.due(machine, occupancy) == ()
    for holding in occupancy.holdings.values():
        assert holding.cpus <= machine.cpus
        assert holding.mems <= machine.mems


def test_a_group_that_fits_one_numa_node_is_on_one(machine):
    size = min(machine.cpu_counts[one] for one in machine.cpu_nodes) / 5
    occupancy = Occupancy()
    for number in range(4):
        _, occupancy = settle(machine, occupancy, asks(f"p{number}", size, 0.1))
    assert len({one.numa_nodes for one in occupancy.seats.values()}) == 1


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
