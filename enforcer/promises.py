"""What the extender said to expect: a bounded table by pod uid."""

from __future__ import annotations

from collections import OrderedDict

from placement.decide import Kin
from placement.demand import Demand
from placement.optin import OptIn
from proto import convert
from proto import report_pb2 as pb

MOST = 4096
"""The most promises kept: several times what a node can hold of pods (the kubelet's default is 110); the oldest go
first.
"""


class Promises:
    """Promises by pod uid; a newer one for the same pod takes the older one's place."""

    def __init__(self) -> None:
        self._by_pod: OrderedDict[str, pb.Expect] = OrderedDict()

    def add(self, expect: pb.Expect) -> bool:
        """True for the first of its pod. One that names no NUMA nodes only brings the facts up to date."""
        before = self._by_pod.get(expect.pod)
        if before is not None and not expect.numa_nodes:
            told, expect = expect, pb.Expect()
            expect.CopyFrom(told)
            expect.numa_nodes = before.numa_nodes
        self._by_pod[expect.pod] = expect
        self._by_pod.move_to_end(expect.pod)
        while len(self._by_pod) > MOST:
            self._by_pod.popitem(last=False)
        return before is None

    def forget(self, pod: str) -> None:
        self._by_pod.pop(pod, None)

    def __len__(self) -> int:
        return len(self._by_pod)

    def get(self, pod: str) -> pb.Expect | None:
        return self._by_pod.get(pod)

    def kin(self, pod: str) -> Kin | None:
        """The kin that the promise was made with; None when nothing was promised."""
        expect = self._by_pod.get(pod)
        return convert.kin_from(expect) if expect is not None else None

    def demand(self, pod: str, container: str) -> Demand | None:
        """The container's true requests, where the extender told them."""
        told = self._container(pod, container)
        return convert.demand_from(told.demand) if told is not None else None

    def opt_in(self, pod: str, container: str, own: OptIn) -> OptIn:
        """What the container asks for, with what its group's object says. own: by its annotations alone."""
        told = self._container(pod, container)
        return convert.opt_in_from(told, own) if told is not None else own

    def pod_demand(self, pod: str) -> Demand | None:
        expect = self._by_pod.get(pod)
        if expect is None or not expect.HasField("pod_demand"):
            return None
        return convert.demand_from(expect.pod_demand)

    def _container(self, pod: str, container: str) -> pb.ContainerDemand | None:
        expect = self._by_pod.get(pod)
        return next((one for one in expect.containers if one.name == container), None) if expect is not None else None
