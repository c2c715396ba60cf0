"""Of which template each workload's newest pod was made: those of another one are about to be replaced, as by a rolling
update or its being undone. Under the cluster's lock.
"""

from __future__ import annotations

from collections import defaultdict

from extender.state.pods import PodRow


class Templates:
    """Of all pods, those included that are being deleted: they have their room until they have ended. The newest pod of
    a workload is the last one that was seen without a node.
    """

    def __init__(self) -> None:
        self._newest: dict[str, str] = {}
        self._pods: defaultdict[str, dict[str, int]] = defaultdict(dict)
        """How many there are, by workload and template."""

    def changed(self, before: PodRow | None, after: PodRow | None) -> None:
        """None: the API server does not have it."""
        if _made_of(before) == _made_of(after):
            return
        if after is not None and after.template:
            self._add(after, 1)
            if before is None and not after.node:
                self._newest[after.workload] = after.template
        if before is not None and before.template:
            self._add(before, -1)

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
        copied._newest = dict(self._newest)
        copied._pods = defaultdict(dict, {workload: dict(pods) for workload, pods in self._pods.items()})
        return copied

    def _add(self, row: PodRow, step: int) -> None:
        workload, template = row.workload, row.template
        pods = self._pods[workload]
        pods[template] = pods.get(template, 0) + step
        if pods[template] <= 0:
            del pods[template]
        if not pods:
            del self._pods[workload]
            self._newest.pop(workload, None)


def _made_of(row: PodRow | None) -> tuple[str, str] | None:
    return (row.workload, row.template) if row is not None else None
