"""The objects by which other controllers say how many pods come together: PodGroups of Kubernetes, of coscheduling and
of Volcano, Workloads of Kubernetes 1.35 and JobSets; and those that keep replicas: Deployments, StatefulSets, Jobs,
Argo Rollouts.

A ReplicaSet is not among them: its Deployment or Rollout says how many there are to be while two of them change places,
and has ten old ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from zlib import crc32

import msgspec

from extender.kube.rows import Metadata, PodCondition, PodObject, PodRows, PodSpec
from extender.kube.stream import Resource, namespaced_name, resource
from extender.scoring.predict import opt_ins, taken_demand
from extender.state import told_groups
from extender.state.told_groups import ToldReplicas, ToldRow, told_key
from numakin.placement.model.errors import PlacementError
from numakin.placement.model.workload import top_owner
from numakin.placement.optin.parsing import LARGEST_SIZE, opted_in

SCHEDULED = "PodGroupScheduled"
"""The condition that kube-scheduler patches after each try."""

REPLICA_FAILURE = "ReplicaFailure"
"""The condition of a Deployment whose pods the API server does not take, as over a quota."""

RECREATE = "Recreate"
"""The strategy of a Deployment that makes new pods once the old ones are gone."""

ON_DELETE = "OnDelete"
"""The strategy of a StatefulSet that makes new pods as others delete its old ones."""

USUAL_PERCENT = 25
"""Of its replicas, for pods more than those and for pods fewer, where a Deployment does not say."""

ENDED = frozenset({"Complete", "Failed"})
"""The conditions of a Job that makes no more pods."""

Sizes = Iterator[tuple[str, int | None]]
"""Of each group of an object its name, and how many pods it has."""


def no_sizes(_told: _ToldObject) -> Sizes:
    """Of a kind that keeps replicas."""
    yield from ()


@dataclass(frozen=True, slots=True)
class ToldKind:
    """kind: as `told_groups` names it. sizes: what an object says. keeps: the kind of the workload whose replicas it
    keeps, empty: none; replicas: how many, and ahead: of another template, before those that they replace have ended.
    renews: whether it replaces them as its template changes, be it once it is paused no more.
    """

    kind: str
    group: str
    version: str
    sizes: Callable[[_ToldObject], Sizes] = no_sizes
    keeps: str = ""
    replicas: Callable[[_ToldObject], int] = lambda _told: 0
    ahead: Callable[[_ToldObject], int] = lambda _told: 0
    renews: Callable[[_ToldObject], bool] = lambda _told: False

    @property
    def plural(self) -> str:
        return self.kind.partition(".")[0]

    @property
    def path(self) -> str:
        return f"/apis/{self.group}/{self.version}/{self.plural}"

    def resource(self) -> Resource[ToldRow]:
        pods = PodRows()
        return resource(
            self.path, _ToldObject, lambda told: self._row(told, pods),
            key=lambda row: row.name, gone_key=namespaced_name,
        )  # fmt: skip

    def _row(self, told: _ToldObject, pods: PodRows) -> ToldRow:
        namespace = told.metadata.namespace
        sizes = {
            told_key(self.kind, namespace, name): min(size, LARGEST_SIZE)
            for name, size in self.sizes(told)
            if size is not None and size > 0
        }
        return ToldRow(namespaced_name(told.metadata), sizes, self._kept(told, pods), told.status.refused)

    def _kept(self, told: _ToldObject, pods: PodRows) -> ToldReplicas | None:
        """None where its pods are of no named group, or there are none to come."""
        metadata, template = told.metadata, _TEMPLATES.decode(told.spec.template) if self.keeps else None
        if template is None or not opted_in(template.metadata.annotations or {}):
            return None
        given_up = metadata.deletion_timestamp is not None or told.status.has({REPLICA_FAILURE})
        count = 0 if given_up else min(self.replicas(told), LARGEST_SIZE)
        template.metadata.namespace = metadata.namespace
        pod = pods.row(PodObject(template.metadata, template.spec))
        opt_in = next(iter(opt_ins(pod).values()), None)
        if count <= 0 or opt_in is None or not opt_in.group:
            return None
        kind, name = top_owner(self.keeps, metadata.name, {})
        try:
            demand = taken_demand(pod)
        except PlacementError:
            return None
        anywhere = not (pod.own_terms or told.spec.volume_claim_templates)
        workload = f"{metadata.namespace}/{kind}/{name}"
        made_of = f"{crc32(told.spec.template):08x}" if self.renews(told) else ""
        said = pod.terms, pod.devices, min(count, self.ahead(told)), made_of, bool(told.spec.paused)
        return ToldReplicas(workload, opt_in.group, count, demand, anywhere, *said)


class _Gang(msgspec.Struct, rename="camel"):
    min_count: int | None = None


class _Policy(msgspec.Struct):
    gang: _Gang | None = None


class _PodGroup(msgspec.Struct):
    name: str = ""
    policy: _Policy | None = None


class _JobSpec(msgspec.Struct):
    parallelism: int | None = None


class _JobTemplate(msgspec.Struct):
    spec: _JobSpec = msgspec.field(default_factory=_JobSpec)


class _ReplicatedJob(msgspec.Struct):
    replicas: int | None = None
    template: _JobTemplate = msgspec.field(default_factory=_JobTemplate)


class _Template(msgspec.Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


_NULL = msgspec.Raw(b"null")
_TEMPLATES: msgspec.json.Decoder[_Template | None] = msgspec.json.Decoder(_Template | None)


class _RollingUpdate(msgspec.Struct, rename="camel"):
    """Each a number, or a share in percent."""

    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class _Strategy(msgspec.Struct, rename="camel"):
    type: str | None = None
    rolling_update: _RollingUpdate | None = None


class _RollingOrdinals(msgspec.Struct):
    partition: int | None = None


class _UpdateStrategy(msgspec.Struct, rename="camel"):
    """Of a StatefulSet."""

    type: str | None = None
    rolling_update: _RollingOrdinals | None = None


class _ToldSpec(msgspec.Struct, rename="camel"):
    """What any of them has."""

    min_member: int | None = None
    scheduling_policy: _Policy | None = None
    pod_groups: list[_PodGroup] | None = None
    replicated_jobs: list[_ReplicatedJob] | None = None
    replicas: int | None = None
    strategy: _Strategy | None = None
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    template: msgspec.Raw = _NULL
    paused: bool | None = None
    update_strategy: _UpdateStrategy | None = None
    volume_claim_templates: list[msgspec.Raw] | None = None


class _ToldStatus(msgspec.Struct):
    conditions: list[PodCondition] | None = None
    succeeded: int | None = None

    def has(self, types: Collection[str]) -> bool:
        """Whether a condition of one of these types is True."""
        return any(each.type in types and each.status == "True" for each in self.conditions or ())

    @property
    def refused(self) -> int:
        conditions = (each for each in self.conditions or () if each.type == SCHEDULED and each.status == "False")
        return next((condition.number for condition in conditions), 0)


class _ToldObject(msgspec.Struct):
    metadata: Metadata
    spec: _ToldSpec = msgspec.field(default_factory=_ToldSpec)
    status: _ToldStatus = msgspec.field(default_factory=_ToldStatus)


def _gang(policy: _Policy | None) -> int | None:
    return policy.gang.min_count if policy is not None and policy.gang is not None else None


def _of_pod_group(told: _ToldObject) -> Sizes:
    yield told.metadata.name, _gang(told.spec.scheduling_policy)


def _of_workload(told: _ToldObject) -> Sizes:
    for pod_group in told.spec.pod_groups or ():
        yield f"{told.metadata.name}.{pod_group.name}", _gang(pod_group.policy)


def _least(told: _ToldObject) -> Sizes:
    yield told.metadata.name, told.spec.min_member


def _of_jobset(told: _ToldObject) -> Sizes:
    """A job that does not say how many pods run at once has one."""
    jobs = told.spec.replicated_jobs or ()
    counts = (
        (1 if job.replicas is None else job.replicas)
        * (1 if (at_once := job.template.spec.parallelism) is None else at_once)
        for job in jobs
    )
    yield told.metadata.name, sum(counts)


def _replicas(told: _ToldObject) -> int:
    return 1 if told.spec.replicas is None else told.spec.replicas


def _ahead(told: _ToldObject) -> int:
    """Of a Deployment: its first new pods, and those that it makes once these are ready and as many old ones are being
    deleted.
    """
    strategy = told.spec.strategy or _Strategy()
    if strategy.type == RECREATE:
        return 0
    rolling = strategy.rolling_update or _RollingUpdate()
    surge = _part(rolling.max_surge, _replicas(told), math.ceil)
    unavailable = _part(rolling.max_unavailable, _replicas(told), math.floor)
    return 2 * surge + (unavailable if surge or unavailable else 1)


def _part(of: int | str | None, replicas: int, rounded: Callable[[float], int]) -> int:
    """As a Deployment's strategy has it; what can't be read counts as not said."""
    if isinstance(of, int):
        return of
    percent = (of or "").removesuffix("%")
    return rounded(replicas * (int(percent) if percent.isascii() and percent.isdigit() else USUAL_PERCENT) / 100)


def _rolls(_told: _ToldObject) -> bool:
    return True


def _rolls_all(told: _ToldObject) -> bool:
    strategy = told.spec.update_strategy or _UpdateStrategy()
    return strategy.type != ON_DELETE and not (strategy.rolling_update and strategy.rolling_update.partition)


def _at_once(told: _ToldObject) -> int:
    """Of a Job; towards its end only as many as are still to succeed."""
    spec, status = told.spec, told.status
    if spec.suspend or status.has(ENDED):
        return 0
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    return parallelism if spec.completions is None else min(parallelism, spec.completions - (status.succeeded or 0))


KINDS = (
    ToldKind(
        told_groups.DEPLOYMENTS, "apps", "v1", keeps="Deployment", replicas=_replicas, ahead=_ahead, renews=_rolls
    ),
    ToldKind(told_groups.STATEFUL_SETS, "apps", "v1", keeps="StatefulSet", replicas=_replicas, renews=_rolls_all),
    ToldKind(told_groups.JOBS, "batch", "v1", keeps="Job", replicas=_at_once),
    ToldKind(told_groups.ROLLOUTS, "argoproj.io", "v1alpha1", keeps="Rollout", replicas=_replicas, renews=_rolls),
    ToldKind(told_groups.POD_GROUPS, "scheduling.k8s.io", "v1alpha2", _of_pod_group),
    ToldKind(told_groups.WORKLOADS, "scheduling.k8s.io", "v1alpha1", _of_workload),
    ToldKind(told_groups.COSCHEDULED, "scheduling.x-k8s.io", "v1alpha1", _least),
    ToldKind(told_groups.VOLCANOS, "scheduling.volcano.sh", "v1beta1", _least),
    ToldKind(told_groups.JOBSETS, "jobset.x-k8s.io", "v1alpha2", _of_jobset),
)
"""As their projects serve them in 2026."""
