"""What other controllers' objects say of how many pods come together is read of every kind that the cluster has."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from extender.kube.api import Api
from extender.kube.objects.told_kinds import KINDS, ToldKind
from extender.kube.optional_kinds import OptionalKinds
from extender.state import told_groups
from extender.state.pods import Changes
from extender.state.told_groups import ToldReplicas, ToldRow, ToldSizes, sized_by
from lab.standins.apiserver import ApiServer
from lab.standins.patience import until
from numakin.placement.model.demand import Demand
from numakin.process.threads import Failure, Threads
from tests.extender.kube.objects.defined import BUILT_IN, defined
from tests.supervised import threads

OF = {kind.kind: kind for kind in KINDS}
METADATA = {"name": "train", "namespace": "ns"}


def containers(cpu: str, **more: str) -> dict[str, Any]:
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "1Gi", **more}}}]}


TEMPLATE = {"metadata": {"annotations": {"group.numakin.io": "db"}}, "spec": containers("500m")}


def read(kind: str, spec: dict[str, Any], status: dict[str, Any] | None = None) -> ToldRow:
    body = {"metadata": METADATA, "spec": spec, "status": status or {}}
    return OF[kind].resource().row(json.dumps(body).encode())


@pytest.mark.parametrize(
    ("kind", "spec", "sizes"),
    [
        (told_groups.POD_GROUPS, {"schedulingPolicy": {"gang": {"minCount": 16}}}, {"train": 16}),
        (told_groups.POD_GROUPS, {"schedulingPolicy": {"basic": {}}}, {}),
        (
            told_groups.WORKLOADS,
            {"podGroups": [{"name": "a", "policy": {"gang": {"minCount": 3}}}, {"name": "b", "policy": {"basic": {}}}]},
            {"train.a": 3},
        ),
        (told_groups.COSCHEDULED, {"minMember": 8, "scheduleTimeoutSeconds": 10}, {"train": 8}),
        (told_groups.VOLCANOS, {"minMember": 5, "queue": "default"}, {"train": 5}),
        (
            told_groups.JOBSETS,
            {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 4}}}, {"name": "l"}]},
            {"train": 9},
        ),
        (told_groups.COSCHEDULED, {"minMember": 0}, {}),
        (told_groups.COSCHEDULED, {}, {}),
    ],
)  # fmt: skip
def test_each_kind_says_it_in_a_field_of_its_own(kind: str, spec: dict[str, Any], sizes: dict[str, int]):
    assert read(kind, spec).sizes == {f"{kind} ns/{name}": size for name, size in sizes.items()}


@pytest.mark.parametrize(
    ("kind", "spec", "workload", "count", "ahead"),
    [
        (told_groups.DEPLOYMENTS, {"replicas": 5}, "Deployment/train", 5, 5),
        (told_groups.DEPLOYMENTS, {}, "Deployment/train", 1, 1),
        (told_groups.DEPLOYMENTS, {"replicas": 10_001}, "Deployment/train", 10_000, 7_502),
        (told_groups.STATEFUL_SETS, {"replicas": 5}, "StatefulSet/train", 5, 0),
        (told_groups.ROLLOUTS, {"replicas": 5}, "Rollout/train", 5, 0),
        (told_groups.JOBS, {}, "Job/train", 1, 0),
        (told_groups.JOBS, {"parallelism": 5}, "Job/train", 5, 0),
        (told_groups.JOBS, {"parallelism": 5, "completions": 20}, "Job/train", 5, 0),
        (told_groups.JOBS, {"parallelism": 5, "completions": 3}, "Job/train", 3, 0),
    ],
)  # fmt: skip
def test_a_controller_says_how_many_pods_it_keeps_of_which_workload_and_group(kind, spec, workload, count, ahead):
    demand = Demand(500, memory=1 << 30, memory_limit=None)
    kept = ToldReplicas(f"ns/{workload}", "ns/db", count, demand, ahead=ahead)
    found = read(kind, {**spec, "template": TEMPLATE}).replicas
    assert found is not None
    assert replace(found, template="") == kept


@pytest.mark.parametrize("kind", [told_groups.DEPLOYMENTS, told_groups.STATEFUL_SETS, told_groups.ROLLOUTS])
def test_a_controller_that_replaces_pods_tells_each_template_from_others(kind: str):
    """By what else than its pods' demand is in it, too."""
    image = {"containers": [{**containers("500m")["containers"][0], "image": "other"}]}
    labelled = {**TEMPLATE, "metadata": {**TEMPLATE["metadata"], "labels": {"restarted": "now"}}}
    templates = (TEMPLATE, {**TEMPLATE, "spec": image}, labelled)
    said = {read(kind, {"replicas": 5, "template": template}).replicas.template for template in templates}
    assert len(said - {""}) == len(templates)
    assert read(kind, {"replicas": 4, "template": TEMPLATE}).replicas.template in said


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        (told_groups.STATEFUL_SETS, {"updateStrategy": {"type": "OnDelete"}}),
        (told_groups.STATEFUL_SETS, {"updateStrategy": {"rollingUpdate": {"partition": 2}}}),
        (told_groups.JOBS, {}),
    ],
)
def test_one_that_does_not_replace_all_of_them_tells_none(kind, more):
    assert read(kind, {"replicas": 5, "parallelism": 5, "template": TEMPLATE, **more}).replicas.template == ""


