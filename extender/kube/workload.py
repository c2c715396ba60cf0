"""From a pod to its workload: the controller whose replicas are alike, so that they share what was learned.

No API reads: the names that controllers give tell the next owner up. What they do:
- a Deployment names its ReplicaSet DEPLOYMENT-HASH and puts HASH into the pods' label `pod-template-hash`;
- a CronJob names its Job CRONJOB-MINUTES, the scheduled time in minutes since 1970, eight digits from 1989 to 2160
  (older than 1.21: seconds, ten digits);
- a StatefulSet, DaemonSet, ReplicationController and most custom controllers own their pods directly;
- Argo Rollouts name theirs like Deployments, with the label `rollouts-pod-template-hash`.
A ReplicaSet or Job whose name does not end so stands alone, and is its own workload. A pod without a controller is its
own workload.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

Owner = tuple[str, str]
"""Kind and name."""

_MINUTES = re.compile(r"(.+)-(\d{8}|\d{10})")


def workload(kind: str, name: str, labels: Mapping[str, str]) -> Owner:
    """The top of the owner chain that starts with this controller of a pod with these labels."""
    step = _STEPS.get(kind)
    return step(kind, name, labels) if step else (kind, name)


def _replica_set(kind: str, name: str, labels: Mapping[str, str]) -> Owner:
    for label, owner in _HASH_LABELS.items():
        template_hash = labels.get(label)
        if template_hash and name.endswith(f"-{template_hash}") and name != f"-{template_hash}":
            return owner, name.removesuffix(f"-{template_hash}")
    return kind, name


def _job(kind: str, name: str, _labels: Mapping[str, str]) -> Owner:
    scheduled = _MINUTES.fullmatch(name)
    return ("CronJob", scheduled[1]) if scheduled else (kind, name)


_HASH_LABELS = {"rollouts-pod-template-hash": "Rollout", "pod-template-hash": "Deployment"}
_STEPS: Mapping[str, Callable[[str, str, Mapping[str, str]], Owner]] = {"ReplicaSet": _replica_set, "Job": _job}
