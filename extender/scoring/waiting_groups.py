"""The groups whose pods wait for a node, as they are packed: what is taken of the cluster under its lock, and planned
outside of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

from extender.planning.allowed import AllowedNodes
from extender.planning.coming import Coming, Pod
from extender.planning.group_packing import Pulls
from extender.planning.group_planner import Plans
from extender.planning.packing import pack
from extender.planning.pieces import Cell, Piece, Placeable, in_turn, into_cells, pieces
from extender.scoring.node_table import NodeTable
from extender.scoring.renewals import Renewal, renewal_of
from extender.scoring.waiting_members import WaitingPod, waiting_pod
from extender.settings import Settings
from extender.state.admission import ANYWHERE, NOWHERE, Admission
from extender.state.columns.free_room import NO_ROOM, CpuMemoryPods, FreeRoom, NumaPlace
from extender.state.node_domains import NodeDomains
from extender.state.pod_terms import HOST, NO_KIND, NO_POD_TERMS, PodKind
from extender.state.pods import PodRow
from extender.state.told_groups import ToldReplicas, ToldSizes
from numakin.placement.model.demand import Demand, counted
from numakin.placement.model.live_usage import Devices

MOST_LATER = 500
"""Replicas of one group that are not created yet and that are planned for: planning goes through each."""

AGAIN_S = 1.0
"""Between two plans while pods wait and none comes: nodes change, and room is given back."""

NO_RENEWAL = Renewal()


class PlannedGroups(NamedTuple):
    """places: by group, of each pod. to_come: by group and workload, of those that are not created yet."""

    places: Mapping[str, Mapping[str, NumaPlace]]
    to_come: Mapping[str, Mapping[str, Sequence[NumaPlace]]]

    def followed(self, before: Mapping[str, NumaPlace], now: Callable[[str], NumaPlace | None]) -> PlannedGroups:
        """Without the plans of groups of which a pod was placed elsewhere meanwhile: these are planned as before until
        the next plan, which counts that pod. before: by uid. now: where a pod is.
        """
        left = {
            group
            for group, places in self.places.items()
            if any((here := now(uid)) is not None and here != place for uid, place in places.items())
        }
        if not left:
            return self
        still = {
            group: {uid: before[uid] for uid in self.places[group] if uid in before and now(uid) is None}
            for group in left
        }
        to_come = {group: places for group, places in self.to_come.items() if group not in left}
        return PlannedGroups({**self.places, **still}, to_come)


@dataclass(frozen=True)
class WaitingGroups:
    """pods: that wait, by uid. assumed: the uids of those that hold room of their own, or to whom some is promised.
    tried: where those would be whose gangs are being tried, by uid: for their own group they are there.
    members: by group how many are on each NUMA node that they will stay on, and totals: in all. kinds: of those of
    which some say something of others, what the members on each node do. leaving: by uid, what those ask for that
    are on cordoned nodes, and about to come again. renewals: of groups some of whose pods are being replaced. nodes:
    where each group has members, at all. beside: of these, where the only ones have devices and are on several NUMA
    nodes. sizes: of groups, as their pods or others say. to_come: of groups, what is not created yet. room: what is
    free, with what is held for groups. before: where pods were planned last; later_before: by group and workload,
    where those were that were not created yet. settling: groups of which more may be about to be replaced, for so many
    seconds. barred: as `GroupHolds` has it, of the groups to plan. grow: of which more was created a moment ago.
    """

    pods: Mapping[str, WaitingPod]
    assumed: Collection[str]
    tried: Mapping[str, NumaPlace]
    members: Mapping[str, Counter[NumaPlace]]
    kinds: Mapping[str, Mapping[str, Sequence[PodKind]]]
    totals: Mapping[str, int]
    nodes: Mapping[str, frozenset[str]]
    beside: Mapping[str, frozenset[str]]
    leaving: Mapping[str, Mapping[str, WaitingPod]]
    renewals: Mapping[str, Renewal]
    sizes: Mapping[str, int]
    to_come: Mapping[str, Sequence[ToldReplicas]]
    settling: Mapping[str, float]
    barred: Mapping[str, frozenset[str]]
    grow: Collection[str]
    room: FreeRoom | None
    before: Mapping[str, NumaPlace]
    later_before: Mapping[str, Mapping[str, Sequence[NumaPlace]]]
    uses: Mapping[str, int]
    pulls: Pulls
    plans: Plans
    domains: NodeDomains
    admission: Admission

    @classmethod
    def of(
        cls,
        nodes: NodeTable,
        now: float,
        settings: Settings,
        rows: Mapping[str, PodRow],
    ) -> WaitingGroups:
        """Under the cluster's lock. rows: of the pods that there are, by uid."""
        nodes.show("")
        nodes.to_come.forget_former(now)
        nodes.to_come.templates.forget_announced(now)
        holds, pods = nodes.group_holds, nodes.waiting.pods()
        groups = holds.moving(
            nodes.waiting.changes, nodes.waiting.created, now, settings.group_hold,
            lambda group: nodes.to_come.renews(group) or any(True for _ in nodes.to_come.of(group)),
        )  # fmt: skip
        held: dict[NumaPlace, Demand] = {}

        def settled(uid: str) -> bool:
            return nodes.assumed(uid) or holds.promised(uid) is not None

        for group in holds.groups():
            for place, demand in holds.held(group, settled).items():
                held[place] = held.get(place, Demand()) + demand
        tried = {uid: place for uid, place in nodes.tried().items() if uid in pods and not pods[uid].holds_nothing}
        apart = {pod.group for pod in pods.values() if pod.kind.said != NO_POD_TERMS}
        to_come = {group: list(nodes.to_come.of(group)) for group in groups}
        leaving = {group: _leaving(nodes, group, rows) for group in groups}
        asked = chain(
            (pod.demand for pod in chain(pods.values(), *(gone.values() for gone in leaving.values()))),
            (each.demand for each in chain.from_iterable(to_come.values())),
        )
        sizes = {size for demand in asked for size in demand.hugepages}
        resources = _resources(pods.values(), chain.from_iterable(to_come.values()), leaving)
        renewals = _renewals(nodes, _renewed(nodes, pods, groups) - apart, rows)
        members = {group: nodes.members_by_place(group) for group in groups}
        for group, renewal in renewals.items():
            members[group] -= renewal.going
        totals = {group: nodes.groups.total(group) for group in groups}
        for uid, place in tried.items():
            if (group := pods[uid].group) in members:
                members[group][place] += 1
                totals[group] += 1
        return cls(
            pods=pods,
            assumed={uid for uid in pods if settled(uid)},
            tried=tried,
            members=members,
            totals=totals,
            kinds={group: _kinds(nodes, group, tried, rows) for group in groups & apart},
            nodes={group: frozenset(nodes.groups.nodes(group)) for group in groups},
            beside={group: _beside(nodes, group, members[group], rows) for group in groups},
            leaving=leaving,
            renewals=renewals,
            sizes=_sizes(pods.values(), nodes.told),
            to_come=to_come,
            grow=holds.growing(now),
            settling={group: left for group in groups if (left := nodes.to_come.settles_at(group) - now) > 0},
            barred={group: holds.barred(group) for group in groups},
            room=nodes.free_room(
                now,
                settings.report_timeout,
                nodes.cordoned,
                held=held,
                for_pods=Counter(holds.nodes_of(settled)),
                sizes=sizes,
                resources=resources,
            )
            if groups
            else None,
            before={
                uid: planned
                for uid, pod in pods.items()
                if pod.group not in holds.unsettled and (planned := holds.place(uid)) is not None
            },
            later_before={
                group: holds.places_to_come(group) if group not in holds.unsettled else {} for group in groups
            },
            uses=nodes.known.uses,
            pulls=nodes.known.peers,
            plans=nodes.plans,
            domains=nodes.domains,
            admission=nodes.admission,
        )

    @property
    def again_s(self) -> float | None:
        """When the next plan is due; None: nothing waits."""
        return min((AGAIN_S, *self.settling.values())) if self.pods else None

    @property
    def demands(self) -> dict[str, Demand]:
        return {uid: pod.expected(self.uses) for uid, pod in self.pods.items()}

    @property
    def devices(self) -> dict[str, Devices]:
        """Of those that ask for any."""
        return {uid: pod.devices for uid, pod in self.pods.items() if pod.devices}

    @property
    def homes(self) -> dict[str, set[NumaPlace]]:
        """Where each group has members, those included that are about to be replaced."""
        return {group: {*here, *self.renewals.get(group, NO_RENEWAL).going} for group, here in self.members.items()}

    @property
    def priorities(self) -> dict[str, int]:
        highest: dict[str, int] = {}
        for pod in self.pods.values():
            highest[pod.group] = max(pod.priority, highest.get(pod.group, pod.priority))
        return highest

    def planned(self) -> PlannedGroups:
        """Of all groups of which something is to be planned."""
        if self.room is None:
            return PlannedGroups({}, {})
        comings = self._comings()
        before = {**self.before, **dict(self._later_before(comings))}
        each = chain.from_iterable(comings.values())
        tried = [
            (self._pod(uid, self.pods[uid]), place)
            for uid, place in self.tried.items()
            if self.pods[uid].group in self.members
        ]
        packed = pack(each, self.room, self.pulls, self.plans, domains=self.domains, before=before, tried=tried)
        places: dict[str, dict[str, NumaPlace]] = {group: {} for group in self.members}
        for uid, place in self.tried.items():
            if (group := self.pods[uid].group) in places:
                places[group][uid] = place
        to_come: dict[str, dict[str, list[NumaPlace]]] = {}
        for group, there in comings.items():
            found = {uid: place for coming in there for uid, place in packed.get(coming.group, {}).items()}
            planned = {pod.uid: found.get(pod.uid) for coming in there for pod in coming.pods}
            if group in self.kinds:
                planned = self._allowed(group, planned)
            mine = self._of_whole_gangs({**places[group], **planned})
            if self._with_members(group, mine or found, there) and self._with_devices(group, mine, there):
                places[group] = mine
                to_come[group] = _by_workload(chain.from_iterable(coming.later for coming in there), found)
        return PlannedGroups(places, to_come)

    def _later_before(self, comings: Mapping[str, Sequence[Coming]]) -> Iterator[tuple[str, NumaPlace]]:
        """Where those were planned last that are not created yet: whichever of their workload."""
        for group, there in comings.items():
            places = {workload: iter(last) for workload, last in self.later_before[group].items()}
            for pod in chain.from_iterable(coming.later for coming in there):
                if (place := next(places.get(pod.workload, iter(())), None)) is not None:
                    yield pod.uid, place

    def _of_whole_gangs(self, found: Mapping[str, NumaPlace | None]) -> dict[str, NumaPlace]:
        """Those that have a place; of a gang all, or none, as they are bound."""
        lacking = {self.pods[uid].gang for uid, place in found.items() if place is None} - {""}
        return {uid: place for uid, place in found.items() if place is not None and self.pods[uid].gang not in lacking}

    def _with_members(self, group: str, pods: Mapping[str, NumaPlace], comings: Sequence[Coming]) -> bool:
        """Whether any pod is planned on a node with members of its group, or it has none where any may go: else these
        have no room for now, and what draws the pods is weighed as each is asked about.
        """
        wheres = {pod.where for coming in comings for pod in coming.all} or {ANYWHERE}
        there = {place.node for place in self.members[group]} | self.beside[group]
        nodes = {node for node in there if any(where.has(node) for where in wheres)}
        return not nodes or any(place.node in nodes for place in pods.values())

    def _with_devices(self, group: str, pods: Mapping[str, NumaPlace], comings: Sequence[Coming]) -> bool:
        """Whether any pod that asks for devices is planned, or none asks for some, or there are members: else it is not
        known where these will be, and the others go by what each node has.
        """
        asking = [pod.uid for coming in comings for pod in coming.pods if pod.devices]
        return not asking or bool(self.members[group]) or any(uid in pods for uid in asking)

    def _comings(self) -> dict[str, list[Coming]]:
        """By group, the pieces that may be together."""
        by_group: dict[str, list[tuple[str, WaitingPod]]] = {group: [] for group in self.members}
        for uid, pod in self.pods.items():
            if pod.group in by_group:
                by_group[pod.group].append((uid, pod))
        comings = {group: self._coming(group, pods) for group, pods in by_group.items()}
        taken: dict[frozenset[str], CpuMemoryPods] = {}
        return {
            group: [*self._pieces(coming, taken)] if group in self.kinds else [coming]
            for group, coming in comings.items()
            if coming is not None
        }

    def _pieces(self, coming: Coming, taken: dict[frozenset[str], CpuMemoryPods]) -> Iterator[Coming]:
        """Each on nodes of its own. What is not created yet is not planned beside them. taken: of what is free on nodes
        that are alike, by other groups.
        """
        alone = replace(coming, pods=self._in_turn(coming.pods), beyond=NO_ROOM, beyond_devices=(), later=())
        for number, part in enumerate(self._in_cells(alone, taken)):
            yield from self._on_hosts(replace(part, group=f"{coming.group} {number}"), self.kinds[coming.group])

    def _in_turn(self, pods: Iterable[Pod]) -> list[Pod]:
        """As kube-scheduler takes them."""
        return sorted(pods, key=lambda pod: -self.pods[pod.uid].priority)

    def _in_cells(self, coming: Coming, taken: dict[frozenset[str], CpuMemoryPods]) -> Iterator[Coming]:
        """By the zones, or whatever else they are kept apart by beside hosts; the last may go nowhere."""
        there, pods = self.kinds[coming.group], {pod.uid: pod for pod in coming.pods}
        said = {self.pods[uid].kind for uid in pods} | {kind for kinds in there.values() for kind in kinds}
        keys = frozenset[str]().union(*(kind.keys for kind in said)) - {HOST}
        if not keys:
            yield coming
            return
        domains = self.admission.domains
        on_nodes = Counter({node: len(kinds) for node, kinds in there.items()})
        cells = [
            Cell(nodes, sum(on_nodes[node] for node in nodes & on_nodes.keys()), taken.get(nodes, NO_ROOM))
            for nodes in domains.alike(keys)
        ]
        placeable = {uid: self._placeable(pod) for uid, pod in pods.items()}
        into_cells(placeable, cells, AllowedNodes(domains, there), self._free)
        left = dict(pods)
        for cell in cells:
            taken[cell.nodes] = cell.taken
            if cell.uids:
                yield self._within(coming, [left.pop(uid) for uid in cell.uids], cell.nodes)
        if left:
            yield replace(coming, pods=[pod._replace(where=NOWHERE) for pod in left.values()], here={})

    def _placeable(self, pod: Pod) -> Placeable:
        before = self.before.get(pod.uid)
        return Placeable(self.pods[pod.uid].kind, pod.asks, pod.where, before.node if before is not None else "")

    def _within(self, coming: Coming, pods: Sequence[Pod], nodes: frozenset[str]) -> Coming:
        wheres = {where: where.among(nodes) for where in {pod.where for pod in pods}}
        return replace(
            coming,
            pods=[pod._replace(where=wheres[pod.where]) for pod in pods],
            here={place: count for place, count in coming.here.items() if place.node in nodes},
        )

    def _on_hosts(self, coming: Coming, members: Mapping[str, Sequence[PodKind]]) -> Iterator[Coming]:
        """The pieces that may be on one node. members: of the group, by node."""
        pods = {pod.uid: pod for pod in coming.pods}
        there = {node: kinds for node, kinds in members.items() if any(pod.where.has(node) for pod in coming.pods)}
        kinds = {uid: self.pods[uid].kind for uid in pods}
        if not any(HOST in kind.keys for kind in (*kinds.values(), *chain.from_iterable(there.values()))):
            yield coming
            return
        found = pieces(kinds, there)
        names = [f"{coming.group} {number}" for number in range(len(found))]
        homes = {piece.node for piece in found} - {""}
        for name, piece in zip(names, found, strict=True):
            yield replace(
                coming,
                group=name,
                pods=[pods[uid] for uid in piece.uids],
                here={place: count for place, count in coming.here.items() if place.node == piece.node},
                barred=coming.barred | self._closed_to(there, piece) | (homes - {piece.node}),
                apart_from=frozenset(names) - {name},
            )

    @cached_property
    def _free(self) -> dict[str, CpuMemoryPods]:
        """By node; nothing where no more pods may go."""
        assert self.room is not None
        free = self.room.of_nodes.clip(0)
        return dict(zip(self.room.nodes, map(tuple, (free * (free[2] >= 1)).T.tolist()), strict=True))

    def _allowed(self, group: str, planned: Mapping[str, NumaPlace | None]) -> dict[str, NumaPlace | None]:
        """Without the places where kube-scheduler would not let the pods go, one after the other."""
        turns = sorted(planned.items(), key=lambda row: (-self.pods[row[0]].priority, self._turns[row[0]]))
        places = ((uid, self.pods[uid].kind, place.node) for uid, place in turns if place is not None)
        found = in_turn(places, AllowedNodes(self.admission.domains, self.kinds[group]))
        return {uid: place if uid in found else None for uid, place in planned.items()}

    @cached_property
    def _turns(self) -> dict[str, int]:
        return {uid: at for at, uid in enumerate(self.pods)}

    def _closed_to(self, members: Mapping[str, Sequence[PodKind]], piece: Piece) -> frozenset[str]:
        """The nodes with members with which some of these share none."""
        mine = {self.pods[uid].kind for uid in piece.uids}
        there = ((node, Piece(kinds=Counter(kinds))) for node, kinds in members.items())
        return frozenset(node for node, kinds in there if not all(kinds.takes(kind) for kind in mine))

    def _coming(self, group: str, pods: list[tuple[str, WaitingPod]]) -> Coming | None:
        """None where there is nothing to plan: a first pod of which nothing follows goes where most can follow."""
        to_come = [(uid, pod) for uid, pod in pods if uid not in self.assumed and uid not in self.tried]
        free = [(uid, pod) for uid, pod in to_come if not pod.own_terms or pod.kind.said != NO_POD_TERMS]
        here = self.members[group]
        workloads = {*(pod.workload for _, pod in free), *(each.workload for each in self.to_come[group])}
        known = not workloads.isdisjoint(self.pulls)
        if known and len(here) > 1:
            return None  # who its kin are, and where, is known better than by how many there are
        ready = [self._pod(uid, pod) for uid, pod in free if not pod.holds_nothing]
        leaving = (self._pod(f"{uid} again", pod) for uid, pod in self.leaving[group].items())
        renewal = self.renewals.get(group, NO_RENEWAL)
        later = [*leaving, *islice(chain(self._not_created(group), renewal.again), MOST_LATER)]
        alone = [pod for _, pod in to_come if pod.devices and pod.own_terms and pod.kind.said == NO_POD_TERMS]
        others = [*(pod for _, pod in free if pod.holds_nothing), *alone]
        unsure = [self._asks(pod) for pod in others]
        created = self.totals[group] + len(to_come)
        missing = self.sizes.get(group, 0) - created - sum(each.count for each in self.to_come[group])
        if missing > 0 and (asks := [pod.asks for pod in (*ready, *later)] + unsure):
            unsure += [(_mean(cpu for cpu, *_ in asks), _mean(memory for _, memory, _ in asks), 1)] * missing
        if not (ready or self.to_come[group] or renewal.again) or (
            not here and len(ready) + len(later) + len(unsure) < 2
        ):
            return None
        beyond = sum(cpu for cpu, *_ in unsure), sum(memory for _, memory, _ in unsure), len(unsure)
        priority = max((pod.priority for _, pod in pods), default=0)
        return Coming(
            group, ready, beyond, here, self.barred[group], priority, group in self.grow and not renewal.going, later,
            beyond_devices=_summed(pod.devices for pod in others),
            going=renewal.going, freed=renewal.freed, ahead=renewal.ahead,
        )  # fmt: skip

    def _not_created(self, group: str) -> Iterator[Pod]:
        """Replicas as the pods that they will be."""
        for each in self.to_come[group]:
            asks, where = _room(counted(each.demand, self.uses.get(each.workload, 0))), self.admission.where(each.terms)
            more = asks, where, _pages(each.demand), each.devices, each.overhead
            for number in range(each.count if each.anywhere else 0):
                yield Pod(f"{each.workload} to come {number}", each.workload, *more)

    def _pod(self, uid: str, pod: WaitingPod) -> Pod:
        where = self.admission.where(pod.terms)
        return Pod(uid, pod.workload, self._asks(pod), where, _pages(pod.demand), pod.devices, pod.overhead)

    def _asks(self, pod: WaitingPod) -> CpuMemoryPods:
        return _room(pod.expected(self.uses))