@pytest.mark.parametrize("kind", [told_groups.DEPLOYMENTS, told_groups.ROLLOUTS])
def test_one_that_is_paused_says_so(kind: str):
    paused, other = (read(kind, {"template": TEMPLATE, "paused": value}).replicas for value in (True, False))
    assert paused is not None
    assert other is not None
    assert (paused, other.paused) == (replace(other, paused=True), False)


@pytest.mark.parametrize(
    ("strategy", "ahead"),
    [
        ({}, 8),
        ({"rollingUpdate": {"maxSurge": "30%", "maxUnavailable": "19%"}}, 7),
        ({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, 2),
        ({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 2}}, 2),
        ({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}, 1),
        ({"rollingUpdate": {"maxSurge": "100%"}}, 10),
        ({"rollingUpdate": {"maxSurge": "many"}}, 8),
        ({"type": "Recreate"}, 0),
    ],
)  # fmt: skip
def test_a_deployment_says_how_many_new_pods_may_come_before_old_ones_have_ended(strategy, ahead):
    spec = {"replicas": 10, "strategy": strategy, "template": TEMPLATE}
    kept = read(told_groups.DEPLOYMENTS, spec).replicas
    assert kept is not None
    assert kept.ahead == ahead


def test_a_job_keeps_as_many_as_are_still_to_succeed_and_none_once_it_has_ended():
    spec = {"parallelism": 5, "completions": 20, "template": TEMPLATE}
    assert read(told_groups.JOBS, spec, {"succeeded": 18}).replicas.count == 2
    for kind in ("Complete", "Failed"):
        status = {"succeeded": 3, "conditions": [{"type": kind, "status": "True"}]}
        assert read(told_groups.JOBS, spec, status).replicas is None
    assert read(told_groups.JOBS, {**spec, "suspend": True}).replicas is None


def test_a_cron_jobs_job_keeps_pods_of_the_cron_job():
    body = {"metadata": {"name": "nightly-28000000", "namespace": "ns"}, "spec": {"template": TEMPLATE}}
    assert OF[told_groups.JOBS].resource().row(json.dumps(body).encode()).replicas.workload == "ns/CronJob/nightly"


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"replicas": 5, "template": {"metadata": {}}}, {}),
        ({"replicas": 5, "template": {**TEMPLATE, "metadata": {"annotations": {"group.numakin.io": "auto"}}}}, {}),
        ({"replicas": 5, "workloadRef": {"name": "other"}}, {}),
        ({"replicas": 0, "template": TEMPLATE}, {}),
        ({"replicas": 5, "template": TEMPLATE}, {"conditions": [{"type": "ReplicaFailure", "status": "True"}]}),
        ({"replicas": 5, "template": {**TEMPLATE, "spec": containers("half a core")}}, {}),
    ],
    ids=["not opted in", "no named group", "without a template", "none", "refused by the API server", "unreadable"],
)
def test_one_of_which_nothing_of_a_named_group_is_to_come_says_nothing(spec, status):
    assert read(told_groups.DEPLOYMENTS, spec, status) == ToldRow("ns/train")


