"""A life in which nothing is known before the first pod: what the node learns comes from the traffic of those that are
there already, window by window, by the observer's own path, moves included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from benchmarks.quality import measure
from benchmarks.quality.arrivals import Event
from benchmarks.quality.earlier import UNEVEN, sampled
from benchmarks.quality.placers import Decided, View, seen
from benchmarks.quality.scenario import Scenario
from enforcer.local.learned import Learned, kin_table, plan_to
from enforcer.observer import kinship
from enforcer.observer.kinship import WorkloadIndex
from enforcer.observer.moves.candidates import Rested
from enforcer.observer.moves.rounds import MoveRounds
from enforcer.observer.planning_thread import PlanningInput, planned
from enforcer.observer.traffic_loop import HALF_LIVES
from enforcer.settings.config import Config
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.optin import parsing
from numakin.placement.optin.options import Move, OptIn
from numakin.placement.plan.plan import Plan
from numakin.placement.plan.planner import AT_ONCE, EFFORT
from numakin.placement.state.occupancy import Occupancy
from numakin.placement.traffic.graph import Flow, TrafficTally
from numakin.wire import local_pb2 as local

WINDOW_S = 10.0
JOINS = 16
"""Pods that come in one window: what a kubelet starts in ten seconds when much is asked of it at once."""

LIFE_S = 600.0
"""From the first pod to the end of the row with moves."""

DUTY_CYCLE = 0.1
REST = 20
"""Windows between two thorough plans."""


class GroupAlone(Decided):
    """decide() with the group annotation, and nothing learned."""

    def __init__(self) -> None:
        super().__init__({})

    def opt_in(self, view: View) -> OptIn:
        namespace = view.event.workload.partition("/")[0]
        opt_in = parsing.parse(namespace, {parsing.GROUP_KEY: namespace})
        assert opt_in is not None
        return opt_in


class LearningNode(GroupAlone):
    """The observer and the hook of one node; one window goes by with every JOINS pods."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        super().__init__()
        self._scenario = scenario
        self._random = Random(f"{scenario.name}/life/{seed}")
        self._tally = TrafficTally(half_life=HALF_LIVES * WINDOW_S)
        self._workload_index = WorkloadIndex()
        self._rested = Rested()
        self._hook = Learned()
        self._plan: Plan | None = None
        self._uneven: dict[tuple[str, str], float] = {}
        self._joins = self._windows = 0
        self._rounds = MoveRounds(Config(), scenario.machine)

    def __call__(self, view: View) -> tuple[Occupancy, bool]:
        if self._joins == JOINS:
            self._joins = 0
            self.window(view.occupancy, view.members)
        self._joins += 1
        machine, kin = view.scenario.machine, self._hook.kin
        return self.placed(view, lambda occupancy, request: kin(machine, occupancy, request, None))

    def window(self, occupancy: Occupancy, members: Mapping[str, str]) -> PlanningInput:
        """Traffic of all that are there, then what the observer makes of it."""
        self._windows += 1
        now = self._windows * WINDOW_S
        self._tally.add(self._flows(members), now, scale=1 / DUTY_CYCLE)
        graph = self._tally.graph(now)
        self._workload_index = seen(self._workload_index, occupancy)
        talk, between = graph.weights(), graph.rolled_up(self._workload_index.workloads).weights()
        kin = kinship.learned(talk, between, self._workload_index)
        self._hook.weighed(local.KinTable.FromString(kin_table(kin).SerializeToString()))
        movable = self._rested.movable(occupancy, dict.fromkeys(members, Move.CPUS), kin)
        between = self._workload_index.with_silent(between)
        situation = PlanningInput(occupancy, self._workload_index.expected(between), between, talk, movable)
        effort = EFFORT if self._windows % REST == 1 else AT_ONCE
        self._plan = planned(self._scenario.machine, situation, self._plan, effort)
        self._hook.planned(local.Plan.FromString(plan_to(self._plan).SerializeToString()))
        return situation

    def moved(self, situation: PlanningInput) -> tuple[Occupancy, int]:
        """The occupancy after the moves of one window, and how many pods were moved. A step that does not fit is
        declined, as the hook does: what goes back may find its room taken.
        """
        offer = self._rounds.offer(situation)
        occupancy, count = situation.occupancy, 0
        for step in offer.steps:
            after = occupancy
            for way in step.ways:
                reservation = after.reservations[way.reservation]
                after = after.with_reservation(replace(reservation, numa_nodes=NumaSet.parse(way.target), parts=()))
            if not measure.oversubscription(self._scenario, after):
                occupancy, count = after, count + len(step.ways)
        return occupancy, count

    def rest_of_life(self, occupancy: Occupancy, members: Mapping[str, str]) -> tuple[Occupancy, int, int]:
        """Until LIFE_S have gone by: the occupancy then, how many moves there were, and the worst oversubscription."""
        count = worst = 0
        while self._windows * WINDOW_S < LIFE_S:
            occupancy, more = self.moved(self.window(occupancy, members))
            worst = max(worst, measure.oversubscription(self._scenario, occupancy))
            count += more
        return occupancy, count, worst

    def _flows(self, members: Mapping[str, str]) -> list[Flow]:
        """What the replicas of now exchange in a window; who is not there yet leaves its share to the others."""
        pods: dict[str, list[str]] = {}
        for pod, workload in members.items():
            pods.setdefault(workload, []).append(pod)
        flows = []
        for (a, b), rate in self._scenario.traffic.items():
            pairs = [(x, y) for x in pods.get(a, ()) for y in pods.get(b, ()) if x < y or a != b]
            for x, y in pairs:
                uneven = self._uneven.get((x, y))
                if uneven is None:
                    uneven = self._uneven[x, y] = self._random.lognormvariate(0, UNEVEN)
                messages = rate.messages * uneven / len(pairs)
                for source, target in ((x, y), (y, x)):
                    count = sampled(messages / 2 * WINDOW_S * DUTY_CYCLE, self._random)
                    if count:
                        size = int(count * rate.bytes / rate.messages)
                        flows.append(Flow(source, target, "tcp", size, count))
        return flows


def life(scenario: Scenario, happening: list[Event], seed: int) -> tuple[LearningNode, Occupancy, dict[str, str], int]:
    """The node, its occupancy and its members (workload by pod) when all have come, and the worst oversubscription."""
    node = LearningNode(scenario, seed)
    occupancy, members, worst = Occupancy().on(scenario.machine), dict[str, str](), 0
    for event in happening:
        occupancy, _ = node(View(scenario, occupancy, members, event))
        members[event.pod] = event.workload
        worst = max(worst, measure.oversubscription(scenario, occupancy))
    return node, occupancy, members, worst
