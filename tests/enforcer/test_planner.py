"""Plans are made beside the watch, and always for what is known latest."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from queue import Queue

from enforcer.planner import Planner, Situation
from placement.known import Workload
from placement.occupancy import Occupancy, Seat
from placement.plan import Plan
from tests import machines
from tests.placement.asking import demand, nodes

PATIENCE_S = 30.0


@contextmanager
def running(planner: Planner) -> Iterator[None]:
    thread = threading.Thread(target=planner.run)
    thread.start()
    try:
        yield
    finally:
        planner.stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def situation(*names: str, occupancy: Occupancy | None = None) -> Situation:
    """Workloads of two replicas, each talking with the next."""
    talk = dict.fromkeys(pairwise(names), 1.0)
    return Situation(occupancy or Occupancy(), [Workload(name, demand(2), 2) for name in names], talk)


def test_each_plan_is_told_also_when_the_thorough_one_has_to_rest() -> None:
    plans: Queue[Plan] = Queue()
    planner = Planner(machines.KUNPENG_920, plans.put)
    with running(planner):
        planner.consider(situation("cart", "db"))
        first = plans.get(timeout=PATIENCE_S)
        planner.consider(situation("cart", "db", "web"))
        second = plans.get(timeout=PATIENCE_S)
    assert set(first.seats) == {"cart", "db"}
    assert set(second.seats) == {"cart", "db", "web"}
    assert {name: second.seats[name] for name in first.seats} == first.seats


def test_what_was_told_meanwhile_is_planned_for_once_and_as_it_is_latest() -> None:
    plans: Queue[Plan] = Queue()
    planner = Planner(machines.KUNPENG_920, plans.put)
    planner.consider(situation("cart", "db"))
    planner.consider(situation("ads", "web"))
    with running(planner):
        assert set(plans.get(timeout=PATIENCE_S).seats) == {"ads", "web"}
    assert plans.empty()


def test_members_that_run_are_planned_around() -> None:
    plans: Queue[Plan] = Queue()
    planner = Planner(machines.KUNPENG_920, plans.put)
    there = Occupancy().seated(Seat("p", "p", "", nodes("2"), demand(2), workload="db"))
    with running(planner):
        planner.consider(situation("cart", "db", occupancy=there))
        plan = plans.get(timeout=PATIENCE_S)
    assert [one.numa_nodes for one in plan.seats["db"]] == [nodes("2")]
