"""Of which template each workload's newest pod was made: those of another one are about to be replaced, as by a rolling
update or its being undone. All of them are once their controller says that it has another template. Under the cluster's
lock.
"""

from __future__ import annotations

from collections import defaultdict

from extender.state.pods import PodRow

ANNOUNCED_S = 10.0
"""How long a workload's pods count as about to be replaced while none of another template comes: its controller takes
some milliseconds, but may be kept from it.
"""

LAG_S = 1.0
"""How much later than of the first pod of a template it may be heard of its controller."""

NEXT = ""
"""A template of which there is no pod yet."""


class Templates:
    """Of all pods, those included that are being deleted: they have their room until they have ended. The newest pod of
    a workload is the last one that was seen without a node, or to be created.
    """

    def __init__(self) -> None:
        self._newest: dict[str, str] = {}
        self._since: dict[str, float] = {}
        """When each became the newest, or was announced."""
        self._announced: dict[str, str | None] = {}
        """What was the newest before; those first that were announced first."""
        self._pods: defaultdict[str, dict[str, int]] = defaultdict(dict)
        """How many there are, by workload and template."""

    def changed(self, before: PodRow | None, after: PodRow | None, now: float, *, created: bool = False) -> None:
        """None: the API server does not have it. created: it was just now, though it may be bound by then."""
        if _made_of(before) == _made_of(after):
            return
        if after is not None and after.template:
            self._add(after, 1)
            if before is None and (created or not after.node):
                self._come(after.workload, after.template, now)
        if before is not None and before.template:
            self._add(before, -1)

    def announced(self, workload: str, now: float) -> None:
        """Its controller has another template than before, and is about to make pods of it, if none came already."""
        since = self.replaced_since(workload)
        if workload not in self._pods or (
            since is not None and now - since < LAG_S and workload not in self._announced
        ):
            return
        self._announced[workload] = self._announced.pop(workload, self._newest.get(workload))
        self._newest[workload], self._since[workload] = NEXT, now

    def forget_announced(self, now: float) -> None:
        """Those of which no pod came for too long: of what was the newest before there may be pods still."""
        while self._announced and now - self._since[workload := next(iter(self._announced))] >= ANNOUNCED_S:
            if (before := self._announced.pop(workload)) in self._pods[workload]:
                self._newest[workload] = before
            else:
                del self._newest[workload], self._since[workload]

    def replaced_since(self, workload: str) -> float | None:
        """None: it replaces none."""
        return self._since[workload] if self.replaces(workload) else None

    def replaces(self, workload: str) -> bool:
        """Whether it has pods of another template than its newest."""
        newest = self._newest.get(workload)
        return newest is not None and any(template != newest for template in self._pods.get(workload, ()))

    def former(self, row: PodRow) -> bool:
        """Whether the pod is of another template than its workload's newest."""
        return bool(row.template) and self._newest.get(row.workload, row.template) != row.template

    def copy(self) -> Templates:
        """What changes there changes nothing here."""
        copied = Templates()
        copied._newest, copied._since, copied._announced = dict(self._newest), dict(self._since), dict(self._announced)
        copied._pods = defaultdict(dict, {workload: dict(pods) for workload, pods in self._pods.items()})
        return copied

    def _come(self, workload: str, template: str, now: float) -> None:
        if workload in self._announced:
            del self._announced[workload]
        elif self._newest.get(workload) != template:
            self._since[workload] = now
        self._newest[workload] = template

    def _add(self, row: PodRow, step: int) -> None:
        workload, template = row.workload, row.template
        pods = self._pods[workload]
        pods[template] = pods.get(template, 0) + step
        if pods[template] <= 0:
            del pods[template]
        if not pods:
            del self._pods[workload]
        newest = self._newest.get(workload)
        if not pods or (newest != NEXT and newest not in pods):  # as where an update is undone that replaced none
            for known in (self._newest, self._since, self._announced):
                known.pop(workload, None)


def _made_of(row: PodRow | None) -> tuple[str, str] | None:
    return (row.workload, row.template) if row is not None else None
