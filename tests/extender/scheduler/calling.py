"""kube-scheduler's calls as the port makes them, without a port."""

from __future__ import annotations

import json

from extender.cluster import Cluster
from extender.scheduler.calls import CallAnswer, SchedulerCalls
from extender.scheduler.metrics import Metrics
from extender.scheduler.verbs import Verbs
from extender.settings import DEFAULT_SETTINGS, Settings
from tests.extender.running import reservation
from tests.extender.told import tell

NAMES = ("a", "b")


def body(uid: str = "p", *names: str, **annotations: str) -> bytes:
    """As kube-scheduler asks about a member of the group shop."""
    keys = {f"{key}.numakin.io": value for key, value in {"group": "shop", **annotations}.items()}
    metadata = {"name": uid, "namespace": "default", "uid": uid, "annotations": keys}
    containers = [{"name": "main", "resources": {"requests": {"cpu": "6", "memory": "1Gi"}}}]
    pod = {"metadata": metadata, "spec": {"containers": containers}}
    return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": list(names or NAMES)}).encode()


class Site:
    """Two nodes of 16 CPUs, the group on a; calls as the port makes them. refuse: as the extender's option."""

    def __init__(self, settings: Settings = DEFAULT_SETTINGS, *, refuse: bool = False) -> None:
        self.cluster = Cluster(settings)
        tell(self.cluster, "a", reservation("kin", "1"))
        tell(self.cluster, "b")
        metrics = Metrics()
        self._connection = SchedulerCalls(lambda: Verbs(self.cluster, metrics, refuse=refuse), metrics)
        self._calls = self._connection()

    def reconnect(self) -> None:
        """As kube-scheduler comes anew: what was remembered of its calls is so no more."""
        self._calls = self._connection()

    def call(self, verb: str, request: bytes) -> CallAnswer:
        """What is left to be done after the answer is not done yet."""
        return self._calls[verb](request)

    def filter(self, request: bytes) -> list[str]:
        """The nodes that are left; what comes after the answer is done too."""
        answer = self.call("filter", request)
        if answer.after is not None:
            answer.after()
        names: list[str] = json.loads(answer.body)["NodeNames"]
        return names

    def scores(self, request: bytes) -> dict[str, int]:
        """Of prioritize; what comes after the answer is done too."""
        answer = self.call("prioritize", request)
        if answer.after is not None:
            answer.after()
        return {row["Host"]: row["Score"] for row in json.loads(answer.body)}
