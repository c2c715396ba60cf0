"""Plans are made beside the watch, and always for what is known latest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from math import isnan
from queue import Queue

from enforcer.observer.planning_thread import Locality, PlanningInput, PlanningThread, local_share
from lab.standins.patience import PATIENCE_S, until
from numakin.placement.plan.plan import Plan
from numakin.placement.plan.problem import Workload
from numakin.placement.state.occupancy import Occupancy, Reservation
from numakin.process.threads import Failure, Threads
from tests import machines, supervised
from tests.numakin.placement.asking import demand, nodes


def made(received: Callable[[Plan], None], threads: Threads | None = None) -> PlanningThread:
    return PlanningThread(machines.KUNPENG_920, received, threads=threads or supervised.threads())


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


class Changing(list[Workload]):
    """While it is looked at, the machine becomes another one."""

    def __init__(self, names: str, change: Callable[[], None]) -> None:
        super().__init__(Workload(name, demand(2), 2) for name in names)
        self._change = change

    def __iter__(self) -> Iterator[Workload]:
        change, self._change = self._change, lambda: None
        change()
        return super().__iter__()


def test_no_plan_is_told_that_is_of_a_machine_of_before() -> None:
    """Its slots may be on NUMA nodes that are gone."""
    plans: Queue[Plan] = Queue()
    planner = made(plans.put)
    before = PlanningInput(Occupancy(), Changing("ab", lambda: planner.on(machines.SMALL)), {("a", "b"): 1.0})
    planner.consider(before)
    with running(planner):
        until(lambda: planner._waiting is None and planner._latest is None, "the machine has changed")
        planner.consider(situation("cart", "db"))
        assert set(plans.get(timeout=PATIENCE_S).slots) == {"cart", "db"}


def test_what_was_told_meanwhile_is_planned_for_once_and_as_it_is_latest() -> None:
    plans: Queue[Plan] = Queue()
    planner = made(plans.put)
    planner.consider(situation("cart", "db"))
    planner.consider(situation("ads", "web"))
    with running(planner):
        assert set(plans.get(timeout=PATIENCE_S).slots) == {"ads", "web"}
    assert plans.empty()


def test_other_numbers_of_replicas_are_planned_for_at_once_and_no_moves_are_looked_for_again() -> None:
    plans: Queue[Plan] = Queue()
    looked: list[PlanningInput] = []
    planner = PlanningThread(machines.KUNPENG_920, plans.put, looked.append, threads=supervised.threads())
    usual = situation("cart", "db")
    with running(planner):
        planner.recount(usual.workloads, Occupancy())
        planner.consider(usual)
        plans.get(timeout=PATIENCE_S)
        planner.recount(usual.workloads, Occupancy())
        planner.recount([Workload("cart", demand(2), 3), Workload("db", demand(2), 1)], Occupancy())
        plan = plans.get(timeout=PATIENCE_S)
        planner.consider(usual)
        plans.get(timeout=PATIENCE_S)
    assert {name: sum(slot.count for slot in slots) for name, slots in plan.slots.items()} == {"cart": 3, "db": 1}
    assert looked == [usual, usual]
    assert plans.empty(), "the same numbers need no other plan"


def test_a_window_that_waits_with_new_numbers_of_replicas_is_still_one_in_which_moves_are_looked_for() -> None:
    plans: Queue[Plan] = Queue()
    looked: Queue[PlanningInput] = Queue()
    planner = PlanningThread(machines.KUNPENG_920, plans.put, looked.put, threads=supervised.threads())
    planner.consider(situation("cart", "db"))
    planner.recount([Workload("cart", demand(2), 3)], Occupancy())
    with running(planner):
        assert [workload.replicas for workload in looked.get(timeout=PATIENCE_S).workloads] == [3]
    assert plans.qsize() == 1


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


def seated(**homes: str) -> Occupancy:
    occupancy = Occupancy()
    for pod, numa_nodes in homes.items():
        occupancy = occupancy.with_reservation(Reservation(pod, pod, "", nodes(numa_nodes), demand(1)))
    return occupancy


def test_the_local_share_is_of_the_weight_between_members_that_are_here() -> None:
    talk = {("a", "b"): 3.0, ("a", "c"): 1.0, ("a", "elsewhere"): 96.0}
    assert local_share(seated(a="0", b="0", c="1"), talk) == 0.75


def test_a_member_over_several_numa_nodes_is_local_to_nobody() -> None:
    assert local_share(seated(a="0-1", b="0-1"), {("a", "b"): 1.0}) == 0.0


def test_without_traffic_between_members_no_share_is_known() -> None:
    assert isnan(local_share(seated(a="0"), {("a", "elsewhere"): 1.0}))


def test_each_plan_says_how_local_it_is_now_and_would_be() -> None:
    plans: Queue[Plan] = Queue()
    planner = made(plans.put)
    with running(planner):
        planner.consider(replace(situation("cart", "db"), occupancy=seated(a="0", b="1"), talk={("a", "b"): 1.0}))
        plan = plans.get(timeout=PATIENCE_S)
    assert planner.locality == Locality(0.0, plan.locality)
