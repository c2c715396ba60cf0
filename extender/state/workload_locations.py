"""Where the pods of each workload are, kept up to date as views change. Under the cluster's lock."""

from __future__ import annotations

from collections.abc import Mapping

from extender.state.node_index import changed_members
from extender.state.node_view import NodeView

MOST_NAMED = 200_000
"""Pods whose workload is known; over that those that were named first go."""

NOWHERE: Mapping[str, str] = {}


class WorkloadLocations:
    """Opted-in pods that have a reservation, reported or assumed."""

    def __init__(self) -> None:
        self._workloads: dict[str, str] = {}
        self._nodes: dict[str, str] = {}
        self._members: dict[str, dict[str, str]] = {}

    def of(self, workload: str) -> Mapping[str, str]:
        """Node by pod uid."""
        return self._members.get(workload, NOWHERE)

    def node(self, uid: str) -> str | None:
        return self._nodes.get(uid)

    @property
    def count(self) -> int:
        """Of the pods whose workload is known."""
        return len(self._workloads)

    def workload(self, uid: str) -> str:
        """Empty while not known."""
        return self._workloads.get(uid, "")

    def workloads(self) -> dict[str, str]:
        """By pod uid, of all that were named."""
        return dict(self._workloads)

    def named(self, uid: str, workload: str) -> None:
        """The pod belongs to this workload."""
        if self._workloads.get(uid) == workload:
            return
        self.forget(uid)
        self._workloads[uid] = workload
        if uid in self._nodes:
            self._members.setdefault(workload, {})[uid] = self._nodes[uid]
        if len(self._workloads) > MOST_NAMED:
            self.forget(next(iter(self._workloads)))

    def forget(self, uid: str) -> None:
        """The pod is no more."""
        workload = self._workloads.pop(uid, None)
        if workload is not None:
            self._drop(workload, uid)

    def changed(self, node: str, before: NodeView | None, after: NodeView | None) -> None:
        for uid, came in changed_members(before.occupancy if before else None, after.occupancy if after else None):
            workload = self._workloads.get(uid)
            if came:
                self._nodes[uid] = node
                if workload is not None:
                    self._members.setdefault(workload, {})[uid] = node
            elif self._nodes.get(uid) == node:
                del self._nodes[uid]
                self._drop(workload or "", uid)

    def _drop(self, workload: str, uid: str) -> None:
        members = self._members.get(workload)
        if members is not None:
            members.pop(uid, None)
            if not members:
                del self._members[workload]