@pytest.mark.parametrize(
    "more",
    [
        {"template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "nodeSelector": ["disk"]}}},
        {"template": TEMPLATE, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]},
    ],
    ids=["what can't be read", "volumes"],
)
def test_pods_with_terms_of_their_own_may_not_run_anywhere(more):
    assert not read(told_groups.STATEFUL_SETS, {"replicas": 5, **more}).replicas.anywhere


def test_devices_that_each_of_them_asks_for_are_told():
    template = {**TEMPLATE, "spec": containers("1", **{"nvidia.com/gpu": "1"})}
    replicas = read(told_groups.STATEFUL_SETS, {"replicas": 5, "template": template}).replicas
    assert (replicas.count, replicas.devices, replicas.anywhere) == (5, (("nvidia.com/gpu", 1),), True)


def test_a_gang_that_was_given_up_is_told_by_its_condition():
    refused = {"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable", "message": "3 of 4"}
    one, other = (
        read(told_groups.POD_GROUPS, {}, {"conditions": [{**refused, "message": text}]}).refused for text in "ab"
    )
    assert one
    assert other
    assert one != other
    assert not read(told_groups.POD_GROUPS, {}, {"conditions": [{**refused, "status": "True"}]}).refused


@pytest.mark.parametrize(
    ("group", "labels", "annotations", "key"),
    [
        ("train", {}, {}, "podgroups.scheduling.k8s.io ns/train"),
        ("w.workers.0", {}, {}, "workloads.scheduling.k8s.io ns/w.workers"),
        ("w.workers", {}, {}, "workloads.scheduling.k8s.io ns/w.workers"),
        ("", {told_groups.COSCHEDULING: "train"}, {}, "podgroups.scheduling.x-k8s.io ns/train"),
        ("", {}, {told_groups.VOLCANO: "train"}, "podgroups.scheduling.volcano.sh ns/train"),
        ("", {told_groups.JOBSET: "train"}, {}, "jobsets.jobset.x-k8s.io ns/train"),
    ],
)
def test_a_pod_names_the_object_that_says_how_many_there_are(group, labels, annotations, key):
    sizes = ToldSizes()
    sizes.changed("any", [ToldRow("ns/any", {key: 7})], [], whole=True)
    assert sizes.of(sized_by("ns", group, labels, annotations)) == 7
    assert sizes.of(sized_by("other", group, labels, annotations)) == 0


def test_what_an_object_said_is_forgotten_with_it():
    sizes = ToldSizes()
    sizes.changed("k", [ToldRow("ns/a", {"a": 1, "b": 2}), ToldRow("ns/c", {"c": 3})], [], whole=True)
    sizes.changed("other", [ToldRow("ns/d", {"d": 4})], [], whole=True)
    sizes.changed("k", [ToldRow("ns/a", {"a": 5})], [], whole=False)
    assert [sizes.of([key]) for key in "abcd"] == [5, 0, 3, 4]
    sizes.changed("k", [], ["ns/a"], whole=False)
    sizes.changed("k", [], [], whole=True)
    assert [sizes.of([key]) for key in "abcd"] == [0, 0, 0, 4]


def test_devices_that_are_no_number_to_python_count_as_none():
    """It reads no more than 4,300 digits; one such Rollout stopped the watch of them all."""
    kept = read(
        told_groups.ROLLOUTS,
        {"replicas": 2, "template": {**TEMPLATE, "spec": containers("1", **{"x.y/z": "9" * 5000})}},
    )
    assert kept.replicas.count == 2


