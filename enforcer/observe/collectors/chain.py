"""The fall-back chain: the first hook that loads, attaches and is seen to count, and why the better ones do not.

Versions and configurations are not checked: kernels refuse for reasons that neither shows (lockdown, blocked text
patching, missing capabilities), so each member is tried.
"""

import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from enforcer.machine.mounts import MOUNTS, mounted
from enforcer.observe.attribution.identity import BY_CGROUP, SocketIdentity, by_namespace
from enforcer.observe.bpf.counters import CounterSnapshot, FlowKey
from enforcer.observe.bpf.flow_map import EDGES, most_edges
from enforcer.observe.bpf.loader import LoadRefused
from enforcer.observe.bpf.syscall import possible_cpus
from enforcer.observe.collectors import cgroup_skb, fexit, inet_diag, kprobes, socket_tracepoints
from enforcer.observe.collectors.collector import Collector

NO_CGROUP_V2 = "cgroup v2 is not mounted"

ROOT_INODE = 1
"""The inode of the true root of cgroup v2; that of a cgroup namespace's root is another."""


BYTES = 4099
"""Of the proof that a collector counts, sent in one piece. A prime, as its sums are not mistaken for others."""

TIMEOUT_S = 5.0


class Nothing:
    """Counts nothing: on a node whose traffic can't be seen pods are placed by groups and by others' knowledge."""

    name = "none"

    def attach(self) -> None:
        return

    def detach(self) -> None:
        return

    def drain(self) -> CounterSnapshot:
        return CounterSnapshot()

    def close(self) -> None:
        return


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the members look. `namespaces` gives a network namespace file of each pod, for the member without BPF.

    `shared_cgroups`: containers are in a cgroup v2, but several pods in the same one (`Residents.shared_cgroups`).
    """

    cgroup: Path | None
    namespaces: Callable[[], Iterable[Path]]
    edges: int = EDGES
    identity: SocketIdentity = BY_CGROUP
    shared_cgroups: bool = False

    @classmethod
    def here(cls, namespaces: Callable[[], Iterable[Path]], *, shared_cgroups: bool = False) -> "Sources":
        """As this node has its cgroups mounted: where cpusets are in version 1, containers are too."""
        mounts = mounted()
        legacy = mounts.unified is None or "cpuset" in mounts.controllers
        identity = by_namespace() if legacy else BY_CGROUP
        edges = most_edges(possible_cpus())
        return cls(mounts.unified, namespaces, edges, identity, shared_cgroups)


@dataclass(frozen=True, slots=True)
class CollectorRefusal:
    """A member of the chain that is not in force, and the kernel's reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class CollectorChoice:
    """The collector in force, not attached yet, and all better ones."""

    collector: Collector
    refusals: tuple[CollectorRefusal, ...]


def open_cgroup_skb(sources: Sources) -> Collector:
    if sources.cgroup is None:
        raise LoadRefused(NO_CGROUP_V2)
    if sources.shared_cgroups:
        raise LoadRefused("the containers here have no cgroup v2 of their own, but one together")
    if sources.cgroup.stat().st_ino != ROOT_INODE:
        raise LoadRefused(f"{sources.cgroup} is not the root of cgroup v2: the host's /sys/fs/cgroup must be mounted")
    return cgroup_skb.open_collector(sources.cgroup, sources.edges)


ChainLink: TypeAlias = tuple[str, Callable[[Sources], Collector]]

MEMBERS: tuple[ChainLink, ...] = (
    (cgroup_skb.NAME, open_cgroup_skb),
    (socket_tracepoints.NAME, lambda sources: socket_tracepoints.open_collector(sources.edges, sources.identity)),
    (fexit.NAME, lambda sources: fexit.open_collector(sources.edges, sources.identity)),
    (kprobes.NAME, lambda sources: kprobes.open_collector(sources.edges)),
    (inet_diag.NAME, lambda sources: inet_diag.open_collector(sources.namespaces, sources.edges)),
)
"""Best first. Function exits know a pod by its network namespace; kprobes by its address alone, but they are there
where the kernel has no function exits (arm64 for long) and containers are in cgroup v1. inet_diag takes a capability
that the manifests do not give.
"""


def choose(sources: Sources, members: Sequence[ChainLink] = MEMBERS) -> CollectorChoice:
    """Never fails: where nothing works, the collector is one that counts nothing."""
    refusals: list[CollectorRefusal] = []
    for name, open_member in members:
        try:
            return CollectorChoice(tried(open_member(sources)), tuple(refusals))
        except (LoadRefused, OSError) as error:
            refusals.append(CollectorRefusal(name, str(error)))
    return CollectorChoice(Nothing(), tuple(refusals))


def tried(collector: Collector) -> Collector:
    """The same collector once it is shown to count; closed, and Refused or OSError, if it does not.

    It is attached twice, as the duty cycle attaches it again and again: before Linux 5.14 function exits refuse that.
    """
    try:
        collector.attach()
        prove(collector)
        collector.detach()
        collector.attach()
        collector.detach()
    except BaseException:
        collector.close()
        raise
    return collector


def cgroup_root(mounts: Path = MOUNTS) -> Path | None:
    """Where cgroup v2 is mounted; None if it is not."""
    return mounted(mounts).unified


@contextmanager
def _exchange() -> Iterator[set[int]]:
    """The two ports of a loopback connection that has carried BYTES, open as long as the context."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        server.settimeout(TIMEOUT_S)
        client = stack.enter_context(socket.create_connection(server.getsockname(), TIMEOUT_S))
        accepted, _ = server.accept()
        stack.enter_context(accepted)
        accepted.settimeout(TIMEOUT_S)
        client.sendall(bytes(BYTES))
        left = BYTES
        while left:
            left -= len(accepted.recv(left))
        yield {server.getsockname()[1], client.getsockname()[1]}


def prove(collector: Collector) -> None:
    """LoadRefused, with what was seen, unless the attached collector counts both ends of our own connection exactly.

    A hook that loads and attaches can still see nothing: a private cgroup namespace, a socket layer by another name.
    """
    with _exchange() as ports:
        flows = {
            key: volume
            for key, volume in collector.drain().counters.items()
            if isinstance(key, FlowKey) and key.port in ports
        }
    sent = sum(volume.tx_bytes for volume in flows.values())
    received = sum(volume.rx_bytes for volume in flows.values())
    if (sent, received) != (BYTES, BYTES):
        raise LoadRefused(f"of {BYTES} bytes over loopback it saw {sent} sent and {received} received")
