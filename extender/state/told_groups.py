"""What other controllers say about the pods that come together: on the pods, and in objects of their own.

None of it opts a pod in: that is the annotation `group.numakin.io`, and its name of the group stands. Sizes and
replicas only say what is still to come of it, and hold no room by themselves; sizes count where the pod has no
`size.numakin.io`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from numakin.placement.model.demand import Demand
from numakin.placement.model.live_usage import Devices
from numakin.placement.model.node_terms import NO_TERMS, NodeTerms
from numakin.placement.optin.parsing import LARGEST_SIZE
from numakin.placement.plan.problem import CpuAndMemory

COSCHEDULING = "scheduling.x-k8s.io/pod-group"
"""The label by which scheduler-plugins' coscheduling knows the pods that it lets start together."""

VOLCANO = "scheduling.k8s.io/group-name"
"""The annotation by which Volcano does."""

JOBSET = "jobset.sigs.k8s.io/jobset-name"
"""The label of a JobSet's pods."""

SIZES = ("leaderworkerset.sigs.k8s.io/size", "kueue.x-k8s.io/pod-group-total-count")
"""Annotations: the pods of a group of a LeaderWorkerSet, its leader included, and of a plain pod group of Kueue."""

DEPLOYMENTS, STATEFUL_SETS, JOBS = "deployments.apps", "statefulsets.apps", "jobs.batch"
ROLLOUTS = "rollouts.argoproj.io"
POD_GROUPS, WORKLOADS = "podgroups.scheduling.k8s.io", "workloads.scheduling.k8s.io"
COSCHEDULED, VOLCANOS = "podgroups.scheduling.x-k8s.io", "podgroups.scheduling.volcano.sh"
JOBSETS = "jobsets.jobset.x-k8s.io"


def size(annotations: Mapping[str, str]) -> int:
    """How many pods belong together; 0: nothing readable says it."""
    texts = (annotations.get(key, "") for key in SIZES)
    sizes = (int(text) for text in texts if text.isascii() and text.isdigit() and len(text) <= 5)
    return next((number for number in sizes if 0 < number <= LARGEST_SIZE), 0)


def sized_by(
    namespace: str, scheduling_group: str, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> tuple[str, ...]:
    """The keys under which objects may say how many pods belong together: the first one that is known counts.

    A Workload of 1.35 names each of its groups, which may have replicas: the last part of scheduling_group is theirs.
    """
    names = (
        (POD_GROUPS, scheduling_group),
        (WORKLOADS, scheduling_group),
        (WORKLOADS, scheduling_group.rpartition(".")[0]),
        (COSCHEDULED, labels.get(COSCHEDULING, "")),
        (VOLCANOS, annotations.get(VOLCANO, "")),
        (JOBSETS, labels.get(JOBSET, "")),
    )
    return tuple(told_key(kind, namespace, name) for kind, name in names if name)


def told_key(kind: str, namespace: str, name: str) -> str:
    return f"{kind} {namespace}/{name}"


@dataclass(frozen=True, slots=True)
class ToldReplicas:
    """What a controller keeps of one workload, NAMESPACE/KIND/NAME as `PodRow.workload` has it: so many pods of this
    group, each of which asks for this. anywhere: they say no more of where they may run than terms of nodes. ahead: how
    many of a newer template may come before those that they replace have left their room. template: another for each
    that it has; empty: it replaces no pods as that changes. paused: nor does it now. overhead: what each takes of its
    node beside its demand, as pods of the workload say that there are: a template does not, as a RuntimeClass has it.
    """

    workload: str
    group: str
    count: int
    demand: Demand
    anywhere: bool = True
    terms: NodeTerms = NO_TERMS
    devices: Devices = ()
    ahead: int = 0
    template: str = ""
    paused: bool = False
    overhead: CpuAndMemory = (0, 0)


@dataclass(frozen=True, slots=True)
class ToldRow:
    """One object of theirs. name: NAMESPACE/NAME. sizes: of the groups that it has, as `told_key`. replicas: None: it
    keeps none of a named group. refused: a number that is another for each condition PodGroupScheduled=False, 0: it has
    none.
    """

    name: str
    sizes: Mapping[str, int] = field(default_factory=dict, hash=False)
    replicas: ToldReplicas | None = None
    refused: int = 0


class ToldSizes:
    """Under the cluster's lock."""

    def __init__(self) -> None:
        self._rows: defaultdict[str, dict[str, ToldRow]] = defaultdict(dict)
        self._sizes: dict[str, int] = {}

    def changed(self, kind: str, rows: Iterable[ToldRow], gone: Iterable[str], *, whole: bool) -> list[str]:
        """As `Changes` has them, of one kind. NAMESPACE/NAME of those that kube-scheduler has given up since."""
        known, refused = self._rows[kind], []
        rows = tuple(rows)
        for name in {*gone, *(known.keys() - {row.name for row in rows} if whole else ())}:
            self._drop(known.pop(name, None))
        for row in rows:
            before = known.pop(row.name, None)
            self._drop(before)
            if row.sizes or row.refused:
                known[row.name] = row
            self._sizes.update(row.sizes)
            if row.refused and row.refused != (before.refused if before is not None else 0):
                refused.append(row.name)
        return refused

    def of(self, keys: Iterable[str]) -> int:
        """0: none of them says it."""
        return next((found for key in keys if (found := self._sizes.get(key, 0))), 0)

    def copy(self) -> ToldSizes:
        """What changes there changes nothing here."""
        copied = ToldSizes()
        copied._rows = defaultdict(dict, {kind: dict(rows) for kind, rows in self._rows.items()})
        copied._sizes = dict(self._sizes)
        return copied

    def _drop(self, row: ToldRow | None) -> None:
        for key in row.sizes if row is not None else ():
            self._sizes.pop(key, None)
