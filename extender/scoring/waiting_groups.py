"""The groups whose pods wait for a node, as they are packed: what is taken of the cluster under its lock, and planned
outside of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from extender.planning.group_planner import Plans
from extender.planning.packing import Coming, Pod, Pulls, pack
from extender.scoring.node_table import NodeTable
from extender.scoring.waiting_members import WaitingPod
from extender.settings import Settings
from extender.state.columns.free_room import FreeRoom, NumaPlace
from numakin.placement.model.demand import Demand
from numakin.placement.plan.problem import CpuAndMemory


@dataclass(frozen=True, slots=True)
class WaitingGroups:
    """pods: that wait, by uid. assumed: the uids of those that hold room of their own. members: by group how many are
    on each NUMA node, and in all. held: the room that holds have. barred: as `GroupHolds` has it, of the groups to
    plan. grow: of which more was created a moment ago.
    """

    pods: Mapping[str, WaitingPod]
    assumed: Collection[str]
    members: Mapping[str, Counter[NumaPlace]]
    totals: Mapping[str, int]
    barred: Mapping[str, frozenset[str]]
    grow: Collection[str]
    room: FreeRoom | None
    held: Mapping[NumaPlace, CpuAndMemory]
    uses: Mapping[str, int]
    pulls: Pulls
    plans: Plans

    @classmethod
    def of(cls, nodes: NodeTable, now: float, settings: Settings, closed: Collection[str]) -> WaitingGroups:
        """Under the cluster's lock. closed: nodes that take no new pods."""
        nodes.show("")
        holds, pods = nodes.group_holds, nodes.waiting.pods()
        groups = holds.moving(nodes.waiting.changes, nodes.waiting.created, now, settings.group_hold)
        held: dict[NumaPlace, CpuAndMemory] = {}
        for group in holds.groups():
            for place, demand in holds.held(group, nodes.assumed).items():
                cpu, memory = held.get(place, (0, 0))
                held[place] = cpu + demand.expected_milli, memory + demand.memory
        return cls(
            pods=pods,
            assumed={uid for uid in pods if nodes.assumed(uid)},
            members={group: nodes.members_by_place(group) for group in groups},
            totals={group: nodes.groups.total(group) for group in groups},
            grow=holds.growing(now),
            barred={group: holds.barred(group) for group in groups},
            room=nodes.free_room(now, settings.report_timeout, closed) if groups else None,
            held=held,
            uses=nodes.known.uses,
            pulls=nodes.known.peers,
            plans=nodes.plans,
        )

    @property
    def demands(self) -> dict[str, Demand]:
        return {uid: pod.expected(self.uses) for uid, pod in self.pods.items()}

    @property
    def priorities(self) -> dict[str, int]:
        highest: dict[str, int] = {}
        for pod in self.pods.values():
            highest[pod.group] = max(pod.priority, highest.get(pod.group, pod.priority))
        return highest

    def planned(self) -> dict[str, dict[str, NumaPlace]]:
        """By group the place of each pod, of all groups of which something is to be planned."""
        if self.room is None:
            return {}
        places: dict[str, dict[str, NumaPlace]] = {group: {} for group in self.members}
        packed = pack(self._comings(), self.room, self.pulls, self.held, self.plans)
        return places | {group: pods for group, pods in packed.items() if self._with_members(group, pods)}

    def _with_members(self, group: str, pods: Mapping[str, NumaPlace]) -> bool:
        """Whether any pod is planned on a node with members of its group, or it has none: else these have no room for
        now, and what draws the pods is weighed as each is asked about.
        """
        nodes = {place.node for place in self.members[group]}
        return not nodes or any(place.node in nodes for place in pods.values())

    def _comings(self) -> list[Coming]:
        by_group: dict[str, list[tuple[str, WaitingPod]]] = {group: [] for group in self.members}
        for uid, pod in self.pods.items():
            if pod.group in by_group:
                by_group[pod.group].append((uid, pod))
        comings = (self._coming(group, pods) for group, pods in by_group.items())
        return [coming for coming in comings if coming is not None]

    def _coming(self, group: str, pods: list[tuple[str, WaitingPod]]) -> Coming | None:
        """None where there is nothing to plan: a first pod of which nothing follows goes where most can follow."""
        to_come = [(uid, pod) for uid, pod in pods if uid not in self.assumed]
        free = [(uid, pod) for uid, pod in to_come if not pod.own_terms]
        here = self.members[group]
        known = any(pod.workload in self.pulls for _, pod in free)
        if any(pod.devices for _, pod in pods):
            return None  # which NUMA nodes the devices are near to leads
        if known and len(here) > 1:
            return None  # who its kin are, and where, is known better than by how many there are
        ready = [Pod(uid, pod.workload, self._asks(pod)) for uid, pod in free if not pod.gated]
        later = [self._asks(pod) for _, pod in free if pod.gated]
        missing = max((pod.size for _, pod in pods), default=0) - self.totals[group] - len(to_come)
        if missing > 0 and (asks := [pod.asks for pod in ready] + later):
            later += [(_mean(cpu for cpu, _ in asks), _mean(memory for _, memory in asks))] * missing
        if not ready or (not here and len(ready) + len(later) < 2):
            return None
        beyond = sum(cpu for cpu, _ in later), sum(memory for _, memory in later)
        priority = max(pod.priority for _, pod in pods)
        return Coming(group, ready, beyond, here, self.barred[group], priority, group in self.grow)

    def _asks(self, pod: WaitingPod) -> CpuAndMemory:
        demand = pod.expected(self.uses)
        return demand.expected_milli, demand.memory


def _mean(amounts: Iterable[int]) -> int:
    values = list(amounts)
    return -(-sum(values) // len(values))
