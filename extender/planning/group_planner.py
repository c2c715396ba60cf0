"""Who keeps the groups' plans: off kube-scheduler's path, as often as what traffic taught is made anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from extender.planning import awaited
from extender.planning.group_plan import (
    NO_BOUNDS,
    NO_OVERHEADS,
    GroupPlan,
    LeftOnNodes,
    Overheads,
    Vacancy,
    make_plan,
    roomiest,
)
from extender.state.admission import EVERY_NODE, Admission, NodeSet
from extender.state.columns.free_room import NO_ROOM, CpuMemoryPods, NumaPlace
from extender.state.group_spec import NOTHING, USUAL, GroupSpec, Specs
from extender.state.node_domains import NO_DOMAINS, NodeDomains
from extender.state.node_view import NodeView
from extender.state.pods import Allocatable
from extender.traffic.known import ClusterTraffic, Peers
from numakin.placement.model.demand import Demand, counted
from numakin.placement.model.node_terms import NO_TERMS, NodeTerms
from numakin.placement.optin.options import Pool
from numakin.placement.plan.expected import Peak
from numakin.placement.plan.problem import CpuAndMemory, Weights, Workload
from numakin.placement.traffic import silent
from numakin.placement.traffic.affinity import neighbours

AGAIN_S = 60.0
"""Seconds after which a plan whose members are still to come is checked again: rates and room change."""

MOST_PER_ROUND = 10
"""Plans made in one round, of some 15 ms each; the others wait for the next."""

NONE: Mapping[str, NodeTerms] = {}

Plans = Mapping[str, Sequence[Vacancy]]
"""By workload."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Of one workload: the replicas that are expected, and what one asks for."""

    peak: Peak
    demand: Demand

    @property
    def replicas(self) -> int:
        return self.peak.replicas


@dataclass(frozen=True)
class SlotHolders:
    """Who has a slot now. members: the workload of each reservation key; nodes: its node. By workload: demands of one
    replica, counts; places: counts by workload and place, of those that are on one NUMA node.
    """

    members: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    demands: dict[str, Demand] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    places: Counter[tuple[str, NumaPlace]] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Made:
    """A plan, when it was made (seconds), and of what."""

    plan: GroupPlan
    at: float
    of: tuple[object, ...]


