"""One scenario and one order of arrivals, placed by each placer in turn: what each of them makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from benchmarks.quality import measure
from benchmarks.quality.arrivals import ORDERS, Event, events, remaining, replicas_then
from benchmarks.quality.earlier import learned
from benchmarks.quality.placers import Decided, Planned, Rule, View, at_random, lowest, spread
from benchmarks.quality.scenario import Pair, Scenario, scenario
from benchmarks.yardstick.best_known import known
from numakin.placement.plan.problem import Workload
from numakin.placement.plan.rebalance import Board
from numakin.placement.state.occupancy import Occupancy

OURS, MOVED, GREEDY_LEARNED, GREEDY_TRUE = "numakin", "numakin, moves", "greedy, learned", "greedy, true edges"
FIT, SPREAD, LOWEST, RANDOM = "NUMA fit", "spread", "lowest first", "random"
PLACERS = (OURS, MOVED, GREEDY_TRUE, GREEDY_LEARNED, FIT, LOWEST, SPREAD, RANDOM)
"""numakin, moves: numakin, which then moves a tenth of the members. NUMA fit: decide() that knows of no kin."""

MOVES = 0.1
"""Share of the members that may be moved in the end, in the variant that moves."""

Placer = Callable[[View], tuple[Occupancy, bool]]


@dataclass(frozen=True, slots=True)
class Case:
    graph: str
    numa_nodes: int
    fill: float
    order: str
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one placer.

    locality: share of the true traffic that is local in the end. share: that, of the best known. wide: members over
    several NUMA nodes. oversubscribed: millicores, the worst that it ever was. unfit: members that found no room.
    moved: members that were moved. seconds: of all decisions and plans.
    """

    placer: str
    locality: float
    share: float
    wide: int
    oversubscribed: int
    unfit: int
    moved: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Result:
    """best: the best known locality of those that are there in the end; bound: what is proven to be out of reach."""

    case: Case
    members: int
    best: float
    bound: float
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class _End:
    occupancy: Occupancy
    members: dict[str, str]
    oversubscribed: int
    unfit: int
    seconds: float


def run(graph: str, numa_nodes: int, fill: float, seed: int = 0, orders: Sequence[str] = ORDERS) -> list[Result]:
    """All orders of arrival of one scenario; they share the plan that was made before the first arrival."""
    sample = scenario(graph, numa_nodes, fill, seed)
    return [_result(Case(graph, numa_nodes, fill, order, seed), sample) for order in orders]


def _result(case: Case, scenario: Scenario) -> Result:
    happening = events(scenario, case.order, case.seed)
    final = scenario.with_replicas(remaining(scenario, happening))
    best = known(final)
    then = scenario.with_replicas(replicas_then(scenario, case.order, case.seed))
    outcomes = list(_outcomes(scenario, happening, then))
    # A placer that does better than the best known replaces it.
    top = max(best.locality, *(outcome.locality for outcome in outcomes))
    shares = tuple(replace(outcome, share=outcome.locality / top if top else 1.0) for outcome in outcomes)
    return Result(case, sum(service.replicas for service in final.services), top, best.bound, shares)


def _outcomes(scenario: Scenario, happening: list[Event], then: Scenario) -> Iterator[Outcome]:
    taught = learned(then)
    for name in PLACERS:
        if name == MOVED:
            continue
        started = perf_counter()
        end = _live(scenario, happening, _placer(name, scenario, taught, then, happening))
        end = replace(end, seconds=perf_counter() - started)
        yield _outcome(name, scenario, end)
        if name == OURS:
            yield _moved(scenario, end, taught)


def _placer(
    name: str, scenario: Scenario, taught: Mapping[Pair, float], then: Scenario, happening: list[Event]
) -> Placer:
    if name == OURS:
        return Planned(scenario, taught, then, happening)
    decided = {GREEDY_TRUE: scenario.weights, GREEDY_LEARNED: taught, FIT: {}}
    if name in decided:
        return Decided(decided[name])
    return Rule({SPREAD: spread, LOWEST: lowest, RANDOM: at_random(scenario.name)}[name])


def _live(scenario: Scenario, happening: list[Event], place: Placer) -> _End:
    occupancy, members = Occupancy().on(scenario.machine), dict[str, str]()
    worst = unfit = 0
    for event in happening:
        if not event.joins:
            occupancy = occupancy.without_pod(event.pod)
            del members[event.pod]
            continue
        occupancy, fits = place(View(scenario, occupancy, members, event))
        members[event.pod] = event.workload
        unfit += not fits
        worst = max(worst, measure.oversubscription(scenario, occupancy))
    return _End(occupancy, members, worst, unfit, 0.0)


def _outcome(name: str, scenario: Scenario, end: _End, moved: int = 0) -> Outcome:
    local = measure.locality(scenario, end.occupancy, end.members)
    return Outcome(name, local, 0.0, measure.wide(end.occupancy), end.oversubscribed, end.unfit, moved, end.seconds)


def _moved(scenario: Scenario, end: _End, taught: Mapping[Pair, float]) -> Outcome:
    workloads = [Workload(service.name, service.demand, service.replicas) for service in scenario.services]
    board = Board.of(scenario.machine, end.occupancy, end.members, workloads, taught, movable=set(end.members))
    steps = board.steps(round(MOVES * len(end.members)))
    occupancy = end.occupancy
    ways = [way for step in steps for way in step]
    for move in ways:
        reservation = occupancy.reservations[move.reservation]
        occupancy = occupancy.with_reservation(replace(reservation, numa_nodes=move.target, parts=()))
    worst = max(end.oversubscribed, measure.oversubscription(scenario, occupancy))
    return _outcome(MOVED, scenario, replace(end, occupancy=occupancy, oversubscribed=worst), len(ways))
