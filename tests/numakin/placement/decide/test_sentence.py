"""A decision in one line, short enough for an Event, and how it is carried out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from numakin.placement.decide.decide import Kin, Reason, decide
from numakin.placement.model.errors import AlreadyHeld
from numakin.placement.optin.parsing import Cpus
from numakin.placement.state.occupancy import Occupancy
from tests import machines
from tests.numakin.placement.asking import asks, cpus, filled, nodes

SMALL = machines.SMALL


def test_reasons_are_joined_in_order():
    decision = decide(SMALL, Occupancy(), asks("a"), Kin())
    decision = replace(decision, reasons=(Reason("kin", "0.50", "near"), Reason("memory", "", "bound")))
    assert decision.sentence == "kin 0.50: near; memory: bound"


def test_what_does_not_fit_an_event_is_cut_off_within_its_bytes():
    decision = decide(SMALL, Occupancy(), asks("a"), Kin())
    long = replace(decision, reasons=tuple(Reason("grüße", str(number), "ü" * 50) for number in range(50)))
    assert len(long.sentence.encode()) <= 1024
    assert long.sentence.endswith("...")


def test_carried_out_it_is_a_reservation_a_allocation_and_its_updates_in_one_generation():
    before = filled(SMALL, asks("a"))
    request = asks("own", 2, cpus=Cpus.EXCLUSIVE)
    after = decide(SMALL, before, request, Kin()).applied(before, request)
    assert after.generation == before.generation + 1
    assert after.reservations["own"].numa_nodes == nodes("0")
    assert after.allocations["own-main"].exclusive == cpus("0-1")
    assert after.allocations["a-main"].cpus == cpus("2-3")


def test_a_decision_that_came_too_late_is_refused():
    empty = Occupancy()
    request = asks("late", 2, cpus=Cpus.EXCLUSIVE)
    late = decide(SMALL, empty, request, Kin())
    with pytest.raises(AlreadyHeld, match="CPUs 0-1 of container late-main are held by container first-main"):
        late.applied(filled(SMALL, asks("first", 2, cpus=Cpus.EXCLUSIVE)), request)
