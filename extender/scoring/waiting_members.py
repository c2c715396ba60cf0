"""What is still to come of each named group, as far as it was created: pods that the API server has and no node yet.
Under the cluster's lock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from extender.scoring.predict import opt_ins, taken_demand
from extender.state.pod_terms import NO_KIND, PodKind
from extender.state.pods import PodRow
from numakin.placement.model.demand import Demand, counted
from numakin.placement.model.errors import PlacementError
from numakin.placement.model.live_usage import Devices
from numakin.placement.model.node_terms import NO_TERMS, NodeTerms
from numakin.placement.optin.parsing import opted_in
from numakin.placement.plan.problem import CpuAndMemory

_Asked = tuple[str, int, Devices]
"""A pod's workload, its millicores, and its devices."""


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """One of a group. gated, own_terms, terms, sized_by, gang: as `PodRow` has them. size: members that its group
    expects, 0: not said. kind: what it says of others. given_up: kube-scheduler found no place for its gang. overhead:
    what it takes of its node beside its demand.
    """

    group: str
    workload: str
    demand: Demand
    devices: Devices
    priority: int
    gated: bool
    own_terms: bool
    size: int
    sized_by: tuple[str, ...] = ()
    gang: str = ""
    kind: PodKind = NO_KIND
    given_up: bool = False
    terms: NodeTerms = NO_TERMS
    overhead: CpuAndMemory = (0, 0)

    @property
    def holds_nothing(self) -> bool:
        """It counts for the size of its group alone: it is not tried yet, or with its gang, which was tried in vain and
        is bound all or none.
        """
        return self.gated or self.given_up

    @property
    def asked(self) -> _Asked:
        return self.workload, self.demand.cpu_milli, self.devices

    def expected(self, uses: Mapping[str, int]) -> Demand:
        """uses: of one pod, by workload, in millicores."""
        return counted(self.demand, uses.get(self.workload, 0))


class WaitingMembers:
    """A pod waits until its binding is seen. One whose demand can't be read does not count.

    changes: of groups that wait, numbers that are others whenever anything of the group came or went; created: whenever
    anything of it came.
    """

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}
        self._groups: dict[str, Counter[_Asked]] = {}
        self.changes: dict[str, int] = {}
        self.created: dict[str, int] = {}
        self._count = 0

    def seen(self, row: PodRow) -> bool:
        """As the API server has it now. Whether it waits from now on."""
        known = self._pods.get(row.uid)
        if row.node or row.ended or row.leaving or not opted_in(row.annotations):
            self.gone(row.uid)
        elif known is None or (known.gated and not row.gated):
            self.gone(row.uid)
            self._add(row)
            return True
        return False

    def gone(self, uid: str) -> None:
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        waiting = self._groups[pod.group]
        waiting[pod.asked] -= 1
        self.changes[pod.group] = self._counted()
        if not waiting[pod.asked]:
            del waiting[pod.asked]
        if not waiting:
            del self._groups[pod.group], self.changes[pod.group], self.created[pod.group]

    def give_up(self, *uids: str) -> list[str]:
        """kube-scheduler found no place for the gangs of these pods. Those of which it is news."""
        new = [uid for uid in uids if (pod := self._pods.get(uid)) is not None and pod.gang and not pod.given_up]
        for uid in new:
            self._pods[uid] = replace(self._pods[uid], given_up=True)
        return new

    def of_gang(self, gang: str) -> list[str]:
        """The uids of its waiting pods."""
        return [uid for uid, pod in self._pods.items() if pod.gang == gang]

    def get(self, uid: str) -> WaitingPod | None:
        return self._pods.get(uid)

    def pods(self) -> dict[str, WaitingPod]:
        """All, by uid."""
        return dict(self._pods)

    def first_of(self, group: str, workload: str) -> str | None:
        """The uid of the workload's pod that has waited the longest, of those without gates."""
        alike = (uid for uid, pod in self._pods.items() if (pod.group, pod.workload) == (group, workload))
        return next((uid for uid in alike if not self._pods[uid].gated), None)

    def beside(self, uid: str, group: str, uses: Mapping[str, int] = {}) -> int:
        """Millicores that the group's waiting pods are expected to take, but for this one. uses: of one pod, by
        workload.
        """
        waiting = self._groups.get(group)
        if waiting is None:
            return 0
        total = sum(count * max(milli, uses.get(name, 0)) for (name, milli, _), count in waiting.items())
        own = self._pods.get(uid)
        return total - (own.expected(uses).expected_milli if own is not None and own.group == group else 0)

    def devices_beside(self, uid: str, group: str) -> Devices:
        """That the group's waiting pods ask for, but for this one."""
        waiting = self._groups.get(group)
        if waiting is None:
            return ()
        own = self._pods.get(uid)
        asked = Counter[str]()
        for pod, count in waiting.items():
            others = count - (own is not None and own.group == group and pod == own.asked)
            for resource, each in pod[2]:
                asked[resource] += others * each
        return tuple(sorted((+asked).items()))

    def alike(self, uid: str) -> Iterator[str]:
        """The others of its group that ask for the same and say the same."""
        own = self._pods.get(uid)
        for other, pod in self._pods.items():
            if own is not None and pod.group == own.group and other != uid and pod == own:
                yield other

    def copy(self) -> WaitingMembers:
        """What changes there changes nothing here."""
        copied = WaitingMembers()
        copied._pods = self._pods.copy()
        copied._groups = {group: waiting.copy() for group, waiting in self._groups.items()}
        copied.changes, copied.created, copied._count = self.changes.copy(), self.created.copy(), self._count
        return copied

    def _add(self, row: PodRow) -> None:
        pod = waiting_pod(row)
        if pod is None:
            return
        self._pods[row.uid] = pod
        self._groups.setdefault(pod.group, Counter())[pod.asked] += 1
        self.changes[pod.group] = self.created[pod.group] = self._counted()

    def _counted(self) -> int:
        """Also after a group has waited no more: it would count anew to where it was."""
        self._count += 1
        return self._count


def waiting_pod(row: PodRow) -> WaitingPod | None:
    """None where it names no group, or its demand can't be read."""
    try:
        opt_in = next(iter(opt_ins(row).values()), None)
        demand = taken_demand(row)
    except PlacementError:
        return None
    if opt_in is None or not opt_in.group:
        return None
    terms = row.priority, row.gated, row.own_terms, opt_in.size or row.told_size, row.sized_by, row.gang
    return WaitingPod(
        opt_in.group, row.workload, demand, row.devices, *terms, row.kind, terms=row.terms, overhead=row.beside
    )
