"""The placers: numakin, and what it is compared with. Each chooses where a member that joins goes.

numakin's placers all go through the real `decide()` on the real `Occupancy`; they differ in their input. The
others choose among the NUMA nodes that the whole member fits, and where none is left take neighbours, outward by
distance, until it fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random

from benchmarks.quality.arrivals import Event, replicas_by_round
from benchmarks.quality.scenario import Pair, Scenario, Service
from enforcer.local.learned import Learned, kin_table, plan_to
from enforcer.observer import kinship
from enforcer.observer.kinship import GONE_S, WorkloadIndex
from enforcer.observer.planning_thread import PlanningInput, planned
from numakin.placement.decide.asked.whole_pod import as_placed
from numakin.placement.decide.decide import decide
from numakin.placement.decide.request import Kin, Request
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.topology import Machine
from numakin.placement.optin import parsing
from numakin.placement.optin.options import OptIn, Scope
from numakin.placement.plan.plan import Plan
from numakin.placement.plan.planner import AT_ONCE, EFFORT
from numakin.placement.state.load_index import shared_out
from numakin.placement.state.occupancy import Occupancy, Reservation
from numakin.wire import local_pb2 as local
from numakin.wire import report_pb2 as pb

OPT_IN = parsing.parse("shop", {parsing.GROUP_KEY: parsing.AUTO})
"""All that the members' owners have written."""


WINDOW = 32
"""Joins between two renewals of what the hook is handed: a burst, at the enforcer's ten seconds."""


@dataclass(frozen=True, slots=True)
class View:
    """What a placer sees when a member joins. members: workload by pod, of those that sit."""

    scenario: Scenario
    occupancy: Occupancy
    members: Mapping[str, str]
    event: Event

    @property
    def service(self) -> Service:
        return self.scenario.by_name[self.event.workload]


class Decided:
    """decide() with kin weights, and no plan. weights: between workloads; empty: no kin are known."""

    def __init__(self, weights: Mapping[Pair, float]) -> None:
        self.peers: dict[str, dict[str, float]] = {}
        for (a, b), weight in weights.items():
            self.peers.setdefault(a, {})[b] = weight
            self.peers.setdefault(b, {})[a] = weight

    def __call__(self, view: View) -> tuple[Occupancy, bool]:
        return self.placed(view, lambda _occupancy, _request: Kin(self.kin_weights(view)))

    def kin_weights(self, view: View) -> dict[str, float]:
        peers = self.peers.get(view.event.workload, {})
        return {
            pod: peers[workload] / max(1, view.scenario.by_name[workload].replicas)
            for pod, workload in view.members.items()
            if workload in peers
        }

    def opt_in(self, _view: View) -> OptIn:
        assert OPT_IN is not None
        return OPT_IN

    def requests(self, view: View) -> list[Request]:
        """Of each of its containers, in the order in which they start."""
        pod, whole, opt_in = view.event.pod, view.service.demand, self.opt_in(view)
        if view.scenario.containers == 1:
            return [Request(pod, f"{pod}/main", "main", opt_in, whole, whole, workload=view.event.workload)]
        opt_in = replace(opt_in, scope=Scope.CONTAINER)
        return [
            Request(pod, f"{pod}/{name}", name, opt_in, demand, whole, workload=view.event.workload)
            for name, demand in parts(whole, view.scenario.containers)
        ]

    def placed(self, view: View, kin_of: Callable[[Occupancy, Request], Kin]) -> tuple[Occupancy, bool]:
        """With all of its containers, and whether they fit."""
        machine, occupancy, fits = view.scenario.machine, view.occupancy, True
        for asked in self.requests(view):
            request = as_placed(machine, occupancy, asked)
            decision = decide(machine, occupancy, request, kin_of(occupancy, request))
            occupancy, fits = decision.applied(occupancy, request), fits and decision.fits
        return occupancy, fits


def parts(whole: Demand, containers: int) -> Iterator[tuple[str, Demand]]:
    """Containers by name, the largest first: of three, a half, a third and a sixth."""
    weights = range(containers, 0, -1)
    cpu, memory = shared_out(whole.cpu_milli, weights), shared_out(whole.memory, weights)
    for number in range(containers):
        yield f"container-{number}", Demand(cpu_milli=cpu[number], memory=memory[number], memory_limit=memory[number])


