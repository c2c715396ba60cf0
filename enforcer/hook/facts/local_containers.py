"""The local containers, as the observer is told of them. They are worded when somebody asks, so that no container waits
for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from enforcer.hook.facts import pods
from placement.optin.parsing import opted_in, parse
from proto import local_pb2 as local
from proto import nri_pb2 as nri


class LocalContainers:
    """`now` is every container that was met and has not gone, opted in or not, by its id."""

    def __init__(self, workload: Callable[[nri.PodSandbox], str] = pods.workload) -> None:
        self._workload = workload
        self._known: dict[str, local.LocalContainer] = {}
        self._met: dict[str, tuple[nri.PodSandbox, nri.Container]] = {}

    def met(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """As the runtime's latest event tells it."""
        self._met[container.id] = pod, container

    def gone(self, container: str) -> None:
        self._met.pop(container, None)
        self._known.pop(container, None)

    def belongs(self, pod: str, workload: str) -> None:
        """The pod's containers are of this workload, whatever its labels say; empty: not told."""
        for one in self.now().values() if workload else ():
            if one.pod == pod and one.workload != workload:
                renamed = local.LocalContainer()
                renamed.CopyFrom(one)
                renamed.workload = workload
                self._known[one.id] = renamed

    def now(self) -> Mapping[str, local.LocalContainer]:
        met, self._met = self._met, {}
        self._known.update({key: _worded(pod, container, self._workload(pod)) for key, (pod, container) in met.items()})
        return self._known


def _worded(pod: nri.PodSandbox, container: nri.Container, workload: str) -> local.LocalContainer:
    opt_in = parse(pod.namespace, pod.annotations, container.name)
    network = next((namespace.path for namespace in container.linux.namespaces if namespace.type == "network"), "")
    return local.LocalContainer(
        id=container.id,
        name=container.name,
        pod=pod.uid,
        pod_name=pod.name,
        namespace=pod.namespace,
        pid=container.pid,
        cgroups_path=container.linux.cgroups_path,
        host_network=not any(namespace.type == "network" for namespace in pod.linux.namespaces),
        netns=network,
        ips=list(pod.ips),
        opted_in=opted_in(pod.annotations),
        workload=workload,
        move=opt_in.move if opt_in is not None else "",
    )
