"""Replicas of one controller are one workload, whether the API server tells the owner or only the labels do."""

import pytest

from placement.workload import workload_of


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


@pytest.mark.parametrize(
    ("kind", "name", "labels", "workload"),
    [
        ("ReplicaSet", "web-6d4cf56db6", {"pod-template-hash": "6d4cf56db6"}, "ns/Deployment/web"),
        ("ReplicaSet", "made-by-hand", {}, "ns/ReplicaSet/made-by-hand"),
        ("StatefulSet", "db", {}, "ns/StatefulSet/db"),
        ("Job", "nightly-29384756", {}, "ns/CronJob/nightly"),
        ("Rollout", "web", {}, "ns/Rollout/web"),
    ],
)
def test_a_told_owner_is_believed(kind: str, name: str, labels: dict[str, str], workload: str) -> None:
    assert workload_of("ns", "pod-x", labels, kind, name) == workload
