"""Which workload a pod belongs to, from what it carries: replicas share what was learned of one another.

A workload is named NAMESPACE/KIND/NAME. No question to the API server is needed: controllers leave labels on their pods
and name what they make by rule, so that each step up the owner chain can be read off.
- a Deployment names its ReplicaSet DEPLOYMENT-HASH and puts HASH into the pods' label `pod-template-hash`; Argo
  Rollouts do likewise with `rollouts-pod-template-hash`; a ReplicaSet's pods are REPLICASET-xxxxx;
- a StatefulSet's pods are STATEFULSET-ORDINAL, a DaemonSet's DAEMONSET-xxxxx;
- a CronJob names its Job CRONJOB-MINUTES, the scheduled time in minutes since 1970, eight digits from 1989 to 2160
  (older than 1.21: seconds, ten digits).
- a static pod is owned by its Node, which makes no replicas of it: its name, which ends with the node's, is its own.
A ReplicaSet or Job whose name does not end so stands alone, and is its own workload, as is a pod without a controller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

STATEFULSET_LABEL = "statefulset.kubernetes.io/pod-name"
REVISION_LABEL = "controller-revision-hash"
JOB_LABELS = ("batch.kubernetes.io/job-name", "job-name")

NODE = "Node"
"""The kind that owns the mirror pods of a node's static pods."""

Owner = tuple[str, str]
"""Kind and name."""

HASH_LABELS = {"rollouts-pod-template-hash": "Rollout", "pod-template-hash": "Deployment"}
"""Of the template that a controller of this kind made a pod of."""

_TEMPLATE_LABELS = (*HASH_LABELS, REVISION_LABEL)
_SCHEDULED = re.compile(r"(.+)-(\d{8}|\d{10})")


def workload_of(namespace: str, pod: str, labels: Mapping[str, str]) -> str:
    """NAMESPACE/KIND/NAME, by the pod's name and labels alone."""
    kind, name = _from_labels(pod, labels)
    return f"{namespace}/{kind}/{name}"


def template_of(labels: Mapping[str, str]) -> str:
    """The hash of the template that its controller made the pod of; empty: its labels say none."""
    return next((labels[label] for label in _TEMPLATE_LABELS if label in labels), "")


def top_owner(kind: str, name: str, labels: Mapping[str, str]) -> Owner:
    """The top of the owner chain that starts with this controller of a pod with these labels."""
    step = _STEPS.get(kind)
    return step(kind, name, labels) if step else (kind, name)


def _from_labels(pod: str, labels: Mapping[str, str]) -> Owner:
    for label, kind in HASH_LABELS.items():
        if label in labels:
            before, separator, _ = pod.rpartition(f"-{labels[label]}-")
            return (kind, before) if separator and before else ("Pod", pod)
    if STATEFULSET_LABEL in labels:
        return "StatefulSet", pod.rpartition("-")[0] or pod
    for label in JOB_LABELS:
        if label in labels:
            return _job("Job", labels[label], labels)
    if REVISION_LABEL in labels:
        return "DaemonSet", pod.rpartition("-")[0] or pod
    return "Pod", pod


def _replica_set(kind: str, name: str, labels: Mapping[str, str]) -> Owner:
    for label, owner in HASH_LABELS.items():
        template_hash = labels.get(label)
        if template_hash and name.endswith(f"-{template_hash}") and name != f"-{template_hash}":
            return owner, name.removesuffix(f"-{template_hash}")
    return kind, name


def _job(kind: str, name: str, _labels: Mapping[str, str]) -> Owner:
    scheduled = _SCHEDULED.fullmatch(name)
    return ("CronJob", scheduled[1]) if scheduled else (kind, name)


_STEPS: Mapping[str, Callable[[str, str, Mapping[str, str]], Owner]] = {"ReplicaSet": _replica_set, "Job": _job}
