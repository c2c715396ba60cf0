"""The devices that containers get, by the NUMA nodes they are near to, as the kubelet reported them to the observer."""

from __future__ import annotations

from collections import Counter

from numakin.placement.decide.request import Request
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.errors import PlacementError
from numakin.placement.optin.options import Scope
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri


class PodDevices:
    """By namespace and name of the pod, since the kubelet reports no uid, and by container."""

    def __init__(self) -> None:
        self._by_pod: dict[tuple[str, str], dict[str, tuple[NumaSet, ...]]] = {}

    def learn(self, reported: local.Devices) -> None:
        """Replaces what was known; a row that can't be read is left out."""
        self._by_pod = {}
        for row in reported.rows:
            try:
                near = tuple(NumaSet.parse(numa_node) for numa_node in row.numa_nodes)
            except PlacementError:
                continue
            self._by_pod.setdefault((row.namespace, row.pod), {})[row.container] = near

    @property
    def rows(self) -> dict[str, list[str]]:
        """For people: NAMESPACE/POD/CONTAINER to the NUMA nodes near to each of its devices."""
        return {
            "/".join((*pod, name)): [str(numa_nodes) for numa_nodes in near]
            for pod, containers in self._by_pod.items()
            for name, near in containers.items()
        }

    def forget(self, pod: nri.PodSandbox) -> None:
        """So that the next pod of that name gets none of its devices."""
        self._by_pod.pop((pod.namespace, pod.name), None)

    def near(self, pod: nri.PodSandbox, request: Request, by_number: tuple[NumaSet, ...]) -> tuple[NumaSet, ...]:
        """The NUMA nodes near to each device that the request is to be near to: of the whole pod where it is placed as
        one. by_number: those found by the container's device numbers; a device that is known both ways counts once.
        """
        reported = self._by_pod.get((pod.namespace, pod.name))
        if not reported:
            return by_number
        whole = request.opt_in.scope is Scope.POD
        by_kubelet = [
            numa_nodes for name, near in reported.items() if whole or name == request.name for numa_nodes in near
        ]
        return tuple((Counter(by_number) | Counter(by_kubelet)).elements())