class GroupPlanner:
    """One owner. Times are seconds of any clock that never runs backwards."""

    def __init__(self) -> None:
        self._expected: dict[str, Expected] = {}
        self._groups: dict[str, str] = {}
        self._plans: dict[str, Made] = {}
        self._awaited: frozenset[str] = frozenset()
        self._terms: dict[str, NodeTerms] = {}
        self._overheads: dict[str, CpuAndMemory] = {}
        self._where: dict[str, NodeSet] = {}

    def plans(
        self,
        known: ClusterTraffic,
        views: Sequence[NodeView],
        workloads: Mapping[str, str],
        specs: Specs,
        now: float,
        *,
        domains: NodeDomains = NO_DOMAINS,
        admission: Admission = EVERY_NODE,
        terms: Mapping[str, NodeTerms] = NONE,
        overheads: Overheads = NO_OVERHEADS,
        left: LeftOnNodes = NO_BOUNDS,
    ) -> Plans:
        """views: of the live nodes. workloads: by pod uid. domains: which nodes are near each other. terms: what a
        workload's pods say of nodes, and overheads: what each takes beside its demand, where there are any: others are
        taken to say what those before them did. left: also what plans count on.
        """
        placed = _placed(views, workloads)
        coming = awaited.awaited(known)
        peers = _with_silent(known, awaited.edges(known, coming))
        self._groups = {name: known.group_of(name) or coming.get(name) or self._groups.get(name, "") for name in peers}
        self._terms = {name: terms.get(name, self._terms.get(name, NO_TERMS)) for name in peers}
        self._overheads = {name: overheads.get(name, self._overheads.get(name, (0, 0))) for name in peers}
        self._where = {name: admission.where(said) for name, said in self._terms.items()}
        self._expect(known, peers, placed, now)
        self._await(coming.keys() & peers.keys(), now)
        wanted = {group: names for group, names in self._named().items() if self._comes(names, placed)}
        self._plans = {group: made for group, made in self._plans.items() if group in wanted}
        due = [group for group in wanted if self._due(wanted[group], self._plans.get(group), placed, now)]
        due.sort(key=lambda group: (self._plans[group].at if group in self._plans else -1.0, group))
        seen = {end for key in known.graph.edges for end in key[:2]}
        for group in due[:MOST_PER_ROUND] if views else ():
            names, before = wanted[group], self._plans.get(group)
            weights = _weights(names, peers, specs.get(group, NOTHING))
            plan = self._made(
                names, weights, views, placed,
                before=before.plan if before else None, unseen="" if seen & {*names} else group, domains=domains,
                left=left,
            )  # fmt: skip
            self._plans[group] = Made(plan, now, self._asked(names, placed))
        return {name: slots for made in self._plans.values() for name, slots in made.plan.slots.items()}

    def _expect(self, known: ClusterTraffic, names: Iterable[str], placed: SlotHolders, now: float) -> None:
        expected = {}
        for name in names:
            before = self._expected.get(name) if name not in self._awaited else None
            demand = _demand(name, placed, known)
            if before is None and demand is not None:
                before = Expected(Peak(0, now), demand)
            if before is not None:
                peak = before.peak.after(known.replicas.get(name, 0), now)
                expected[name] = Expected(peak, demand or before.demand)
        self._expected = expected

    def _await(self, names: Collection[str], now: float) -> None:
        """Those too that operators have named and that never had a pod."""
        demands = {name: expected.demand for name, expected in self._expected.items()}
        usual = awaited.usual(demands, self._groups)
        new = [name for name in sorted(names) if name not in demands and self._groups[name] in usual]
        self._expected |= {name: Expected(Peak(1, now), usual[self._groups[name]]) for name in new}
        self._awaited = frozenset(new)

    def _named(self) -> dict[str, list[str]]:
        """Workloads by group, of which so much is known that they can be planned."""
        groups: dict[str, list[str]] = {}
        for name in sorted(self._expected):
            if self._groups[name]:
                groups.setdefault(self._groups[name], []).append(name)
        return groups

    def _comes(self, names: list[str], placed: SlotHolders) -> bool:
        """Whether any pod of the group is still to come, of workloads that have had pods."""
        return any(self._expected[name].replicas > placed.counts[name] for name in names if name not in self._awaited)

    def _due(self, names: list[str], made: Made | None, placed: SlotHolders, now: float) -> bool:
        return made is None or now - made.at > AGAIN_S or made.of != self._asked(names, placed)

    def _asked(self, names: list[str], placed: SlotHolders) -> tuple[object, ...]:
        """What a plan depends on, where its members are too, but for rates and room, which change all the time."""
        expected = self._expected
        there: dict[str, list[tuple[NumaPlace, int]]] = {name: [] for name in names}
        for (name, place), count in placed.places.items():
            if name in there:
                there[name].append((place, count))
        return tuple(
            (
                name,
                expected[name].replicas,
                expected[name].demand,
                placed.counts[name],
                tuple(sorted(there[name])),
                self._where[name],
                self._overheads[name],
            )
            for name in names
        )

    def _made(
        self,
        names: list[str],
        weights: Weights,
        views: Sequence[NodeView],
        placed: SlotHolders,
        *,
        before: GroupPlan | None,
        unseen: str,
        domains: NodeDomains,
        left: LeftOnNodes,
    ) -> GroupPlan:
        expected = {name: self._expected[name] for name in names}
        members = {key: name for key, name in placed.members.items() if name in expected}
        here = Counter(placed.nodes[key] for key in members)
        overheads = {name: self._overheads[name] for name in names}
        need = sum((each.demand.expected_milli + overheads[name][0]) * each.replicas for name, each in expected.items())
        workloads = [Workload(name, workload.demand, workload.replicas) for name, workload in expected.items()]
        kept = self._kept(names, placed)
        left = self._without(left, names, placed)
        machines = roomiest(self._open(views, names, here), here, kept, need, domains=domains, left=left)
        return make_plan(
            machines, workloads, weights, members, kept,
            left=left, overheads=overheads, previous=before, unseen=unseen, domains=domains,
        )  # fmt: skip

    def _open(self, views: Sequence[NodeView], names: Collection[str], here: Collection[str]) -> list[NodeView]:
        """The nodes with members, and those where all of these workloads may go; where there are none, any of them."""
        wheres = {self._where[name] for name in names}
        common = {view.name for view in views if all(where.has(view.name) for where in wheres)}
        found = common or {view.name for view in views if any(where.has(view.name) for where in wheres)}
        return [view for view in views if view.name in found or view.name in here]

    def _kept(self, but: Collection[str], placed: SlotHolders) -> dict[NumaPlace, CpuMemoryPods]:
        """Room of the slots that the plans of all other groups' workloads keep for who is still to come."""
        kept: dict[NumaPlace, CpuMemoryPods] = {}
        for name, place, coming in self._still_to_come(but, placed):
            demand = self._expected[name].demand
            cpu, memory, pods = kept.get(place, NO_ROOM)
            kept[place] = cpu + coming * demand.expected_milli, memory + coming * demand.memory, pods + coming
        return kept

    def _without(self, left: LeftOnNodes, but: Collection[str], placed: SlotHolders) -> LeftOnNodes:
        """What the plans of all other groups' workloads do not count on."""
        rest = {**left}
        for name, place, coming in self._still_to_come(but, placed):
            demand, (cpu, memory) = self._expected[name].demand, self._overheads[name]
            if (whole := rest.get(place.node)) is not None:
                rest[place.node] = Allocatable(
                    whole.cpu - coming * (demand.expected_milli + cpu),
                    whole.memory - coming * (demand.memory + memory),
                    whole.pods - coming,
                )
        return rest

    def _still_to_come(self, but: Collection[str], placed: SlotHolders) -> Iterator[tuple[str, NumaPlace, int]]:
        """By the plans of all other groups: workloads, where, and how many more."""
        for made in self._plans.values():
            for name, slots in made.plan.slots.items():
                if name not in but and name in self._expected:
                    for place, replicas in slots:
                        yield name, place, max(0, replicas - placed.places[name, place])