class Planned(Decided):
    """numakin as it runs on a node: the enforcer's own path from the learned graph to a newcomer's kin, but for the
    threads.

    The observer's tables come over the wire when a round begins, with a thorough plan, and every WINDOW joins, with one
    made at once, as when the thorough one rests. In between the hook follows them by itself. The first plan is for the
    replicas of the earlier life, which have just gone; between rounds so much time passes that only those are expected
    who ran when the last one ended. A round's pods are created and bound at once, faster than a node starts them: how
    many there are of each workload the extender has sent with their nominations when the second of them starts.
    """

    def __init__(
        self, scenario: Scenario, learned: Mapping[Pair, float], then: Scenario, happening: Iterable[Event]
    ) -> None:
        super().__init__({})
        self._between = learned
        self._replicas = replicas_by_round(happening)
        self._workload_index = _gone(then)
        self._hook = Learned()
        self._round = self._joins = 0
        self._ended = Occupancy().on(scenario.machine)
        self._plan = first_plan(scenario.machine, then, tuple(sorted(learned.items())))
        self._hand_over()

    def __call__(self, view: View) -> tuple[Occupancy, bool]:
        if view.event.round != self._round:
            for _ in range(int(GONE_S / self._workload_index.window_s)):
                self._workload_index = seen(self._workload_index, self._ended)
            self._learn(view, EFFORT)
        elif self._joins == WINDOW:
            self._learn(view, AT_ONCE)
        elif self._joins == 1:
            self._recount(view)
        self._joins += 1
        machine, kin = view.scenario.machine, self._hook.kin
        self._ended, fits = self.placed(view, lambda occupancy, request: kin(machine, occupancy, request, None))
        return self._ended, fits

    def _learn(self, view: View, effort: int) -> None:
        self._round, self._joins = view.event.round, 0
        self._workload_index = seen(self._workload_index, view.occupancy)
        self._make_plan(view, effort)

    def _recount(self, view: View) -> None:
        """By the nominations of the round's pods, which are bound by now."""
        there = self._replicas[view.event.round]
        message = pb.Expect(replicas=[{"workload": name, "bound": count} for name, count in there.items()])
        counts = pb.Expect.FromString(message.SerializeToString()).replicas
        self._workload_index = self._workload_index.counted(counts)
        self._make_plan(view, AT_ONCE)

    def _make_plan(self, view: View, effort: int) -> None:
        between = self._workload_index.with_silent(self._between)
        situation = PlanningInput(view.occupancy, self._workload_index.expected(between), between)
        self._plan = planned(view.scenario.machine, situation, self._plan, effort)
        self._hand_over()

    def _hand_over(self) -> None:
        weights = kin_table(kinship.learned({}, self._between, self._workload_index)).SerializeToString()
        self._hook.weighed(local.KinTable.FromString(weights))
        self._hook.planned(local.Plan.FromString(plan_to(self._plan).SerializeToString()))


def _gone(then: Scenario) -> WorkloadIndex:
    """What is left of the earlier life: its members, how many there were, and their requests."""
    pods = [
        (f"then/{service.name}#{number}", service) for service in then.services for number in range(service.replicas)
    ]
    reservations = {
        pod: Reservation(pod, pod, "", NumaSet(1), service.demand, workload=service.name) for pod, service in pods
    }
    return seen(WorkloadIndex(), Occupancy(reservations)).after(())


def seen(workload_index: WorkloadIndex, occupancy: Occupancy) -> WorkloadIndex:
    """A window later, with all who sit there."""
    containers = [
        local.LocalContainer(pod=reservation.pod, workload=reservation.workload, opted_in=True)
        for reservation in occupancy.reservations.values()
    ]
    return workload_index.after(containers).over_a_window(occupancy)


@lru_cache(maxsize=2)
def first_plan(machine: Machine, then: Scenario, learned: tuple[tuple[Pair, float], ...]) -> Plan:
    """On the empty machine: the same for all orders in which the same members come."""
    workload_index = _gone(then)
    between = workload_index.with_silent(dict(learned))
    return planned(
        machine, PlanningInput(Occupancy().on(machine), workload_index.expected(between), between), None, EFFORT
    )


class Rule:
    """Takes the NUMA node that `choose` likes best among those that fit; `choose` gets the free millicores of each."""

    def __init__(self, choose: Callable[[dict[int, int]], int]) -> None:
        self._choose = choose

    def __call__(self, view: View) -> tuple[Occupancy, bool]:
        machine, demand = view.scenario.machine, view.service.demand
        cpu, memory = view.occupancy.cpu_load(machine), view.occupancy.memory_load(machine)
        free = {node.id: len(node.cpus) * 1000 - int(cpu[node.id]) for node in machine.numa_nodes}
        room = {
            node.id: free[node.id]
            for node in machine.numa_nodes
            if free[node.id] >= demand.cpu_milli and node.memory - memory[node.id] >= demand.memory
        }
        numa_nodes = NumaSet.of((self._choose(room),)) if room else self._outward(view, free)
        reservation = Reservation(view.event.pod, view.event.pod, "", numa_nodes, demand)
        return view.occupancy.with_reservation(reservation), bool(numa_nodes)

    def _outward(self, view: View, free: dict[int, int]) -> NumaSet:
        machine = view.scenario.machine
        home = self._choose({numa_node: max(0, milli) for numa_node, milli in free.items()})
        chosen: list[int] = []
        for numa_node in sorted(free, key=lambda other: (machine.distance(home, other), other)):
            chosen.append(numa_node)
            if sum(max(0, free[other]) for other in chosen) >= view.service.demand.cpu_milli:
                break
        return NumaSet.of(chosen)


def lowest(room: dict[int, int]) -> int:
    return min(room)


def spread(room: dict[int, int]) -> int:
    return max(room, key=lambda numa_node: (room[numa_node], -numa_node))


def at_random(seed: str) -> Callable[[dict[int, int]], int]:
    random = Random(seed)
    return lambda room: random.choice(sorted(room))
