"""What is still to come of each named group, as far as it was created: pods that the API server has and no node yet.
Under the cluster's lock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from extender.scoring.predict import opt_ins
from extender.state.pods import Devices, PodRow
from numakin.placement.model.errors import PlacementError
from numakin.placement.optin.parsing import opted_in

_Asked = tuple[str, int, Devices]
"""A pod's workload, its millicores, and its devices."""

NOT_WAITING: tuple[str, _Asked] = "", ("", 0, ())


class WaitingMembers:
    """A pod waits until its binding is seen. One whose demand can't be read does not count."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[str, _Asked]] = {}
        self._groups: dict[str, Counter[_Asked]] = {}

    def seen(self, row: PodRow) -> None:
        """As the API server has it now."""
        if row.node or row.ended or row.leaving or not opted_in(row.annotations):
            self.gone(row.uid)
        elif row.uid not in self._pods:
            self._add(row)

    def gone(self, uid: str) -> None:
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        group, asked = pod
        waiting = self._groups[group]
        waiting[asked] -= 1
        if not waiting[asked]:
            del waiting[asked]
        if not waiting:
            del self._groups[group]

    def beside(self, uid: str, group: str, uses: Mapping[str, int] = {}) -> int:
        """Millicores that the group's waiting pods are expected to take, but for this one. uses: of one pod, by
        workload.
        """
        waiting = self._groups.get(group)
        if waiting is None:
            return 0
        total = sum(count * max(milli, uses.get(name, 0)) for (name, milli, _), count in waiting.items())
        own_group, (name, milli, _) = self._pods.get(uid, NOT_WAITING)
        return total - (max(milli, uses.get(name, 0)) if own_group == group else 0)

    def devices_beside(self, uid: str, group: str) -> Devices:
        """That the group's waiting pods ask for, but for this one."""
        waiting = self._groups.get(group)
        if waiting is None:
            return ()
        own_group, own = self._pods.get(uid, NOT_WAITING)
        asked = Counter[str]()
        for pod, count in waiting.items():
            others = count - (own_group == group and pod == own)
            for resource, each in pod[2]:
                asked[resource] += others * each
        return tuple(sorted((+asked).items()))

    def copy(self) -> WaitingMembers:
        """What changes there changes nothing here."""
        copied = WaitingMembers()
        copied._pods = self._pods.copy()
        copied._groups = {group: waiting.copy() for group, waiting in self._groups.items()}
        return copied

    def _add(self, row: PodRow) -> None:
        try:
            group = next((opt_in.group for opt_in in opt_ins(row).values()), "")
            asked = row.workload, row.demand.cpu_milli, row.devices
        except PlacementError:
            return
        if group:
            self._pods[row.uid] = group, asked
            self._groups.setdefault(group, Counter())[asked] += 1
