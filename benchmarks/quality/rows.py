"""Lives of the same services, from the best known of to nothing known at all: what each reaches in the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from statistics import mean, median

from benchmarks.quality import measure
from benchmarks.quality.arrivals import events, remaining, replicas_then
from benchmarks.quality.cold import JOINS, GroupAlone, LearningNode, life
from benchmarks.quality.earlier import learned
from benchmarks.quality.expected import Expecting, Taught
from benchmarks.quality.placers import Planned, View
from benchmarks.quality.run import Case, Placer
from benchmarks.quality.scenario import Pair, Scenario, scenario
from benchmarks.quality.searched import Searched
from benchmarks.yardstick.best_known import known
from numakin.placement.state.occupancy import Occupancy

LEARNED, CHURN, CHURN_MOVING, NOISY, NOISY_CHURN, NOISY_MOVING = (
    "learned before", "after churn", "churn, moves", "noisy graph", "noisy, churn", "noisy, moves",
)  # fmt: skip
NOMINATED, GROUP, EXPECTED, AT_ONCE, LEARNING, MOVING = (
    "noisy, extender", "group alone", "written, waves", "written, at once", "learning", "learning, moves",
)  # fmt: skip
SEARCHED, SEARCHED_CHURN = "noisy, searched", "searched, churn"
ROWS = (
    LEARNED, CHURN, CHURN_MOVING, NOISY, SEARCHED, NOISY_CHURN, SEARCHED_CHURN, NOISY_MOVING, NOMINATED, GROUP,
    EXPECTED, AT_ONCE, LEARNING, MOVING,
)  # fmt: skip
"""learned before: an earlier life of the same services is known. after churn: that, then rounds of leaving and joining.
churn, moves: ten minutes after that. noisy graph: that life's graph, disturbed (`disturbed`). noisy, churn: the same
with rounds. noisy, searched; searched, churn: what a long search makes of each (`searched`), scored like all by the
true graph. noisy, moves: ten minutes after that. noisy, extender: the extender knows that graph, not the node, and
nominates; all pods are created at once, with the group annotation. group alone: nothing but the group annotation.
written, waves: that, and who will talk to whom by Services' names or the groups' objects (`expected`), without traffic;
JOINS pods are created at a time. written, at once: all are created before the first is scheduled, as by one `kubectl
apply`. learning: the group annotation, and the traffic of those that are there already. learning, moves: that, ten
minutes after the first pod."""

NOISE, MISSING = 0.5, 0.2
"""Sigma of the log-normal factor on each edge's weight, and the share of the edges that are not known."""

TARGETS: Mapping[str, tuple[float, float]] = {
    LEARNED: (0.985, 0.85), CHURN: (0.96, 0.0), CHURN_MOVING: (0.99, 0.90), NOISY: (0.93, 0.70),
    NOISY_CHURN: (0.93, 0.70), NOISY_MOVING: (0.99, 0.90), NOMINATED: (0.93, 0.70), GROUP: (0.64, 0.25),
    EXPECTED: (0.80, 0.0), AT_ONCE: (0.93, 0.0), LEARNING: (0.64, 0.25), MOVING: (0.98, 0.90),
}  # fmt: skip
"""Median and worst."""

YARDSTICKS: Mapping[str, tuple[str, float]] = {NOISY: (SEARCHED, 0.03), NOISY_CHURN: (SEARCHED_CHURN, 0.03)}
"""By row the one with the same knowledge, and by how much a life of it may be below the same life there."""


@dataclass(frozen=True, slots=True)
class Reached:
    """share: of the best known locality. moves: for each pod. oversubscribed: millicores, the worst ever."""

    row: str
    case: Case
    locality: float
    share: float
    moves: float
    oversubscribed: int


def disturbed(weights: Mapping[Pair, float], seed: str) -> dict[Pair, float]:
    """Weights with NOISE, a share of MISSING of them left out."""
    random = Random(f"{seed}/noise")
    return {
        pair: weight * random.lognormvariate(0, NOISE)
        for pair, weight in sorted(weights.items())
        if random.random() >= MISSING
    }


