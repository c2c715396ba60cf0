"""Who decides: numakin, and what it is compared with. Each tells where a member that joins goes.

numakin's placers all go through the real `decide()` on the real `Occupancy`; they differ in what they are told. The
others choose among the NUMA nodes that the whole member fits, and where none is left take neighbours, outward by
distance, until it fits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from benchmarks.quality.arrivals import Event
from benchmarks.quality.scenario import Pair, Scenario, Service
from placement import optin
from placement.cpuset import NumaSet
from placement.decide import decide
from placement.known import Workload
from placement.occupancy import Occupancy, Seat
from placement.plan import AT_ONCE, EFFORT, Plan, make_plan
from placement.request import Kin, Request
from placement.topology import Machine

OPT_IN, _ = optin.parse("shop", {optin.GROUP_KEY: optin.AUTO})
"""All that the members' owners have written."""


FOLLOWS = 16
"""Joins that a thorough plan takes to follow a quick one."""


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
    """decide() with kin weights, and no plan. weights: between workloads; empty: nothing is known of anyone's kin."""

    def __init__(self, weights: Mapping[Pair, float]) -> None:
        self.peers: dict[str, dict[str, float]] = {}
        for (a, b), weight in weights.items():
            self.peers.setdefault(a, {})[b] = weight
            self.peers.setdefault(b, {})[a] = weight

    def __call__(self, view: View) -> tuple[Occupancy, bool]:
        return self.commit(view, Kin(self.kin_weights(view)))

    def kin_weights(self, view: View) -> dict[str, float]:
        peers = self.peers.get(view.event.workload, {})
        return {
            pod: peers[workload] / max(1, view.scenario.by_name[workload].replicas)
            for pod, workload in view.members.items()
            if workload in peers
        }

    def commit(self, view: View, kin: Kin) -> tuple[Occupancy, bool]:
        assert OPT_IN is not None
        pod, demand = view.event.pod, view.service.demand
        request = Request(pod, f"{pod}/main", "main", OPT_IN, demand, demand)
        decision = decide(view.scenario.machine, view.occupancy, request, kin)
        return decision.applied(view.occupancy, request), decision.fits


class Planned(Decided):
    """numakin as it runs: the learned graph, and a plan made ahead of the first arrival for the replicas of the earlier
    life.

    A thorough plan is made when a round begins, for the replicas that ran when the last one ended. A member that is one
    more than expected gets a quick one when it is seen, and a thorough one follows some joins later.
    """

    def __init__(self, scenario: Scenario, learned: Mapping[Pair, float], then: Scenario) -> None:
        super().__init__(learned)
        self._learned = learned
        self._scenario = scenario
        self._expected = Counter({one.name: one.replicas for one in then.services})
        self._last: Counter[str] = Counter()
        self._round = 0
        self._due: int | None = None
        self.plan = first_plan(scenario.machine, then, tuple(sorted(learned.items())))

    def __call__(self, view: View) -> tuple[Occupancy, bool]:
        self._look(view)
        weights = self.kin_weights(view)
        seat = self.plan.seat(
            view.scenario.machine,
            view.occupancy,
            view.members,
            workload=view.event.workload,
            demand=view.service.demand,
            weights=weights,
        )
        return self.commit(view, Kin(weights, planned=seat))

    def _look(self, view: View) -> None:
        present = Counter(view.members.values())
        present[view.event.workload] += 1
        if view.event.round != self._round:
            self._round, self._expected = view.event.round, self._last
            self._replan(view, EFFORT)
        elif self._due == 0:
            self._replan(view, EFFORT)
        if present[view.event.workload] > self._expected[view.event.workload]:
            self._expected |= present
            due = FOLLOWS if self._due is None else self._due
            self._replan(view, AT_ONCE)
            self._due = due
        if self._due is not None:
            self._due -= 1
        self._last = present

    def _replan(self, view: View, effort: int) -> None:
        services = self._scenario.by_name
        workloads = [Workload(name, services[name].demand, count) for name, count in self._expected.items() if count]
        machine = self._scenario.machine
        self.plan = make_plan(
            machine, view.occupancy, view.members, workloads, self._learned, previous=self.plan, effort=effort
        )
        self._due = None


@lru_cache(maxsize=2)
def first_plan(machine: Machine, then: Scenario, learned: tuple[tuple[Pair, float], ...]) -> Plan:
    """On the empty machine: the same for all orders in which the same members come."""
    workloads = [Workload(one.name, one.demand, one.replicas) for one in then.services if one.replicas]
    return make_plan(machine, Occupancy(), {}, workloads, dict(learned))


class Rule:
    """Takes the NUMA node that `choose` likes best among those that fit; `choose` is told each one's free milli-CPU."""

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
        seat = Seat(view.event.pod, view.event.pod, "", numa_nodes, demand)
        return view.occupancy.seated(seat), bool(numa_nodes)

    def _outward(self, view: View, free: dict[int, int]) -> NumaSet:
        machine = view.scenario.machine
        home = self._choose({one: max(0, milli) for one, milli in free.items()})
        chosen: list[int] = []
        for one in sorted(free, key=lambda other: (machine.distance(home, other), other)):
            chosen.append(one)
            if sum(max(0, free[other]) for other in chosen) >= view.service.demand.cpu_milli:
                break
        return NumaSet.of(chosen)


def lowest(room: dict[int, int]) -> int:
    return min(room)


def spread(room: dict[int, int]) -> int:
    return max(room, key=lambda one: (room[one], -one))


def at_random(seed: str) -> Callable[[dict[int, int]], int]:
    random = Random(seed)
    return lambda room: random.choice(sorted(room))
