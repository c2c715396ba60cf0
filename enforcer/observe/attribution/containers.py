"""The containers of a node, found by cgroup, address or process. Pure values.

Traffic is read some seconds after it flowed, so a container that has ended meanwhile is remembered for a while.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv6Address
from typing import TypeAlias, TypeVar

from enforcer.observe.bpf.counters import FlowKey, by_address, peer, process

Address: TypeAlias = IPv4Address | IPv6Address
K = TypeVar("K", bound=Hashable)

GONE_MAX = 1024
"""Ended containers remembered; the oldest are dropped first."""

GONE_READINGS = 6
"""How many readings an ended container outlives: a minute at one every ten seconds."""


@dataclass(frozen=True, slots=True)
class LocalContainer:
    """One container as NRI and procfs show it.

    `cgroup_ids`: inode numbers of its cgroup v2 directory and of all below. `addresses`: its pod's; unused with
    `host_network`, where the node's stand for it. `pids`: processes in the host's pid namespace. `namespace`: inode of
    its network namespace, 0 if not known; unused with `host_network`.
    """

    container_id: str
    pod_uid: str
    cgroup_ids: frozenset[int]
    addresses: tuple[Address, ...] = ()
    host_network: bool = False
    pids: frozenset[int] = frozenset()
    namespace: int = 0


@dataclass(frozen=True, slots=True)
class Gone:
    """A container that has ended, and the readings since."""

    container: LocalContainer
    readings: int = 0


@dataclass(frozen=True, slots=True)
class ContainerIndex:
    """All containers of a node, current and lately gone. Build with `ContainerIndex.of`, go on with `after`."""

    current: tuple[LocalContainer, ...] = ()
    gone: tuple[Gone, ...] = ()
    node_addresses: frozenset[bytes] = frozenset()
    _by_cgroup: Mapping[int, LocalContainer] = field(default_factory=dict, repr=False, compare=False)
    _by_pid: Mapping[int, LocalContainer] = field(default_factory=dict, repr=False, compare=False)
    _by_address: Mapping[bytes, tuple[LocalContainer, ...]] = field(default_factory=dict, repr=False, compare=False)
    _by_namespace: Mapping[int, LocalContainer] = field(default_factory=dict, repr=False, compare=False)
    shared_cgroups: frozenset[int] = frozenset()
    """Cgroups that several pods share, such as the runtime's where containers have none of their own. Their traffic is
    counted for no pod.
    """

    @classmethod
    def of(
        cls,
        current: Iterable[LocalContainer],
        node_addresses: Iterable[Address] = (),
        gone: tuple[Gone, ...] = (),
    ) -> "ContainerIndex":
        """`node_addresses`: those of the node itself, by which hostNetwork pods are reached."""
        return cls._indexed(tuple(current), gone, frozenset(peer(address) for address in node_addresses))

    @classmethod
    def _indexed(
        cls, current: tuple[LocalContainer, ...], gone: tuple[Gone, ...], node_addresses: frozenset[bytes]
    ) -> "ContainerIndex":
        # The living come last: an address or process id that was given again belongs to its new holder.
        everyone = [past.container for past in gone] + list(current)
        pods = _pods(everyone, lambda container: map(peer, container.addresses))
        namespaces = _pods(everyone, lambda container: [container.namespace] if container.namespace else [])
        shared = _shared(everyone)
        return cls(
            current,
            gone,
            node_addresses,
            {
                **{by_address(address): only_or_pod(pod) for address, pod in pods.items()},
                **{cgroup: container for container in everyone for cgroup in container.cgroup_ids - shared},
            },
            {pid: container for container in everyone for pid in container.pids},
            pods,
            {namespace: only_or_pod(pod) for namespace, pod in namespaces.items()},
            shared,
        )

    def after(self, current: Iterable[LocalContainer], node_addresses: Iterable[Address] = ()) -> "ContainerIndex":
        """The containers now; those that are missing are remembered until `aged` forgets them."""
        living = tuple(current)
        ids = {container.container_id for container in living}
        past = [gone for gone in self.gone if gone.container.container_id not in ids]
        past += [Gone(container) for container in self.current if container.container_id not in ids]
        return ContainerIndex.of(living, node_addresses, tuple(past[-GONE_MAX:]))

    def aged(self) -> "ContainerIndex":
        """To be taken after every reading that was attributed."""
        older = tuple(Gone(gone.container, gone.readings + 1) for gone in self.gone)
        kept = tuple(gone for gone in older if gone.readings < GONE_READINGS)
        return ContainerIndex._indexed(self.current, kept, self.node_addresses)

    def local_end(self, flow: FlowKey) -> LocalContainer | None:
        """Whose end of a connection a collector has counted at."""
        of_process = process(flow.cgroup)
        if of_process:
            return self._by_pid.get(of_process)
        return self._by_cgroup.get(flow.cgroup) or self._by_namespace.get(flow.namespace)

    def by_cgroup(self, cgroup: int) -> LocalContainer | None:
        """Whose sockets have this cgroup, as in a flow's `cgroup`: where that is an address, see `only_or_pod`."""
        return self._by_cgroup.get(cgroup)

    def by_pid(self, pid: int) -> LocalContainer | None:
        return self._by_pid.get(pid)

    def by_address(self, address: bytes) -> tuple[LocalContainer, ...]:
        """The containers of the pod that has the address, as in a flow's `peer`."""
        return self._by_address.get(address, ())

    def addresses(self, container: LocalContainer) -> frozenset[bytes]:
        """Those by which others reach the container."""
        if container.host_network:
            return self.node_addresses
        return frozenset(peer(address) for address in container.addresses)


def only_or_pod(pod: tuple[LocalContainer, ...]) -> LocalContainer:
    """The only container of a pod; else the pod as one container, without an id."""
    return pod[0] if len(pod) == 1 else replace(pod[0], container_id="")


def _pods(
    everyone: Sequence[LocalContainer], marks: Callable[[LocalContainer], Iterable[K]]
) -> dict[K, tuple[LocalContainer, ...]]:
    """By mark the containers of the one pod that bears it: the latest, should there have been several."""
    pods: dict[K, tuple[LocalContainer, ...]] = {}
    for container in everyone:
        for mark in () if container.host_network else marks(container):
            same_pod = [other for other in pods.get(mark, ()) if other.pod_uid == container.pod_uid]
            pods[mark] = (*same_pod, container)
    return pods


def _shared(everyone: Sequence[LocalContainer]) -> frozenset[int]:
    owners: dict[int, set[str]] = defaultdict(set)
    for container in everyone:
        for cgroup in container.cgroup_ids:
            owners[cgroup].add(container.pod_uid)
    return frozenset(cgroup for cgroup, pods in owners.items() if len(pods) > 1)
