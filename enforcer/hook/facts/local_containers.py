"""The local containers, as they are sent to the observer. The messages are made when they are asked for, so that no
container waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from enforcer.hook.facts import pods
from placement.model.demand import Demand
from placement.optin.options import Cpus, Move, OptIn
from placement.optin.parsing import opted_in, parse
from proto import local_pb2 as local
from proto import nri_pb2 as nri


class LocalContainers:
    """`now` is every container that was met and has not gone, opted in or not, by its id; `changes` what is new."""

    def __init__(self, workload: Callable[[nri.PodSandbox], str] = pods.workload) -> None:
        self._workload = workload
        self._known: dict[str, local.LocalContainer] = {}
        self._met: dict[str, tuple[nri.PodSandbox, nri.Container]] = {}
        self._sent: set[str] = set()
        self._changed: dict[str, None] = {}

    def met(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """As the runtime's latest event has it."""
        self._met[container.id] = pod, container

    def gone(self, container: str) -> None:
        self._met.pop(container, None)
        if self._known.pop(container, None) is not None:
            self._changed[container] = None

    def clear(self) -> None:
        """The runtime lists everything anew."""
        self._met.clear()
        self._changed.update(dict.fromkeys(self._known))
        self._known.clear()

    def belongs(self, pod: str, workload: str) -> None:
        """The pod's containers are of this workload, whatever its labels say; empty: not known."""
        for container in [*self.now().values()] if workload else ():
            if container.pod == pod and container.workload != workload:
                renamed = local.LocalContainer()
                renamed.CopyFrom(container)
                renamed.workload = workload
                self._known[container.id] = renamed
                self._changed[container.id] = None

    def now(self) -> Mapping[str, local.LocalContainer]:
        met, self._met = self._met, {}
        for key, (pod, container) in met.items():
            message = _message(pod, container, self._workload(pod))
            if self._known.get(key) != message:
                self._known[key] = message
                self._changed[key] = None
        return self._known

    def changes(self) -> tuple[list[local.LocalContainer], list[str]]:
        """The containers that are new or changed since the last call, and the ids of those that have gone."""
        known = self.now()
        changed, self._changed = self._changed, {}
        gone = [key for key in changed if key not in known and key in self._sent]
        self._sent.difference_update(gone)
        new = [known[key] for key in changed if key in known]
        self._sent.update(container.id for container in new)
        return new, gone


def _message(pod: nri.PodSandbox, container: nri.Container, workload: str) -> local.LocalContainer:
    opt_in = parse(pod.namespace, pod.annotations, container.name)
    demand = pods.demand_of(container.linux.resources) if opt_in is not None else Demand()
    return local.LocalContainer(
        id=container.id,
        name=container.name,
        pod=pod.uid,
        pod_name=pod.name,
        namespace=pod.namespace,
        pid=container.pid,
        cgroups_path=container.linux.cgroups_path,
        host_network=not any(namespace.type == "network" for namespace in pod.linux.namespaces),
        ips=list(pod.ips),
        opted_in=opted_in(pod.annotations),
        workload=workload,
        move=_move(opt_in) if opt_in is not None else "",
        memory=demand.memory,
        hugepages=demand.hugepages,
    )


def _move(opt_in: OptIn) -> Move:
    """Whose CPUs are to stay is never moved."""
    return Move.NEVER if opt_in.cpus is Cpus.SHARED_STABLE else opt_in.move
