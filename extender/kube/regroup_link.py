"""What bringing groups together again needs of the API server: whether to act, the record on a group's object, Events,
and evictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from extender.kube.api import MERGE_PATCH, Api
from extender.kube.events import About, KubeEvent
from extender.kube.evictions import EvictionAnswer, Evictions
from extender.kube.objects.affinitygroup import API_VERSION, object_name
from extender.kube.objects.grouprows import GroupRow
from extender.kube.publish import MANAGER
from extender.state.regroup_record import KEY, NO_RECORD, EvictionStep, RegroupRecord

EVICTED, NOT_EVICTED = "NumaEvicted", "NumaNotEvicted"
REGROUPED, NOT_REGROUPED = "NumaRegrouped", "NumaNotRegrouped"
"""The reasons of our Events: on a pod, and on its group's object."""


@dataclass(frozen=True, slots=True)
class RegroupLink:
    """leads_since: since when this replica is the one that writes, without a break: seconds, monotonic; infinite: it is
    not. me: its name among the replicas.
    """

    api: Api
    evictions: Evictions
    leads_since: Callable[[], float]
    emit: Callable[[KubeEvent], None]
    me: str

    def write(self, row: GroupRow, record: RegroupRecord) -> None:
        """In place of the record that was read with this row. ApiError, also where another was faster; Unreachable."""
        text = record.text if record != NO_RECORD else None
        metadata = {"resourceVersion": row.revision, "uid": row.uid, "annotations": {KEY: text}}
        query = {"fieldManager": MANAGER}
        self.api.request("PATCH", row.path, query, {"metadata": metadata}, MERGE_PATCH)

    def evict(self, namespace: str, step: EvictionStep) -> EvictionAnswer:
        return self.evictions.ask(namespace, step.pod, step.uid)

    def tell_of_pod(self, namespace: str, step: EvictionStep, reason: str, text: str) -> None:
        about = About(namespace, step.pod, step.uid)
        self.emit(KubeEvent(about, reason, text, warning=reason == NOT_EVICTED, series=reason))

    def tell_of_group(self, row: GroupRow, reason: str, text: str) -> None:
        about = About(row.namespace, object_name(row.name), row.uid, "AffinityGroup", API_VERSION)
        self.emit(KubeEvent(about, reason, text, warning=reason == NOT_REGROUPED))
