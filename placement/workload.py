"""Which workload a pod belongs to, from what it carries: replicas share what was learned of one another.

A workload is named NAMESPACE/KIND/NAME. The controllers leave labels on their pods and build the pods' names by rule,
so no question to the API server is needed: ReplicaSets of a Deployment are named DEPLOYMENT-HASH with the hash in the
label pod-template-hash, their pods REPLICASET-xxxxx; a StatefulSet's pods STATEFULSET-ORDINAL; Jobs of a CronJob are
named CRONJOB-MINUTES.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

HASH_LABEL = "pod-template-hash"
STATEFULSET_LABEL = "statefulset.kubernetes.io/pod-name"
REVISION_LABEL = "controller-revision-hash"
JOB_LABELS = ("batch.kubernetes.io/job-name", "job-name")

_CRONJOB = re.compile(r"(.+)-(\d{8,10})")
"""CronJob's controller appends the scheduled time in minutes since 1970 (8 digits until 2160)."""


def workload_of(namespace: str, pod: str, labels: Mapping[str, str], owner_kind: str = "", owner_name: str = "") -> str:
    """NAMESPACE/KIND/NAME. owner: the pod's controller, where it is told; a pod of its own is its own workload."""
    kind, name = _owner(owner_kind, owner_name, labels) if owner_kind else _from_labels(pod, labels)
    return f"{namespace}/{kind}/{name}"


def _owner(kind: str, name: str, labels: Mapping[str, str]) -> tuple[str, str]:
    if kind == "ReplicaSet" and name.endswith("-" + labels.get(HASH_LABEL, " ")):
        return "Deployment", name.removesuffix("-" + labels[HASH_LABEL])
    if kind == "Job":
        return _job(name)
    return kind, name


def _from_labels(pod: str, labels: Mapping[str, str]) -> tuple[str, str]:
    if template := labels.get(HASH_LABEL):
        before, found, _ = pod.rpartition(f"-{template}-")
        return ("Deployment", before) if found else ("Pod", pod)
    if STATEFULSET_LABEL in labels:
        return "StatefulSet", pod.rpartition("-")[0] or pod
    for label in JOB_LABELS:
        if label in labels:
            return _job(labels[label])
    if REVISION_LABEL in labels:
        return "DaemonSet", pod.rpartition("-")[0] or pod
    return "Pod", pod


def _job(name: str) -> tuple[str, str]:
    match = _CRONJOB.fullmatch(name)
    return ("CronJob", match[1]) if match else ("Job", name)
