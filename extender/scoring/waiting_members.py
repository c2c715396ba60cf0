"""What is still to come of each named group, as far as it was created: pods that the API server has and no node yet.
Under the cluster's lock.
"""

from __future__ import annotations

from collections import Counter

from extender.scoring.predict import opt_ins
from extender.state.pods import PodRow
from placement.model.errors import PlacementError
from placement.optin.parsing import opted_in


class WaitingMembers:
    """A pod waits until its binding is seen. One whose demand can't be read does not count."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[str, int]] = {}
        self._milli: Counter[str] = Counter()

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
        group, milli = pod
        self._milli[group] -= milli
        if not self._milli[group]:
            del self._milli[group]

    def beside(self, uid: str, group: str) -> int:
        """Millicores that the group's waiting pods ask for, but for this one."""
        own_group, own = self._pods.get(uid, ("", 0))
        return self._milli[group] - (own if own_group == group else 0)

    def copy(self) -> WaitingMembers:
        """What changes there changes nothing here."""
        copied = WaitingMembers()
        copied._pods, copied._milli = self._pods.copy(), self._milli.copy()
        return copied

    def _add(self, row: PodRow) -> None:
        try:
            group = next((opt_in.group for opt_in in opt_ins(row).values()), "")
            milli = row.demand.cpu_milli
        except PlacementError:
            return
        if group:
            self._pods[row.uid] = group, milli
            self._milli[group] += milli