def _leaving(nodes: NodeTable, group: str, rows: Mapping[str, PodRow]) -> dict[str, WaitingPod]:
    """As the pods that come in their place will be."""
    there = {member.pod: rows[member.pod] for member in nodes.members_on(nodes.cordoned, group) if member.pod in rows}
    found = {uid: waiting_pod(row) for uid, row in there.items() if row.comes_again}
    return {uid: pod for uid, pod in found.items() if pod is not None}


def _beside(nodes: NodeTable, group: str, members: Collection[NumaPlace], rows: Mapping[str, PodRow]) -> frozenset[str]:
    """members: where those of the group are that are on one NUMA node each."""
    others = nodes.groups.nodes(group).keys() - {place.node for place in members} - nodes.cordoned
    there = ((node, rows.get(member.pod)) for node in others for member in nodes.members_on((node,), group))
    return frozenset(node for node, row in there if row is not None and row.devices)


def _resources(
    pods: Iterable[WaitingPod], to_come: Iterable[ToldReplicas], leaving: Mapping[str, Mapping[str, WaitingPod]]
) -> set[str]:
    """Of devices that any of them asks for."""
    pods = chain(pods, *(gone.values() for gone in leaving.values()))
    asked = chain((pod.devices for pod in pods), (each.devices for each in to_come))
    return {resource for devices in asked for resource, _ in devices}


