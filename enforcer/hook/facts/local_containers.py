"""The local containers, as they are sent to the observer. The messages are made when they are asked for, so that no
container waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from enforcer.hook.facts import pods
from numakin.placement.model.demand import Demand
from numakin.placement.optin.options import Cpus, Move, OptIn
from numakin.placement.optin.parsing import opted_in, parse
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri


class LocalContainers:
    """`now` is every container that was met and has not gone, opted in or not, by its id; `changes` what is new.

    workload: what owns a pod. host_network: by a pod's uid, what its spec says, None where that is not known.
    """

    def __init__(
        self,
        workload: Callable[[nri.PodSandbox], str] = pods.workload,
        host_network: Callable[[str], bool | None] = lambda _pod: None,
    ) -> None:
        self._workload, self._host_network = workload, host_network
        self._known: dict[str, local.LocalContainer] = {}
        self._met: dict[str, tuple[nri.PodSandbox, nri.Container]] = {}
        self._sent: set[str] = set()
        self._changed: dict[str, None] = {}

    def met(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """As the runtime's latest event has it."""
        self._met[container.id] = pod, container

    def gone(self, container: str) -> None:
        self._met.pop(container, None)
        if self._known.pop(container, None) is None:
            return
        if container in self._sent:
            self._changed[container] = None
        else:  # nobody was told of it, maybe for want of an observer
            self._changed.pop(container, None)

    def clear(self) -> None:
        """The runtime lists everything anew."""
        self._met.clear()
        self._changed = {key: None for key in (*self._changed, *self._known) if key in self._sent}
        self._known.clear()

    def learned(self, pod: str, workload: str) -> None:
        """What is known of the pod's spec by now counts for its containers, whatever the runtime has shown of it: this
        workload (empty: not known), and whether it is in the host's network.
        """
        host_network = self._host_network(pod)
        for container in [*self.now().values()] if workload or host_network is not None else ():
            if container.pod != pod:
                continue
            after = local.LocalContainer()
            after.CopyFrom(container)
            after.workload = workload or after.workload
            if host_network is not None:
                after.host_network = host_network
            if after != container:
                self._known[container.id] = after
                self._changed[container.id] = None

    def now(self) -> Mapping[str, local.LocalContainer]:
        met, self._met = self._met, {}
        for key, (pod, container) in met.items():
            message = _message(pod, container, self._workload(pod))
            spec = self._host_network(pod.uid)
            if spec is not None:
                message.host_network = spec
            if self._known.get(key) != message:
                self._known[key] = message
                self._changed[key] = None
        return self._known

    def running(self, container: str) -> str:
        """The cgroups path of the container with this id, once its process is known; else empty."""
        met = self._met.get(container)
        if met is not None:
            return met[1].linux.cgroups_path if met[1].pid else ""
        known = self._known.get(container)
        return known.cgroups_path if known is not None and known.pid else ""

    @property
    def members(self) -> list[str]:
        """The ids of those that have opted in; a pod may leave out one of its containers."""
        return [key for key, container in self.now().items() if container.move]

    def of_pod(self, pod: str) -> list[str]:
        """The ids of the containers of the pod with this uid."""
        met = (key for key, (sandbox, _) in self._met.items() if sandbox.uid == pod)
        known = (key for key, container in self._known.items() if container.pod == pod)
        return [*dict.fromkeys((*met, *known))]

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
        host_network=_host_network(pod, container),
        ips=list(pod.ips),
        opted_in=opted_in(pod.annotations),
        group=opt_in.group if opt_in is not None else "",
        workload=workload,
        move=_move(opt_in) if opt_in is not None else "",
        memory=demand.memory,
        hugepages=demand.hugepages,
    )


def _move(opt_in: OptIn) -> Move:
    """Whose CPUs are to stay is never moved."""
    return Move.NEVER if opt_in.cpus is Cpus.SHARED_STABLE else opt_in.move


def _host_network(pod: nri.PodSandbox, container: nri.Container) -> bool | None:
    """None where it is not known. A pod that lists no network namespace has the runtime's, as containerd shows it.
    CRI-O lists one for each pod, which may be the host's own: then its container lists others and not this one.
    """
    if "network" not in _kinds(pod.linux.namespaces):
        return True
    kinds = _kinds(container.linux.namespaces)
    return True if kinds and "network" not in kinds else None


def _kinds(namespaces: Iterable[nri.LinuxNamespace]) -> set[str]:
    return {namespace.type for namespace in namespaces}
