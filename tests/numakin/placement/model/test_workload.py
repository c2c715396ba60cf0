"""Replicas of one controller are one workload, whether the API server tells the owner or only the labels do."""

import pytest

from numakin.placement.model.workload import template_of, top_owner, workload_of


@pytest.mark.parametrize(
    ("pod", "labels", "workload"),
    [
        ("web-6d4cf56db6-x2x7q", {"pod-template-hash": "6d4cf56db6"}, "ns/Deployment/web"),
        ("my-web-app-6d4cf56db6-x2x7q", {"pod-template-hash": "6d4cf56db6"}, "ns/Deployment/my-web-app"),
        ("renamed", {"pod-template-hash": "6d4cf56db6"}, "ns/Pod/renamed"),
        (
            "db-0",
            {"statefulset.kubernetes.io/pod-name": "db-0", "controller-revision-hash": "db-1"},
            "ns/StatefulSet/db",
        ),
        ("agent-x2x7q", {"controller-revision-hash": "5f8"}, "ns/DaemonSet/agent"),
        ("once-x2x7q", {"job-name": "once"}, "ns/Job/once"),
        ("nightly-29384756-abcde", {"batch.kubernetes.io/job-name": "nightly-29384756"}, "ns/CronJob/nightly"),
        ("alone", {}, "ns/Pod/alone"),
    ],
)
def test_labels_and_names_tell_the_workload(pod: str, labels: dict[str, str], workload: str) -> None:
    assert workload_of("ns", pod, labels) == workload


HASH = {"pod-template-hash": "6c8f9d7b5"}

CHAINS = {
    "a Deployment's ReplicaSet": (("ReplicaSet", "web-6c8f9d7b5"), HASH, ("Deployment", "web")),
    "a name with dashes": (("ReplicaSet", "web-front-2-6c8f9d7b5"), HASH, ("Deployment", "web-front-2")),
    "a ReplicaSet of its own": (("ReplicaSet", "web"), {}, ("ReplicaSet", "web")),
    "a hash that is not its end": (("ReplicaSet", "6c8f9d7b5-web"), HASH, ("ReplicaSet", "6c8f9d7b5-web")),
    "nothing but a hash": (("ReplicaSet", "-6c8f9d7b5"), HASH, ("ReplicaSet", "-6c8f9d7b5")),
    "an empty hash": (("ReplicaSet", "web-"), {"pod-template-hash": ""}, ("ReplicaSet", "web-")),
    "an Argo Rollout": (("ReplicaSet", "web-5d4"), {"rollouts-pod-template-hash": "5d4"}, ("Rollout", "web")),
    "a CronJob's Job": (("Job", "report-29380000"), {}, ("CronJob", "report")),
    "an old CronJob's Job": (("Job", "report-1762800000"), {}, ("CronJob", "report")),
    "a Job of its own": (("Job", "import-2026"), {}, ("Job", "import-2026")),
    "a StatefulSet": (("StatefulSet", "db"), {}, ("StatefulSet", "db")),
    "a DaemonSet": (("DaemonSet", "agent"), {}, ("DaemonSet", "agent")),
    "someone's own controller": (("Game", "chess-12345678"), {}, ("Game", "chess-12345678")),
}


@pytest.mark.parametrize(("owner", "labels", "top"), CHAINS.values(), ids=CHAINS)
def test_the_top_of_the_owner_chain(owner, labels, top):
    kind, name = owner
    assert top_owner(kind, name, labels) == top


TEMPLATES = {
    "a Deployment's": ({"pod-template-hash": "6c8f9d7b5", "app": "web"}, "6c8f9d7b5"),
    "an Argo Rollout's": ({"rollouts-pod-template-hash": "5d4"}, "5d4"),
    "a StatefulSet's or DaemonSet's": ({"controller-revision-hash": "db-77f"}, "db-77f"),
    "a Job's": ({"job-name": "import"}, ""),
}


@pytest.mark.parametrize(("labels", "template"), TEMPLATES.values(), ids=TEMPLATES)
def test_labels_tell_the_template(labels: dict[str, str], template: str) -> None:
    assert template_of(labels) == template
