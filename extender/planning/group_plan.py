"""Where a group's workloads should live in the cluster, settled ahead of their arrival: `numakin.placement.plan.plan`
over the NUMA nodes of several machines.

Sending each newcomer to its heaviest peers would give early arrivals the wrong slots, and cut a group that no NUMA
node holds wherever one happened to be full. So the group's known traffic is partitioned over the NUMA nodes of a few
machines, those with members and those with most room, with a slot for each replica expected. Members that run stay
where they are: the plan is made around them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from math import inf
from operator import mul
from typing import NamedTuple

from extender.state.columns.cells import Cells
from extender.state.columns.free_room import NO_ROOM, CpuMemoryPods, NumaPlace
from extender.state.node_domains import NO_DOMAINS, NodeDomain, NodeDomains
from extender.state.node_view import NodeView
from extender.state.pods import NOT_SAID, Allocatable
from numakin.placement.plan.partition import PartitionProblem, PartitionState
from numakin.placement.plan.planner import kept_or_replaced
from numakin.placement.plan.problem import CpuAndMemory, Weights, Workload, placed_members, problem_of
from numakin.placement.plan.search import climbed, solve_briefly

MOST_BINS = 32
"""NUMA nodes that one plan considers."""

ROOMY = 1.5
"""How many times the room that the group asks for the machines should have that a plan considers."""

PAYS = 0.005
"""Share of the group's traffic that a new plan must gain over the old one's slots: nominations by these may be out."""


class Vacancy(NamedTuple):
    """So many replicas there in all, those that run there already included."""

    place: NumaPlace
    replicas: int


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """By workload its places, where it is drawn most first."""

    slots: Mapping[str, tuple[Vacancy, ...]] = field(default_factory=dict, hash=False)


LeftOnNodes = Mapping[str, Allocatable]
"""What kube-scheduler has left to give on each node; without a bound where that is not said."""

NO_BOUNDS: LeftOnNodes = {}

Overheads = Mapping[str, CpuAndMemory]
"""What one pod of each workload takes of its node beside its demand, and of no NUMA node in particular."""

NO_OVERHEADS: Overheads = {}


def make_plan(
    views: Sequence[NodeView],
    workloads: Sequence[Workload],
    weights: Weights,
    members: Mapping[str, str],
    kept: Mapping[NumaPlace, CpuMemoryPods],
    *,
    left: LeftOnNodes = NO_BOUNDS,
    overheads: Overheads = NO_OVERHEADS,
    previous: GroupPlan | None = None,
    unseen: str = "",
    domains: NodeDomains = NO_DOMAINS,
) -> GroupPlan:
    """views: of the machines to consider (`roomiest`). members: the workload of each reservation key. kept: the room
    that other groups' plans count on. left: by node, without that room. unseen: the group, where none of its traffic
    was seen yet: then it is not known how much of other groups is still to come, and their NUMA nodes count as far, as
    in `strangers`. domains: which machines are near each other. Same arguments, same plan.
    """
    parts = [problem_of(view.machine, view.occupancy, members, workloads, weights) for view in views]
    places = [NumaPlace(view.name, cpu_node) for view in views for cpu_node in view.machine.cpu_nodes]
    wide = _wide(views, members)
    between = _between([view.name for view in views], domains)
    problem = _side_by_side(parts, [workload.replicas - wide[workload.name] for workload in workloads], between)
    capacity = [_less(room, kept.get(at)) for room, at in zip(problem.capacity, places, strict=True)]
    problem = replace(problem, capacity=capacity)
    if unseen:
        problem = _away(
            problem, [_strange(view, cpu_node, unseen) for view in views for cpu_node in view.machine.cpu_nodes]
        )
    problem, places = _ordered(problem, places)
    problem = _bounded(problem, places, left)
    best = _best(problem, places, workloads, previous)
    beside = [overheads.get(workload.name, (0, 0)) for workload in workloads]
    while (narrowed := _narrowed(best, places, left, beside)) is not None:
        best = _best(narrowed, places, workloads, previous)
    return GroupPlan({workload.name: _ranked(best, kind, places) for kind, workload in enumerate(workloads)})


def _best(
    problem: PartitionProblem, places: Sequence[NumaPlace], workloads: Sequence[Workload], previous: GroupPlan | None
) -> PartitionState:
    best = solve_briefly(problem)
    if previous is None:
        return best
    counts = {name: dict(slots) for name, slots in previous.slots.items()}
    before = [[counts.get(workload.name, {}).get(at, 0) for at in places] for workload in workloads]
    return kept_or_replaced(climbed(PartitionState.of(problem, before)), best, PAYS)


def _bounded(problem: PartitionProblem, places: Sequence[NumaPlace], left: LeftOnNodes) -> PartitionProblem:
    """With no more CPU and memory on a node's NUMA nodes together than the node has left to give: what is over is taken
    from the last of them, as the group begins on the first.
    """
    rest = {node: (room.cpu, room.memory) for node, room in left.items()}
    capacity = []
    for bin_, place in enumerate(places):
        own, most = _of_who_stays(problem, bin_), rest.get(place.node, NOT_SAID[:2])
        given = [
            int(min(room - mine, bound)) for room, mine, bound in zip(problem.capacity[bin_], own, most, strict=True)
        ]
        rest[place.node] = most[0] - max(0, given[0]), most[1] - max(0, given[1])
        capacity.append((own[0] + given[0], own[1] + given[1]))
    return replace(problem, capacity=capacity)


def _narrowed(
    state: PartitionState, places: Sequence[NumaPlace], left: LeftOnNodes, beside: Sequence[CpuAndMemory]
) -> PartitionProblem | None:
    """With less room on nodes where more is planned than they have left to give; None: there are none. beside: what one
    replica takes beside its demand, by kind.
    """
    coming = {place.node: [0] * len(beside) for place in places}
    for kind, (counts, pinned) in enumerate(zip(state.counts, state.problem.pinned, strict=True)):
        for bin_, place in enumerate(places):
            coming[place.node][kind] += counts[bin_] - pinned[bin_]
    crowded = {node for node, counts in coming.items() if (n := sum(counts)) and n > left.get(node, NOT_SAID).pods}
    if crowded:
        return _closed(state.problem, places, crowded)
    narrow = dict[str, Allocatable]()
    for node, counts in coming.items() if any(map(any, beside)) else ():
        asks, more, room = _of_all(counts, state.problem.sizes), _of_all(counts, beside), left.get(node, NOT_SAID)
        bounds = [_share(*each) for each in zip(asks, more, room[:2], strict=True)]
        if min(bounds) < inf:
            narrow[node] = Allocatable(*bounds)
    return _bounded(state.problem, places, narrow) if narrow else None


def _of_all(counts: Sequence[int], each: Sequence[CpuAndMemory]) -> CpuAndMemory:
    return sum(map(mul, counts, (cpu for cpu, _ in each))), sum(map(mul, counts, (memory for _, memory in each)))


def _share(asks: int, beside: int, room: float) -> float:
    """How much of the room the pods may ask for, so that there is enough for what they take beside; without a bound
    where there is, negative where they ask for nothing.
    """
    if not beside or asks + beside <= room:
        return inf
    return room * asks // (asks + beside) if asks else -1


def _closed(problem: PartitionProblem, places: Sequence[NumaPlace], nodes: Collection[str]) -> PartitionProblem:
    """With no room on these nodes, not even for who asks for nothing."""
    capacity = [*problem.capacity]
    for bin_, place in enumerate(places):
        if place.node in nodes:
            cpu, memory = _of_who_stays(problem, bin_)
            capacity[bin_] = cpu - 1, memory - 1
    return replace(problem, capacity=capacity)


def _of_who_stays(problem: PartitionProblem, bin_: int) -> CpuAndMemory:
    """What the members ask for that run there."""
    there = [(row[bin_], size) for row, size in zip(problem.pinned, problem.sizes, strict=True)]
    return sum(count * size[0] for count, size in there), sum(count * size[1] for count, size in there)


def _strange(view: NodeView, numa_node: int, group: str) -> bool:
    """Whether other groups live there."""
    groups = view.occupancy.directory.grouped.get(1 << numa_node, ())
    return len(groups) > (group in groups)


def _away(problem: PartitionProblem, strange: Sequence[bool]) -> PartitionProblem:
    """With these NUMA nodes near to no other."""
    nearness = [
        [near if bin_ == other or not (strange[bin_] or strange[other]) else 0.0 for other, near in enumerate(row)]
        for bin_, row in enumerate(problem.nearness)
    ]
    return replace(problem, nearness=nearness)


def _ordered(problem: PartitionProblem, places: Sequence[NumaPlace]) -> tuple[PartitionProblem, list[NumaPlace]]:
    """With the NUMA nodes first where most members are, then those with most room: of equal ones the search takes the
    first, and groups of which little is known yet would otherwise all begin on the same NUMA node.
    """
    there = [sum(column) for column in zip(*problem.pinned, strict=True)]
    order = sorted(range(problem.bins), key=lambda bin_: (-there[bin_], -problem.capacity[bin_][0], bin_))
    ordered = replace(
        problem,
        capacity=[problem.capacity[bin_] for bin_ in order],
        nearness=[[problem.nearness[bin_][other] for other in order] for bin_ in order],
        pinned=[[row[bin_] for bin_ in order] for row in problem.pinned],
    )
    return ordered, [places[bin_] for bin_ in order]


def roomiest(
    views: Sequence[NodeView],
    here: Mapping[str, int],
    kept: Mapping[NumaPlace, CpuMemoryPods],
    need: int,
    *,
    domains: NodeDomains = NO_DOMAINS,
    left: LeftOnNodes = NO_BOUNDS,
) -> list[NodeView]:
    """The machines to consider: those where members are, the most first, then those near them, else those of the
    nearest domain that holds all where no machine does, and of these those with the largest room on one NUMA node,
    until together they have ROOMY times the need. here: members by node. need: millicores. left: as for
    `make_plan`.
    """
    free = {view.name: _free(view, kept, left.get(view.name, NOT_SAID)) for view in views}
    most = max(here, key=lambda name: (here[name], name), default="")
    beside = () if here else _holding({name: sum(row) for name, row in free.items()}, need, domains)

    def rank(view: NodeView) -> tuple[float | str, ...]:
        near = domains.nearness(most, view.name) if most else float(view.name in beside)
        return -here.get(view.name, 0), -near, -max(free[view.name], default=0.0), view.name

    ranked = sorted(views, key=rank)
    chosen: list[NodeView] = []
    bins, lacking = 0, ROOMY * need
    for view in ranked:
        bins += len(view.machine.cpu_nodes)
        if chosen and (bins > MOST_BINS or (lacking <= 0 and view.name not in here)):
            break
        chosen.append(view)
        lacking -= sum(free[view.name])
    return chosen


def _holding(free: Mapping[str, float], need: int, domains: NodeDomains) -> Collection[str]:
    """The nodes of the nearest domain that has room for all, the roomiest of those alike; none where one node has, or
    no domain.
    """
    if any(room >= need for room in free.values()):
        return ()
    for level in range(len(domains.keys)):
        of_domain: defaultdict[NodeDomain, list[str]] = defaultdict(list)
        for node in sorted(free):
            if (there := domains.of(node)) and (domain := there[level]) is not None:
                of_domain[domain].append(node)
        roomy = max(of_domain.values(), key=lambda nodes: sum(free[node] for node in nodes), default=[])
        if roomy and sum(free[node] for node in roomy) >= need:
            return roomy
    return ()


def _between(names: Sequence[str], domains: NodeDomains) -> list[list[float]]:
    """How near each machine is to each other one, as closeness between NUMA nodes has it."""
    return [[domains.nearness(one, other) if one != other else 0.0 for other in names] for one in names]


def _free(view: NodeView, kept: Mapping[NumaPlace, CpuMemoryPods], left: Allocatable) -> list[float]:
    """Thousandths of a CPU that no pod counts on, by NUMA node; none where pressure or the like makes it special, it is
    hot, or the node takes no more pods.
    """
    columns = Cells(*view.table) if view.table is not None else None
    if columns is None or columns.keeps.any() or left.pods < 1:
        return []
    free_there = columns.free * (columns.hot == 0)
    rows = zip(columns.numa_node.tolist(), free_there.tolist(), strict=True)
    rooms = (max(0.0, free - kept.get(NumaPlace(view.name, int(numa_node)), NO_ROOM)[0]) for numa_node, free in rows)
    return _up_to(max(0.0, left.cpu), sorted(rooms, reverse=True))


def _up_to(most: float, rooms: Sequence[float]) -> list[float]:
    """As much of them as there is in all."""
    given = list(accumulate(rooms, lambda sum_, room: min(most, sum_ + room), initial=0.0))
    return [after - before for before, after in pairwise(given)]


def _less(room: CpuAndMemory, kept: CpuMemoryPods | None) -> CpuAndMemory:
    return room if kept is None else (room[0] - int(kept[0]), room[1] - int(kept[1]))


def _wide(views: Sequence[NodeView], members: Mapping[str, str]) -> Counter[str]:
    """How many replicas of each workload are on several NUMA nodes, or in parts."""
    wide: Counter[str] = Counter()
    for view in views:
        wide.update(placed_members(view.occupancy, members).wide)
    return wide


def _side_by_side(
    parts: Sequence[PartitionProblem], counts: Sequence[int], between: Sequence[Sequence[float]]
) -> PartitionProblem:
    """One problem of several machines'. between: how near each is to each other one."""
    nearness = [
        [near for to, other in enumerate(parts) for near in (row if to == at else [between[at][to]] * other.bins)]
        for at, part in enumerate(parts)
        for row in part.nearness
    ]
    pinned = [[count for part in parts for count in part.pinned[kind]] for kind in range(len(counts))]
    return PartitionProblem(
        sizes=parts[0].sizes,
        counts=[max(count, sum(row)) for count, row in zip(counts, pinned, strict=True)],
        pulls=parts[0].pulls,
        capacity=[room for part in parts for room in part.capacity],
        nearness=nearness,
        pinned=pinned,
    )


def _ranked(state: PartitionState, kind: int, places: Sequence[NumaPlace]) -> tuple[Vacancy, ...]:
    drawn, counts = state.attraction[kind], state.counts[kind]
    taken = sorted((at for at in range(len(places)) if counts[at]), key=lambda at: (-drawn[at], at))
    return tuple(Vacancy(places[at], counts[at]) for at in taken)
