"""kube-scheduler's calls as the port makes them, without a port."""

from __future__ import annotations

import json

from extender.cluster import Cluster
from extender.scheduler.calls import CallAnswer, SchedulerCall, scheduler_calls
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
        self._calls = scheduler_calls(Verbs(self.cluster, metrics, refuse=refuse), metrics)

    @property
    def prioritize(self) -> SchedulerCall:
        return self._calls["prioritize"]

    def left(self, request: bytes) -> list[str] | None:
        """What filter leaves where it needs no thread; None where it does."""
        answer = self._calls["filter"].at_once(request)
        return None if answer is None else _left(answer)

    def filter(self, request: bytes) -> list[str]:
        """The nodes that are left; what comes after the answer is done too."""
        call = self._calls["filter"]
        return _left(call.at_once(request) or call(request))

    def ready(self, request: bytes) -> dict[str, int] | None:
        """The scores that need no thread; None where there are none. What they leave to be done is done too."""
        answer = self.prioritize.at_once(request)
        if answer is None:
            return None
        if answer.then is not None:
            answer.then()
        return scores(answer.body)


def _left(answer: CallAnswer) -> list[str]:
    if answer.after is not None:
        answer.after()
    names: list[str] = json.loads(answer.body)["NodeNames"]
    return names


def scores(answer: bytes) -> dict[str, int]:
    return {row["Host"]: row["Score"] for row in json.loads(answer)}