def reached(
    graph: str, numa_nodes: int, fill: float, seed: int, rows: tuple[str, ...] = ROWS, containers: int = 1
) -> list[Reached]:
    """Of one scenario, each row with its orders of arrival."""
    sample = replace(scenario(graph, numa_nodes, fill, seed), containers=containers)
    results = []
    for order in ("services", "random", "churn", "grown"):
        case = Case(graph, numa_nodes, fill, order, seed)
        ends = list(_ends(sample, case, rows))
        final = sample.with_replicas(remaining(sample, events(sample, order, seed)))
        best = max([known(final).locality, *(locality for _, locality, _, _ in ends)]) if ends else 1.0
        results += [Reached(row, case, local, local / best if best else 1.0, *rest) for row, local, *rest in ends]
    return results


def _ends(scenario: Scenario, case: Case, rows: tuple[str, ...]) -> Iterator[tuple[str, float, float, int]]:
    """(row, locality, moves for each pod, worst oversubscription)."""
    happening = events(scenario, case.order, case.seed)
    then = scenario.with_replicas(replicas_then(scenario, case.order, case.seed))
    taught = learned(then)
    noisy = disturbed(taught, f"{scenario.name}/{case.seed}")
    if case.order == "churn":
        yield from _churned(scenario, case, rows, taught, noisy)
        return
    if LEARNED in rows:
        yield LEARNED, *_live(scenario, case, Planned(scenario, taught, then, happening))
    if case.order == "grown":
        return
    if NOMINATED in rows:
        yield NOMINATED, *_live(scenario, case, Taught(scenario, happening, noisy))
    if NOISY in rows:
        yield NOISY, *_live(scenario, case, Planned(scenario, noisy, then, happening))
    if SEARCHED in rows:
        yield SEARCHED, *_live(scenario, case, Searched(scenario, noisy, happening))
    if GROUP in rows:
        yield GROUP, *_live(scenario, case, GroupAlone())
    if EXPECTED in rows:
        yield EXPECTED, *_live(scenario, case, Expecting(scenario, case.graph, happening, wave=JOINS))
    if AT_ONCE in rows:
        yield AT_ONCE, *_live(scenario, case, Expecting(scenario, case.graph, happening, wave=len(happening)))
    if LEARNING in rows or MOVING in rows:
        node, occupancy, members, worst = life(scenario, happening, case.seed)
        yield LEARNING, measure.locality(scenario, occupancy, members), 0.0, worst
        if MOVING in rows:
            yield MOVING, *_moved(scenario, node, occupancy, members, worst)


def _churned(
    scenario: Scenario, case: Case, rows: tuple[str, ...], taught: Mapping[Pair, float], noisy: Mapping[Pair, float]
) -> Iterator[tuple[str, float, float, int]]:
    happening = events(scenario, case.order, case.seed)
    if SEARCHED_CHURN in rows:
        yield SEARCHED_CHURN, *_live(scenario, case, Searched(scenario, noisy, happening))
    for staying, moving, known_before in ((NOISY_CHURN, NOISY_MOVING, noisy), (CHURN, CHURN_MOVING, taught)):
        if staying not in rows and moving not in rows:
            continue
        occupancy, members, worst = _lived(scenario, case, Planned(scenario, known_before, scenario, happening))
        yield staying, measure.locality(scenario, occupancy, members), 0.0, worst
        if moving in rows:
            yield moving, *_moved(scenario, LearningNode(scenario, case.seed), occupancy, members, worst)


def _moved(
    scenario: Scenario, node: LearningNode, occupancy: Occupancy, members: Mapping[str, str], worst: int
) -> tuple[float, float, int]:
    """Once the rest of the node's life has gone by."""
    end, count, over = node.rest_of_life(occupancy, members)
    return measure.locality(scenario, end, members), count / len(members), max(worst, over)