def _summed(devices: Iterable[Devices]) -> Devices:
    total = Counter[str]()
    for each in devices:
        total.update(dict(each))
    return tuple(sorted(total.items()))


def _renewed(nodes: NodeTable, pods: Mapping[str, WaitingPod], groups: Collection[str]) -> set[str]:
    """Those of the groups of which a workload's pods come in the place of others, and none that waits asks for devices
    or hugepages: it is not counted what of these is left to those that come.
    """
    renewed = {pod.group for pod in pods.values() if nodes.to_come.templates.replaces(pod.workload)}
    led = {pod.group for pod in pods.values() if pod.devices or pod.demand.hugepages}
    return {group for group in groups if group in renewed or nodes.to_come.renews(group)} - led


def _renewals(nodes: NodeTable, groups: Iterable[str], rows: Mapping[str, PodRow]) -> dict[str, Renewal]:
    """Without those of groups of which pods in hugepages are to come that are not created yet."""
    found = {group: renewal_of(nodes, group, rows) for group in groups}
    return {group: renewal for group, renewal in found.items() if not any(pod.pages for pod in renewal.again)}


def _kinds(
    nodes: NodeTable, group: str, tried: Mapping[str, NumaPlace], rows: Mapping[str, PodRow]
) -> dict[str, list[PodKind]]:
    """Of a group's members, and those that are tried, by node."""

    def kind(uid: str) -> PodKind:
        return rows[uid].kind if uid in rows else NO_KIND

    found = {
        node: [kind(there.pod) for there in nodes.members_on((node,), group)] for node in nodes.groups.nodes(group)
    }
    for uid, place in tried.items():
        found.setdefault(place.node, []).append(kind(uid))
    return found


def _sizes(pods: Iterable[WaitingPod], told: ToldSizes) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for pod in pods:
        if size := pod.size or told.of(pod.sized_by):
            sizes[pod.group] = max(size, sizes.get(pod.group, 0))
    return sizes


def _by_workload(pods: Iterable[Pod], places: Mapping[str, NumaPlace]) -> dict[str, list[NumaPlace]]:
    found: dict[str, list[NumaPlace]] = {}
    for pod in pods:
        if pod.uid in places:
            found.setdefault(pod.workload, []).append(places[pod.uid])
    return found


def _room(demand: Demand) -> CpuMemoryPods:
    """Of one pod."""
    return demand.expected_milli, demand.memory, 1


def _pages(demand: Demand) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(demand.hugepages.items()))


def _mean(amounts: Iterable[float]) -> float:
    values = list(amounts)
    return -(-sum(values) // len(values))
