"""The fall-back chain: the first hook that loads, attaches and is seen to count, and why the better ones do not.

Versions and configurations are not asked: kernels refuse for reasons that neither tells (lockdown, blocked text
patching, missing capabilities), so each member is tried.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from enforcer.observe import cgroup_skb, fexit, inet_diag, kprobes, nothing, socket_tracepoints
from enforcer.observe.collector import Collector
from enforcer.observe.flow_map import EDGES
from enforcer.observe.loader import Refused
from enforcer.observe.proof import prove

MOUNTS = Path("/proc/self/mounts")
ROOT_INODE = 1
"""The inode of the true root of cgroup v2; that of a cgroup namespace's root is another."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the members look. `namespaces` gives a network namespace file of each pod, for the member without BPF."""

    cgroup: Path | None
    namespaces: Callable[[], Iterable[Path]]
    edges: int = EDGES


@dataclass(frozen=True, slots=True)
class Refusal:
    """A member of the chain that is not in force, and the kernel's reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The collector in force, not attached yet, and all better ones."""

    collector: Collector
    refusals: tuple[Refusal, ...]


def open_cgroup_skb(sources: Sources) -> Collector:
    if sources.cgroup is None:
        raise Refused("cgroup v2 is not mounted")
    if sources.cgroup.stat().st_ino != ROOT_INODE:
        raise Refused(f"{sources.cgroup} is not the root of cgroup v2: the host's /sys/fs/cgroup must be mounted")
    return cgroup_skb.open_collector(sources.cgroup, sources.edges)


Member: TypeAlias = tuple[str, Callable[[Sources], Collector]]

MEMBERS: tuple[Member, ...] = (
    (cgroup_skb.NAME, open_cgroup_skb),
    (socket_tracepoints.NAME, lambda sources: socket_tracepoints.open_collector(sources.edges)),
    (fexit.NAME, lambda sources: fexit.open_collector(sources.edges)),
    (kprobes.NAME, lambda sources: kprobes.open_collector(sources.edges)),
    (inet_diag.NAME, lambda sources: inet_diag.open_collector(sources.namespaces, sources.edges)),
)
"""Best first."""


def choose(sources: Sources, members: Sequence[Member] = MEMBERS) -> Choice:
    """Never fails: where nothing works, the collector is one that counts nothing."""
    refusals: list[Refusal] = []
    for name, open_member in members:
        try:
            return Choice(tried(open_member(sources)), tuple(refusals))
        except (Refused, OSError) as error:
            refusals.append(Refusal(name, str(error)))
    return Choice(nothing.Nothing(), tuple(refusals))


def tried(collector: Collector) -> Collector:
    """The same collector once it is shown to count; closed, and Refused or OSError, if it does not."""
    try:
        collector.attach()
        prove(collector)
        collector.detach()
    except BaseException:
        collector.close()
        raise
    return collector


def cgroup_root(mounts: Path = MOUNTS) -> Path | None:
    """Where cgroup v2 is mounted; None if it is not."""
    for line in mounts.read_text().splitlines():
        _, mount, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(mount)
    return None