def _live(scenario: Scenario, case: Case, place: Placer) -> tuple[float, float, int]:
    occupancy, members, worst = _lived(scenario, case, place)
    return measure.locality(scenario, occupancy, members), 0.0, worst


def _lived(scenario: Scenario, case: Case, place: Placer) -> tuple[Occupancy, dict[str, str], int]:
    """The occupancy and the members when all have come and gone, and the worst oversubscription."""
    occupancy, members, worst = Occupancy().on(scenario.machine), dict[str, str](), 0
    for event in events(scenario, case.order, case.seed):
        if event.joins:
            occupancy, _ = place(View(scenario, occupancy, members, event))
            members[event.pod] = event.workload
            worst = max(worst, measure.oversubscription(scenario, occupancy))
        else:
            occupancy = occupancy.without_pod(event.pod)
            del members[event.pod]
    return occupancy, members, worst


def text(results: list[Reached], worst: int = 0) -> str:
    """A line for each row, with its worst case and its targets; then by NUMA nodes and by order, and the worst lives of
    each row by name.
    """
    lines = [f"{'':18}{'median':>7}{'worst':>7}{'target':>14}{'moves':>7}{'over':>6}{'runs':>6}   the worst"]
    for row in ROWS:
        ends = [result for result in results if result.row == row]
        if not ends:
            continue
        last = min(ends, key=lambda result: result.share)
        target = "{:8.3f}{:6.2f}".format(*TARGETS[row]) if row in TARGETS else f"{'':14}"
        lines.append(
            f"{row:18}{median(end.share for end in ends):7.3f}{last.share:7.3f}{target}"
            f"{max(end.moves for end in ends):7.2f}{max(end.oversubscribed for end in ends):6d}{len(ends):6d}   "
            f"{_named(last.case)}"
        )
    lines += _below(results)
    lines += _cut("NUMA nodes", results, lambda case: str(case.numa_nodes))
    lines += _cut("graph", results, lambda case: case.graph)
    lines += _cut("order", results, lambda case: case.order)
    for row in ROWS if worst else ():
        ends = sorted((result for result in results if result.row == row), key=lambda result: result.share)[:worst]
        lines += [f"{row:18}{end.share:7.3f}   locality {end.locality:.2f}   {_named(end.case)}" for end in ends]
    return "\n".join(lines)


def _below(results: list[Reached]) -> list[str]:
    """By how much the lives of a row are below those of its yardstick."""
    reached, lines = {(end.row, end.case): end.share for end in results}, list[str]()
    for row, (yardstick, target) in YARDSTICKS.items():
        below = {
            end.case: reached[yardstick, end.case] - end.share
            for end in results
            if end.row == row and (yardstick, end.case) in reached
        }
        if below:
            worst = max(below, key=lambda case: below[case])
            lines.append(
                f"{row} below {yardstick}: mean {mean(below.values()):.3f}, at most {below[worst]:.3f} "
                f"(target {target}), over the target {sum(loss > target for loss in below.values())} of {len(below)}"
                f"   {_named(worst)}"
            )
    return ["", *lines] if lines else []


def _cut(title: str, results: list[Reached], key: Callable[[Case], str]) -> list[str]:
    """Medians by row (down) and by the key's values (across)."""
    values = list(dict.fromkeys(key(result.case) for result in results))
    if len(values) < 2:
        return []
    lines = ["", f"by {title:15}" + "".join(f"{value[:11]:>12}" for value in values)]
    for row in ROWS:
        cells = [[end.share for end in results if end.row == row and key(end.case) == value] for value in values]
        if any(cells):
            lines.append(f"{row:18}" + "".join(f"{median(cell):12.3f}" if cell else f"{'':12}" for cell in cells))
    return lines


def _named(case: Case) -> str:
    return f"{case.graph}, {case.numa_nodes} NUMA nodes, {case.fill:.0%} full, order {case.order}"
