"""A pod's workload is found from names alone."""

import pytest

from extender.kube.workload import workload

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


@pytest.mark.parametrize(("owner", "labels", "found"), CHAINS.values(), ids=CHAINS)
def test_the_top_of_the_owner_chain(owner, labels, found):
    assert workload(*owner, labels) == found