class TestWatching:
    """Of what the API server has."""

    @pytest.fixture
    def told(self) -> list[tuple[str, Changes[ToldRow]]]:
        return []

    @pytest.fixture
    def watching(self, api: Api, told, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr("extender.kube.optional_kinds.AGAIN_S", 0.05)
        kinds = OptionalKinds(api, KINDS, lambda kind, changes: told.append((kind, changes)), threads=threads())
        yield kinds
        kinds.stop()

    def test_a_kind_that_is_not_there_is_not_asked_for(self, server: ApiServer, watching: OptionalKinds):
        server.define(defined(OF[told_groups.COSCHEDULED]))
        watching.start()
        until(lambda: told_groups.COSCHEDULED in watching.watched, "a watch of the kind that is there")
        assert watching.watched == sorted(
            [told_groups.COSCHEDULED, *(kind.kind for kind in KINDS if kind.group in BUILT_IN)]
        )

    def test_one_that_is_installed_later_is_watched_from_then_on(self, server: ApiServer, watching, told):
        kind: ToldKind = OF[told_groups.JOBSETS]
        watching.start()
        until(lambda: watching.watched, "the others to be watched")
        server.define(defined(kind))
        server.create("v1", "namespaces", {"metadata": {"name": "ns"}})
        spec = {"replicatedJobs": [{"name": "w", "replicas": 3}]}
        server.create(f"{kind.group}/{kind.version}", kind.plural, {"metadata": {"name": "train"}, "spec": spec}, "ns")
        until(lambda: [changes.rows for name, changes in told if name == kind.kind and changes.rows], "what it says")
        ((row,),) = (changes.rows for name, changes in told if name == kind.kind and changes.rows)
        assert row.sizes == {"jobsets.jobset.x-k8s.io ns/train": 3}

    def test_a_watch_whose_thread_the_system_did_not_start_is_begun_the_next_time(
        self, server: ApiServer, api: Api, monkeypatch: pytest.MonkeyPatch
    ):
        """As where a crowd of connections has all threads that the pod may have."""
        kind, start, failures = OF[told_groups.COSCHEDULED], threading.Thread.start, list[Failure]()
        server.define(defined(kind))

        def refused(thread: threading.Thread) -> None:
            if kind.path in thread.name and not failures:
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", refused)
        kinds = OptionalKinds(api, [kind], lambda *_told: None, threads=Threads(failures.append))
        kinds.start()
        server.wait_for("watches", 1, resource=kind.plural)
        kinds.stop()
        assert [str(failure.error) for failure in failures] == ["can't start new thread"]

    def test_one_of_another_shape_costs_no_other_its_place(self, server: ApiServer, watching: OptionalKinds, told):
        """Argo's definition lets any quantities pass, as the null that a template without a value leaves."""
        kind: ToldKind = OF[told_groups.ROLLOUTS]
        group, spec = f"{kind.group}/{kind.version}", {"replicas": 3, "template": TEMPLATE}
        bad = {"template": {**TEMPLATE, "spec": {"containers": [{"resources": {"requests": {"cpu": None}}}]}}}
        server.define(defined(kind))
        server.create("v1", "namespaces", {"metadata": {"name": "ns"}})
        server.create(group, kind.plural, {"metadata": {"name": "bad"}, "spec": bad}, "ns")
        server.create(group, kind.plural, {"metadata": {"name": "listed"}, "spec": spec}, "ns")
        watching.start()
        server.wait_for("watches", 1, resource=kind.plural)
        server.patch(group, kind.plural, "listed", {"spec": bad}, namespace="ns")
        server.create(group, kind.plural, {"metadata": {"name": "seen"}, "spec": spec}, "ns")

        def said() -> dict[str, int]:
            rollouts = [changes for name, changes in told if name == kind.kind]
            rows = {row.name: row.replicas.count for changes in rollouts for row in changes.rows if row.replicas}
            return {name: count for name, count in rows.items() if all(name not in each.gone for each in rollouts)}

        until(lambda: said() == {"ns/seen": 3}, "what the others say")
