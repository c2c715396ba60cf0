"""A group placed otherwise: by the planner, and by those who know nothing of traffic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.planning.group_plan import LeftOnNodes
from extender.state.node_view import NodeView
from extender.state.pods import Allocatable
from extender.views.page.baselines import MOST_KEPT, Compared, Comparisons, PlacedGroup, compared
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.topology import Machine
from numakin.placement.state.occupancy import Occupancy, Reservation
from tests.clock import Clock
from tests.extender.running import GIB, machine

CPU = 1000


def test_what_fits_on_one_numa_node_could_be_wholly_local() -> None:
    group = _group({"web": 2, "db": 2}, {("db", "web"): 10.0})
    assert compared(group, [_node("n1"), _node("n2")]).best == 1.0


def test_where_it_is_now_does_not_matter() -> None:
    group = _group({"web": 2, "db": 2}, {("db", "web"): 10.0})
    apart = [_node("n1", dict.fromkeys(group.workloads, "0")), _node("n2")]
    assert compared(group, apart) == compared(group, [_node("n1"), _node("n2")])


def test_others_keep_their_room() -> None:
    group = _group({"web": 2, "db": 2}, {("db", "web"): 10.0})
    full = {f"other-{number}": "0" for number in range(7)} | {f"more-{number}": "1" for number in range(7)}
    assert compared(group, [_node("n1", full)]).best < 1.0


def test_lowest_first_fills_one_numa_node_before_the_next_where_there_is_one_node() -> None:
    group = _group({"web": 2, "db": 2}, {("db", "web"): 10.0})
    others = compared(group, [_node("n1")])
    assert others.best == others.lowest_first == 1.0
    assert others.spread <= 0.5


def test_kube_scheduler_spreads_over_nodes() -> None:
    group = _group({"web": 1, "db": 1}, {("db", "web"): 10.0})
    assert compared(group, [_node("n1"), _node("n2")]) == Compared(best=1.0, lowest_first=0.0, spread=0.0)


def test_kube_scheduler_passes_over_nodes_that_are_too_small() -> None:
    """The emptiest one has no room for any of the group, and nobody ever takes it from the top."""
    group = _group({"web": 1, "db": 1}, {("db", "web"): 10.0}, cpu=4 * CPU)
    small = _node("small", of=machine(cpus=2))
    busy = _node("busy", {"other": "1"})
    others = compared(group, [small, busy])
    assert others == compared(group, [busy])
    assert others.lowest_first == 1.0


def test_replicas_of_one_workload_are_pairs_too() -> None:
    """Five on a NUMA node of four CPUs' room and one: 4 x 3 of 5 x 4 pairs."""
    group = _group({"worker": 5}, {("worker", "worker"): 1.0})
    nodes = [NodeView("n1", "s", "1", machine(cpus=4))]
    assert compared(group, nodes).best == pytest.approx(12 / 20)


def test_who_fits_nowhere_is_local_to_nobody() -> None:
    group = _group({"web": 1, "db": 1}, {("db", "web"): 10.0}, cpu=100 * CPU)
    assert compared(group, [_node("n1")]) == Compared(0.0, 0.0, 0.0)


def test_without_nodes_there_is_nothing_to_compare_with() -> None:
    assert compared(_group({"web": 2}, {("web", "web"): 1.0}), []) == Compared(0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("given", "overhead"),
    [
        ({"n1": Allocatable(3_000 + CPU - 1)}, 0),
        ({"n1": Allocatable(memory=3 * GIB + GIB - 1)}, 0),
        ({"n1": Allocatable(pods=3)}, 0),
        ({"n1": Allocatable(4_000)}, 1),
    ],
    ids=["CPU", "memory", "pods", "what they take beside their containers"],
)
def test_what_kube_scheduler_has_to_give_bounds_what_is_possible(given: LeftOnNodes, overhead: int):
    """Kubelets keep some of a machine for themselves. n1 has room for the four, and gives it to three."""
    group = replace(_group({"worker": 4}, {("worker", "worker"): 1.0}), overheads={"worker": (overhead, 0)})
    nodes = [_node("n1", dict.fromkeys(group.workloads, "0"))]
    assert compared(group, nodes).best == 1.0
    bounded = compared(group, nodes, given)
    assert bounded.best == bounded.lowest_first == pytest.approx(3 * 2 / (4 * 3))


class Slow:
    """A comparison that takes 2 s, and gives the time at which it was begun."""

    def __init__(self) -> None:
        self.clock = Clock(0.0)
        self.comparisons = Comparisons(self.clock)

    def asked(self, group: str, at: float) -> float:
        self.clock.now = at
        found = self.comparisons.of(group, self._made)
        assert found is not None
        return found.best

    def _made(self) -> Compared:
        began = self.clock.now
        self.clock.now += 2.0
        return Compared(began, 0.0, 0.0)


def test_readers_of_a_group_that_is_slow_to_compare_cost_a_tenth_of_a_cpu_however_often_it_changes() -> None:
    slow = Slow()
    assert [slow.asked("shop", at) for at in (0.0, 3.0, 19.0, 20.0, 21.0, 39.0, 40.0)] == [0, 0, 0, 20, 20, 20, 40]


def test_another_group_is_compared_when_it_is_asked_for() -> None:
    slow = Slow()
    assert [slow.asked(group, at) for group, at in (("shop", 0.0), ("bank", 5.0), ("shop", 8.0))] == [0, 5, 0]


def test_while_a_slow_one_is_made_nobody_waits_for_it() -> None:
    """A panel asks again each few seconds, and has it then."""
    comparisons, ours, theirs = Comparisons(Clock(0.0)), Compared(1.0, 0.0, 0.0), Compared(0.5, 0.0, 0.0)
    meanwhile = list[Compared | None]()

    def made() -> Compared:
        meanwhile.extend((comparisons.of("small", lambda: theirs), comparisons.of("large", lambda: theirs)))
        return ours

    assert comparisons.of("large", made) == ours
    assert meanwhile == [None, None]
    assert comparisons.of("small", lambda: theirs) == theirs


def test_of_the_groups_that_were_asked_for_the_last_are_kept() -> None:
    slow = Slow()
    for at in range(MOST_KEPT + 1):
        slow.asked(f"group-{at}", at / 100)
    assert slow.asked(f"group-{MOST_KEPT}", 3.0) < 3.0
    assert slow.asked("group-0", 3.0) == 3.0


def _group(replicas: dict[str, int], weights: dict[tuple[str, str], float], cpu: int = CPU) -> PlacedGroup:
    workloads = {f"{name}-{number}": name for name, count in replicas.items() for number in range(count)}
    return PlacedGroup(workloads, dict.fromkeys(replicas, Demand(cpu_milli=cpu, memory=GIB)), weights)


def _node(name: str, pods: dict[str, str] | None = None, of: Machine | None = None) -> NodeView:
    """pods: NUMA nodes by uid; each takes one CPU."""
    reservations = {
        uid: Reservation(uid, uid, "default/shop", NumaSet.parse(numa), Demand(cpu_milli=CPU, memory=GIB))
        for uid, numa in (pods or {}).items()
    }
    return NodeView(name, "s", "1", of or machine(), Occupancy(reservations=reservations))
