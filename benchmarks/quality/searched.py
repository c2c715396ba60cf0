"""What a long search makes of the same graph: all newcomers of a round at once, around those who sit there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from benchmarks.quality.arrivals import Event, replicas_by_round
from benchmarks.quality.placers import Decided, View
from benchmarks.quality.scenario import Pair, Scenario
from benchmarks.yardstick.best_known import searched
from numakin.placement.decide.request import Kin
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.plan.partition import PartitionProblem
from numakin.placement.plan.problem import Workload, problem_of
from numakin.placement.state.occupancy import Occupancy
from numakin.placement.traffic.silent import with_silent

EFFORT = 120
"""Of the search: twice the annealings of a plan, each of three times its steps."""


class Searched(Decided):
    """Knows this graph, who comes in each round, and has all the time that it takes. Like numakin it moves nobody, and
    expects of workloads whose traffic was missed what others of their namespace exchange.
    """

    def __init__(self, scenario: Scenario, weights: Mapping[Pair, float], happening: Iterable[Event]) -> None:
        super().__init__({})
        self._weights = with_silent(weights, {service.name: "" for service in scenario.services})
        self._replicas = replicas_by_round(happening)
        self._round = -1
        self._slots: Mapping[str, list[int]] = {}

    def __call__(self, view: View) -> tuple[Occupancy, bool]:
        if view.event.round != self._round:
            self._round = view.event.round
            self._slots = self._searched(view)
        slots = self._slots[view.event.workload]
        kin = Kin(planned=NumaSet((1 << slots.pop()) if slots else 0))
        return self.placed(view, lambda _occupancy, _request: kin)

    def _searched(self, view: View) -> dict[str, list[int]]:
        """NUMA nodes of those who come, by workload."""
        problem = self._problem(view)
        best = searched(problem, EFFORT)
        slots: dict[str, list[int]] = {}
        nodes = list(view.scenario.machine.cpu_nodes)
        for service, row, pinned in zip(view.scenario.services, best.counts, problem.pinned, strict=True):
            slots[service.name] = [
                node for node, count, stay in zip(nodes, row[:-1], pinned, strict=True) for _ in range(count - stay)
            ]
        return slots

    def _problem(self, view: View) -> PartitionProblem:
        count = self._replicas[self._round]
        workloads = [Workload(service.name, service.demand, count[service.name]) for service in view.scenario.services]
        members = {key: reservation.workload for key, reservation in view.occupancy.reservations.items()}
        problem = problem_of(view.scenario.machine, view.occupancy, members, workloads, self._weights)
        return replace(problem, nearness=[[float(a == b) for b in range(problem.bins)] for a in range(problem.bins)])
