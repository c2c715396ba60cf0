"""The local containers, as the observer is told of them. They are worded when somebody asks, so that no container waits
for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from enforcer import pods
from placement.optin import opted_in, parse
from proto import local_pb2 as local
from proto import nri_pb2 as nri


class Residents:
    """`now` is every container that was met and has not gone, opted in or not, by its id."""

    def __init__(self) -> None:
        self._known: dict[str, local.LocalContainer] = {}
        self._met: dict[str, tuple[nri.PodSandbox, nri.Container]] = {}

    def met(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """As the runtime's latest event tells it."""
        self._met[container.id] = pod, container

    def gone(self, container: str) -> None:
        self._met.pop(container, None)
        self._known.pop(container, None)

    def now(self) -> Mapping[str, local.LocalContainer]:
        met, self._met = self._met, {}
        self._known.update({key: _worded(pod, container) for key, (pod, container) in met.items()})
        return self._known


def _worded(pod: nri.PodSandbox, container: nri.Container) -> local.LocalContainer:
    opt_in, _ = parse(pod.namespace, pod.annotations, container.name)
    network = next((one.path for one in container.linux.namespaces if one.type == "network"), "")
    return local.LocalContainer(
        id=container.id,
        name=container.name,
        pod=pod.uid,
        pod_name=pod.name,
        namespace=pod.namespace,
        pid=container.pid,
        cgroups_path=container.linux.cgroups_path,
        host_network=not any(one.type == "network" for one in pod.linux.namespaces),
        netns=network,
        ips=list(pod.ips),
        opted_in=opted_in(pod.annotations),
        workload=pods.workload(pod),
        move=opt_in.move if opt_in is not None else "",
    )
