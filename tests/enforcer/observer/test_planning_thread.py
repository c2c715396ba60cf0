"""Plans are made beside the watch, and always for what is known latest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from queue import Queue

from enforcer.observer.planning_thread import PlanningInput, PlanningThread
from placement.plan.plan import Plan
from placement.plan.problem import Workload
from placement.state.occupancy import Occupancy, Reservation
from process.threads import Failure, Threads
from tests import machines, supervised
from tests.placement.asking import demand, nodes

PATIENCE_S = 30.0


def made(told: Callable[[Plan], None], threads: Threads | None = None) -> PlanningThread:
    return PlanningThread(machines.KUNPENG_920, told, threads=threads or supervised.threads())


@contextmanager
def running(planner: PlanningThread) -> Iterator[None]:
    planner.start()
    try:
        yield
    finally:
        planner.stop(PATIENCE_S)
        assert not planner.alive


def situation(*names: str, occupancy: Occupancy | None = None) -> PlanningInput:
    """Workloads of two replicas, each talking with the next."""
    talk = dict.fromkeys(pairwise(names), 1.0)
    return PlanningInput(occupancy or Occupancy(), [Workload(name, demand(2), 2) for name in names], talk)


def test_each_plan_is_told_also_when_the_thorough_one_has_to_rest() -> None:
    plans: Queue[Plan] = Queue()
    planner = made(plans.put)
    with running(planner):
        planner.consider(situation("cart", "db"))
        first = plans.get(timeout=PATIENCE_S)
        planner.consider(situation("cart", "db", "web"))
        second = plans.get(timeout=PATIENCE_S)
    assert set(first.slots) == {"cart", "db"}
    assert set(second.slots) == {"cart", "db", "web"}
    assert {name: second.slots[name] for name in first.slots} == first.slots


def test_what_was_told_meanwhile_is_planned_for_once_and_as_it_is_latest() -> None:
    plans: Queue[Plan] = Queue()
    planner = made(plans.put)
    planner.consider(situation("cart", "db"))
    planner.consider(situation("ads", "web"))
    with running(planner):
        assert set(plans.get(timeout=PATIENCE_S).slots) == {"ads", "web"}
    assert plans.empty()


def test_members_that_run_are_planned_around() -> None:
    plans: Queue[Plan] = Queue()
    planner = made(plans.put)
    there = Occupancy().with_reservation(Reservation("p", "p", "", nodes("2"), demand(2), workload="db"))
    with running(planner):
        planner.consider(situation("cart", "db", occupancy=there))
        plan = plans.get(timeout=PATIENCE_S)
    assert [slot.numa_nodes for slot in plan.slots["db"]] == [nodes("2")]


def test_a_situation_that_can_not_be_planned_for_is_not_the_last() -> None:
    plans: Queue[Plan] = Queue()
    failures: Queue[Failure] = Queue()
    planner = made(plans.put, Threads(failures.put))
    with running(planner):
        planner.consider(situation("cart", "db", occupancy="no occupancy"))  # type: ignore[arg-type]
        assert failures.get(timeout=PATIENCE_S).thread == "planner"
        planner.consider(situation("ads", "web"))
        assert set(plans.get(timeout=PATIENCE_S).slots) == {"ads", "web"}