def _demand(name: str, placed: SlotHolders, known: ClusterTraffic) -> Demand | None:
    """Of one replica, with what its pods use, which the node of one may not know yet."""
    demand = placed.demands.get(name) or known.demands.get(name)
    return counted(demand.promised, max(demand.used_milli, known.uses.get(name, 0))) if demand is not None else None


def _placed(views: Sequence[NodeView], workloads: Mapping[str, str]) -> SlotHolders:
    placed = SlotHolders()
    for view in views:
        if not view.index.member_pods:
            continue
        for pod in view.index.members:
            name = workloads.get(pod.pod)
            if name is not None and pod.pool is Pool.SHARED:
                for reservation in view.occupancy.members_of(pod.pod):
                    placed.members[reservation.key], placed.nodes[reservation.key] = name, view.name
                placed.demands[name] = pod.demand
                placed.counts[name] += 1
                if len(pod.numa_nodes) == 1:
                    placed.places[name, NumaPlace(view.name, pod.numa_nodes.lowest)] += 1
    return placed


def _with_silent(known: ClusterTraffic, awaited: Weights) -> Peers:
    """The peers of each workload, with what is expected of those that are awaited, and of those that name a group and
    were not seen to talk.
    """
    if known.named.keys() <= known.peers.keys() and not awaited:
        return known.peers
    weights = {**awaited} | {
        (name, peer): weight for name, row in known.peers.items() for peer, weight in row.items() if name <= peer
    }
    return neighbours(silent.with_silent(weights, known.named))


def _weights(names: Sequence[str], peers: Peers, spec: GroupSpec) -> dict[tuple[str, str], float]:
    """Of each pair of the group's workloads, times the priorities of both."""
    priority = {name: spec.priorities.get(name, USUAL) for name in names}
    return {
        (name, peer): weight * priority[name] * priority[peer]
        for name in names
        for peer, weight in peers[name].items()
        if peer in priority and name <= peer
    }
